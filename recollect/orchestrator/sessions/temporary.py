"""State that is held in memory alone: the `temp:` keys of sessions.

It is never written anywhere. It is set when the change that it came with is on disk, and it is gone
with the session's end and with the process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

Values = Mapping[str, str | None]
"""JSON texts by key; None removes a key."""


class TemporaryState:
    """Values by session and key; of too many sessions, the one used longest ago loses its own.

    Touched by the event loop's thread alone.
    """

    def __init__(self, sessions_max: int) -> None:
        self._sessions_max = sessions_max
        self._sessions: OrderedDict[str, dict[str, str]] = OrderedDict()

    def of(self, session_id: str) -> Mapping[str, str]:
        """What a session has."""
        values = self._sessions.get(session_id)
        if values is None:
            return {}
        self._sessions.move_to_end(session_id)
        return values

    def keys_after(self, session_id: str, changes: Values) -> int:
        """How many keys a session would have after a change."""
        keys = set(self._sessions.get(session_id, ()))
        for key, value in changes.items():
            (keys.discard if value is None else keys.add)(key)
        return len(keys)

    def change(self, session_id: str, changes: Values) -> None:
        """Set and remove keys of a session."""
        values = dict(self.of(session_id))
        for key, value in changes.items():
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
        if not values:
            self.forget(session_id)
            return
        self._sessions[session_id] = values
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > self._sessions_max:
            self._sessions.popitem(last=False)

    def forget(self, session_id: str) -> None:
        """Let go of all that a session has."""
        self._sessions.pop(session_id, None)

    def __len__(self) -> int:
        return len(self._sessions)
