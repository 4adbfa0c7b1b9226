"""The state of sessions: values by key, some shared with other sessions, some never written down.

The prefix of a key says whose it is: `user:` and `app:` keys are shared by all sessions of the user
or app, `temp:` keys are the session's own and stay in memory. Every other key is the session's own;
`session:` before it may be said or left out, and is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from recollect.config.settings import SessionsSettings
from recollect.orchestrator.calls import Call
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.sessions.homes import app_namespace
from recollect.orchestrator.sessions.rows import Kept, SessionRow
from recollect.orchestrator.sessions.temporary import TemporaryState, Values
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol.errors import InvalidArgument, LimitExceeded

SESSION, USER, APP, TEMP = "session", "user", "app", "temp"
SCOPES = (SESSION, USER, APP, TEMP)

SET_KEY = """
INSERT INTO session_state (scope, owner, key, value) VALUES (?, ?, ?, ?)
ON CONFLICT (scope, owner, key) DO UPDATE SET value = excluded.value
"""
REMOVE_KEY = "DELETE FROM session_state WHERE scope = ? AND owner = ? AND key = ?"
COUNT_KEYS = """
SELECT count(*), sum(octet_length(value)) FROM session_state WHERE scope = ? AND owner = ?
"""


class Delta(msgspec.Struct, frozen=True):
    """A change of state that was found good: what to set and remove, by scope."""

    scopes: dict[str, dict[str, str | None]]

    @property
    def temporary(self) -> Values:
        """The part that is not written down."""
        return self.scopes.get(TEMP, {})

    def __bool__(self) -> bool:
        return bool(self.scopes)


NO_CHANGE = Delta({})


class States:
    """Reads deltas, carries them out, and shows what state a session has."""

    def __init__(
        self, validator: Validator, settings: SessionsSettings, temporary: TemporaryState
    ) -> None:
        self._validator = validator
        self._settings = settings
        self.temporary = temporary

    def json(self, field: str, value: Any, limit: str, name: str | None = None) -> str:
        """A JSON value as text, within a limit of sessions; it may go by a name."""
        text = self._validator.json(field, value, "payload_bytes_max", name)
        size = len(text) if text.isascii() else len(text.encode())
        self._at_most(limit, field, size, "bytes as JSON")
        return text

    def delta(self, field: str, given: Mapping[str, Any] | None) -> Delta:
        """A change as it was given, checked; not yet whether there is room for it."""
        if not given:
            return NO_CHANGE
        self._at_most("state_keys_max", field, len(given), "keys")
        scopes: dict[str, dict[str, str | None]] = {}
        for name, value in given.items():
            scope, key = self._parse(field, name)
            changes = scopes.setdefault(scope, {})
            if key in changes:
                raise InvalidArgument(
                    f"{field} names the key {key!r} twice: with `session:` before it, it is still "
                    "the same key.",
                    field=field,
                )
            if value is None:
                changes[key] = None
            else:
                changes[key] = self.json(f"{field}.{name}", value, "state_value_bytes_max", key)
        return Delta(scopes)

    def _parse(self, field: str, name: str) -> tuple[str, str]:
        """The scope of a key and the rest of its name."""
        self._validator.text(field, name, "key_chars_max")
        prefix, colon, rest = name.partition(":")
        scope, key = (prefix, rest) if colon and prefix in SCOPES else (SESSION, name)
        if not key:
            raise InvalidArgument(
                f"{field} has the key {name!r}, which has no name; give it one.", field=field
            )
        # Shown without its `session:`, such a key would pass for one of another scope.
        if scope == SESSION and key.partition(":")[0] in SCOPES and ":" in key:
            raise InvalidArgument(
                f"{field} has the key {name!r}; after `session:` no other of the prefixes "
                f"{', '.join(SCOPES)} can follow.",
                field=field,
            )
        return scope, key

    def misfit(self, session_id: str, delta: Delta) -> LimitExceeded | None:
        """Why a session would have too much `temp:` state; on the event loop.

        To be raised once it is known that the caller may see the session, for it tells of what the
        session has.
        """
        if not delta.temporary:
            return None
        try:
            self._check_room(TEMP, *self.temporary.measured_after(session_id, delta.temporary))
        except LimitExceeded as error:
            return error
        return None

    def apply(
        self, call: Call, transaction: WriteTransaction, row: SessionRow, delta: Delta
    ) -> str | None:
        """Carry out a change; returns the namespace that it changed beside the session's own."""
        shared = app_namespace(row.app) if APP in delta.scopes else None
        if shared is not None:
            call.require(shared, row.id, "write")
        owners = {SESSION: row.id, USER: row.user_id, APP: row.app}
        for scope, owner in owners.items():
            if changes := delta.scopes.get(scope):
                self._write(transaction, scope, owner, changes)
        if temporary := delta.temporary:
            transaction.after_commit.append(
                lambda: self.temporary.change(row.id, row.version, temporary)
            )
        return shared

    def fill(
        self, transaction: WriteTransaction, scope: str, owner: str, key: str, value: str
    ) -> None:
        """Set one key that came from another store; if there is no room for it, it is not there
        afterwards either."""
        try:
            self._write(transaction, scope, owner, {key: value})
        except LimitExceeded:
            transaction.execute(REMOVE_KEY, (scope, owner, key))
            raise

    def check_whole(self, state: Mapping[str, str]) -> None:
        """Refuse a state, by its keys and JSON texts, that no session could have."""
        self._check_room(SESSION, len(state), sum(len(v.encode()) for v in state.values()))

    def _write(
        self, transaction: WriteTransaction, scope: str, owner: str, changes: Values
    ) -> None:
        removed = [(scope, owner, key) for key, value in changes.items() if value is None]
        if removed:
            transaction.executemany(REMOVE_KEY, removed)
        if len(removed) == len(changes):
            return
        transaction.executemany(
            SET_KEY,
            [(scope, owner, key, value) for key, value in changes.items() if value is not None],
        )
        [(keys, size)] = transaction.execute(COUNT_KEYS, (scope, owner))
        self._check_room(scope, keys, size)

    def _check_room(self, scope: str, keys: int, size: int) -> None:
        self._at_most("state_keys_max", f"{scope}: state", keys, "keys")
        self._at_most("state_bytes_max", f"{scope}: state", size, "bytes of values")

    def shown(
        self, call: Call, row: SessionRow, kept: list[Kept], temporary: Mapping[str, str]
    ) -> dict[str, Any]:
        """All the state of a session that a caller may see, by the keys as they are given."""
        hidden = None if call.grants.allows(app_namespace(row.app), "read") else APP
        state = {
            key if scope == SESSION else f"{scope}:{key}": decode_json(value)
            for scope, key, value in kept
            if scope != hidden
        }
        for key, value in temporary.items():
            state[f"{TEMP}:{key}"] = decode_json(value)
        return state

    def _at_most(self, name: str, field: str, size: int, what: str) -> None:
        maximum: int = getattr(self._settings, name)
        if size > maximum:
            raise LimitExceeded(
                f"{field} has {size:,} {what}; the limit sessions.{name} is {maximum:,}.",
                field=field,
                limit=f"sessions.{name}",
                maximum=maximum,
                actual=size,
            )
