"""The storage that the processes of a test work on: SQLite, or a PostgreSQL database for each of
their data folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.postgres import bare_database, let_go, new_database

SQLITE, POSTGRESQL = "sqlite", "postgresql"
STORAGES = (SQLITE, POSTGRESQL)
VARIABLE = "RECOLLECT_STORAGE_URL"


class Chosen:
    """What was chosen for the tests that run now."""

    def __init__(self) -> None:
        self.kind = SQLITE
        # By data folder: whoever starts on the same folder again finds what was there.
        self._urls: dict[Path, str] = {}

    @contextmanager
    def on(self, kind: str) -> Iterator[None]:
        """Have what is started meanwhile work on one kind of storage."""
        before, self.kind = self.kind, kind
        try:
            yield
        finally:
            self.kind = before
            for url in self._urls.values():
                let_go(url)
            self._urls.clear()

    def url_of(self, data: Path) -> str:
        """The storage that goes with a data folder."""
        if self.kind == SQLITE:
            return SQLITE
        folder = data.absolute()
        if folder not in self._urls:
            self._urls[folder] = new_database(held=True)
        return self._urls[folder]

    def empty_for(self, data: Path) -> str:
        """The same, where nothing was made yet."""
        assert self.kind != SQLITE
        url = self._urls[data.absolute()] = bare_database()
        return url

    def env_of(self, data: Path) -> dict[str, str]:
        """The same as settings of a process."""
        return {} if self.kind == SQLITE else {VARIABLE: self.url_of(data)}


CHOSEN = Chosen()
