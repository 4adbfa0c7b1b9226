"""Threads that go on from `with` to its end."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

ENDED_WITHIN_S = 60.0


class Threads:
    """Runs `_threads`, which look at `_stopping`; whoever is one makes both their own."""

    _threads: list[threading.Thread]

    def __init__(self) -> None:
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Let each finish what it is at."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(ENDED_WITHIN_S)
            if thread.is_alive():
                self._did_not_end(thread.name)

    def _did_not_end(self, name: str) -> None:
        """What to make of a thread that is still at it."""
        raise AssertionError(f"{name} did not end")
