"""The latest changes in memory, so that those who follow need not ask the storage."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from recollect.orchestrator.storage.interface import Change

CHANGES_MAX = 4_096


class Tail:
    """A gapless end of the journal. Touched by the event loop alone."""

    def __init__(self, seq: int, changes_max: int = CHANGES_MAX) -> None:
        self.seq = seq
        """The last change that is known here."""
        self._changes: deque[Change] = deque(maxlen=changes_max)
        self._start = seq

    def covers(self, after: int) -> bool:
        """Whether every change behind a number is here."""
        return after >= self._start

    def extend(self, changes: Sequence[Change], seq: int) -> None:
        """Take on all changes behind the last one, up to a number."""
        if len(self._changes) + len(changes) > (self._changes.maxlen or 0):
            self._start = self._pushed_out(changes)
        self._changes.extend(changes)
        self.seq = seq

    def _pushed_out(self, changes: Sequence[Change]) -> int:
        """The number of the last change that there will be no room for."""
        room = self._changes.maxlen or 0
        if len(changes) >= room:
            return changes[-room].seq - 1
        return self._changes[len(self._changes) + len(changes) - room - 1].seq

    def restart(self, seq: int) -> None:
        """Begin anew behind a number."""
        self._changes.clear()
        self._start = self.seq = seq

    def since(self, after: int) -> list[Change]:
        """The changes behind a number, in order; it must be covered."""
        found: list[Change] = []
        for change in reversed(self._changes):
            if change.seq <= after:
                break
            found.append(change)
        found.reverse()
        return found
