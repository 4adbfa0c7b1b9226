"""Load: threads that do something over and over."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.faults.polling import wait_for
from tests.faults.tools.threads import Threads

WITHIN_S = 30.0


class Load(Threads):
    """Each step in a thread of its own, from `with` to its end."""

    def __init__(self, steps: list[Callable[[], object]]) -> None:
        super().__init__()
        self.done = 0
        self.failures: list[str] = []
        self._threads = [threading.Thread(target=self._run, args=(s,), daemon=True) for s in steps]

    def _run(self, step: Callable[[], object]) -> None:
        while not self._stopping.is_set():
            try:
                step()
            except Exception as error:
                self.failures.append(repr(error))
                return
            self.done += 1

    def wait_for_more(self, count: int) -> None:
        enough = self.done + count
        wait_for(
            lambda: self.done >= enough or bool(self.failures),
            within_s=WITHIN_S,
            what=f"{count} more of {self.done}",
        )
