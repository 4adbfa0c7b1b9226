"""State that is held in memory alone: the `temp:` keys of sessions.

It is never written to disk. It is set when the change that it came with is on disk, and it is gone
with the session's end and with the process; see `shared_temporary` for several processes.

Every value has the version of the session that it was set with, and so has what was removed. Of two
copies that say something of one key, the later version is right: in whatever order changes become
known, and however often, the outcome is the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

Values = Mapping[str, str | None]
"""JSON texts by key; None removes a key."""
Entry = tuple[int, str | None]
"""The version of the session by which a key was set, or removed, and its value."""

REMOVED_MAX = 64
"""Removed keys of a session that are still known to be so."""


class Held:
    """What one session has."""

    __slots__ = ("entries", "floor")

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.floor = 0
        """What was set up to this version and is not here was removed."""

    def take(self, key: str, entry: Entry) -> None:
        """Know of a change, unless a later one is known."""
        known = self.entries.get(key)
        if entry[0] > (self.floor if known is None else known[0]):
            self.entries[key] = entry

    def settle(self) -> None:
        """Know of no more removed keys than need be."""
        removed = [(entry[0], key) for key, entry in self.entries.items() if entry[1] is None]
        if len(removed) > REMOVED_MAX:
            removed.sort()
            for version, key in removed[: len(removed) - REMOVED_MAX // 2]:
                del self.entries[key]
                self.floor = version

    def values(self) -> dict[str, str]:
        """What is there."""
        return {key: value for key, (_, value) in self.entries.items() if value is not None}


class TemporaryState:
    """Values by session and key; of too much, the session used longest ago loses its own.

    Touched by the event loop's thread alone.
    """

    shared = False
    """Whether other orchestrators may change it, so that `refresh` and `give` are worth a wait."""

    def __init__(self, sessions_max: int, bytes_max: int) -> None:
        self._sessions_max = sessions_max
        self._bytes_max = bytes_max
        self._sessions: OrderedDict[str, Held] = OrderedDict()
        self.bytes = 0
        """Of all values."""

    def of(self, session_id: str) -> Mapping[str, str]:
        """What a session has."""
        held = self._sessions.get(session_id)
        if held is None:
            return {}
        self._sessions.move_to_end(session_id)
        return held.values()

    def measured_after(self, session_id: str, changes: Values) -> tuple[int, int]:
        """How many keys and bytes a session would have after a change."""
        held = self._sessions.get(session_id)
        merged = {**(held.values() if held is not None else {}), **changes}
        left = [value for value in merged.values() if value is not None]
        return len(left), _bytes(left)

    def change(self, session_id: str, version: int, changes: Values) -> None:
        """Set and remove keys of a session, as was done by a version of it."""
        self._merge(session_id, 0, {key: (version, value) for key, value in changes.items()})

    def _merge(self, session_id: str, floor: int, known: Mapping[str, Entry]) -> Held:
        """Take over what another copy knows; returns what is known then."""
        held = self._sessions.pop(session_id, None) or Held()
        self.bytes -= _bytes(held.values().values())
        if floor > held.floor:
            for key in [key for key, entry in held.entries.items() if entry[0] <= floor]:
                if key not in known:
                    del held.entries[key]
            held.floor = floor
        for key, entry in known.items():
            held.take(key, entry)
        held.settle()
        if held.values() or (self.shared and held.entries):
            self._sessions[session_id] = held
            self.bytes += _bytes(held.values().values())
            while len(self._sessions) > self._sessions_max or self.bytes > self._bytes_max:
                self.forget(next(iter(self._sessions)))
        return held

    def forget(self, session_id: str) -> None:
        """Let go of all that a session has."""
        held = self._sessions.pop(session_id, None)
        if held is not None:
            self.bytes -= _bytes(held.values().values())

    async def refresh(self, session_id: str) -> None:
        """Bring what others set until now, or do without it in bounded time; never fails."""

    async def give(self, session_id: str, version: int, changes: Values) -> None:
        """Have others know of a change, or do without that in bounded time; never fails."""

    async def end(self, session_id: str) -> None:
        """Let go of it everywhere; where that fails, it expires."""

    def __len__(self) -> int:
        return len(self._sessions)


def _bytes(texts: Iterable[str]) -> int:
    return sum(len(text) if text.isascii() else len(text.encode()) for text in texts)
