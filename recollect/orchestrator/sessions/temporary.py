"""State that is held in memory alone: the `temp:` keys of sessions.

It is never written anywhere. It is set when the change that it came with is on disk, and it is gone
with the session's end and with the process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

Values = Mapping[str, str | None]
"""JSON texts by key; None removes a key."""


class TemporaryState:
    """Values by session and key; of too much, the session used longest ago loses its own.

    Touched by the event loop's thread alone.
    """

    def __init__(self, sessions_max: int, bytes_max: int) -> None:
        self._sessions_max = sessions_max
        self._bytes_max = bytes_max
        self._sessions: OrderedDict[str, dict[str, str]] = OrderedDict()
        self.bytes = 0
        """Of all values."""

    def of(self, session_id: str) -> Mapping[str, str]:
        """What a session has."""
        values = self._sessions.get(session_id)
        if values is None:
            return {}
        self._sessions.move_to_end(session_id)
        return values

    def measured_after(self, session_id: str, changes: Values) -> tuple[int, int]:
        """How many keys and bytes a session would have after a change."""
        values = _changed(self._sessions.get(session_id, {}), changes)
        return len(values), _bytes(values.values())

    def change(self, session_id: str, changes: Values) -> None:
        """Set and remove keys of a session."""
        values = _changed(self._sessions.get(session_id, {}), changes)
        self.forget(session_id)
        if not values:
            return
        self._sessions[session_id] = values
        self.bytes += _bytes(values.values())
        while len(self._sessions) > self._sessions_max or self.bytes > self._bytes_max:
            self.forget(next(iter(self._sessions)))

    def forget(self, session_id: str) -> None:
        """Let go of all that a session has."""
        self.bytes -= _bytes(self._sessions.pop(session_id, {}).values())

    def __len__(self) -> int:
        return len(self._sessions)


def _changed(values: Mapping[str, str], changes: Values) -> dict[str, str]:
    merged = {**values, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def _bytes(texts: Iterable[str]) -> int:
    return sum(len(text) if text.isascii() else len(text.encode()) for text in texts)
