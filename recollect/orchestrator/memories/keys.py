"""Which memory a key means: the one that has it, the one that had it last, or had it at a time."""

from __future__ import annotations

from recollect.orchestrator.calls import Call
from recollect.orchestrator.memories.memory_store import MemoryStore, as_it_was
from recollect.orchestrator.memories.rows import COLUMNS, MemoryRow
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.validation import Validator
from recollect.protocol.errors import NotFound

Place = tuple[str, str]
"""A namespace and a key in it."""

HOLDER = f"SELECT {COLUMNS} FROM memories WHERE namespace = ? AND key = ? AND deleted_us IS NULL"
DELETED_LAST = f"""
SELECT {COLUMNS} FROM memories WHERE namespace = ? AND key = ? AND deleted_us IS NOT NULL
ORDER BY deleted_us DESC LIMIT 1
"""
# What was deleted after a moment and was there before it; of a memory that was restored in between,
# only its versions can tell whether it had the key then.
DELETED_SINCE = f"""
SELECT {COLUMNS} FROM memories WHERE namespace = ? AND key = ? AND deleted_us > ?
    AND created_us <= ?
ORDER BY deleted_us LIMIT ?
"""
HOLDERS_MAX = 1_000


class Keys:
    """Finds memories by namespace and key, for callers who may see them."""

    def __init__(self, store: MemoryStore, validator: Validator) -> None:
        self._store = store
        self._validator = validator

    def place(self, namespace: str, key: str) -> Place:
        """A namespace and a key as they may be."""
        self._validator.namespace(namespace)
        return namespace, self._validator.asked("key", key, "key_chars_max")

    def holder(self, call: Call, session: Session, place: Place) -> MemoryRow | None:
        """The memory that has the key, be it expired; None as well if the caller may not see it.

        Refuses if the caller may see it and not do with it what the operation does.
        """
        return _first(session, HOLDER, place) if _seen(call, place) else None

    def require(self, call: Call, session: Session, place: Place) -> MemoryRow:
        """The living memory that has the key."""
        row = self.holder(call, session, place)
        if row is None or not row.alive(call.now_us):
            raise no_such_key(place)
        return row

    def last(self, call: Call, session: Session, place: Place) -> MemoryRow:
        """The memory that has the key, else the one that had it last."""
        row = None
        if _seen(call, place):
            row = _first(session, HOLDER, place) or _first(session, DELETED_LAST, place)
        if row is None:
            raise no_such_key(place)
        return row

    def deleted_last(self, call: Call, session: Session, place: Place) -> MemoryRow | None:
        """The memory that was deleted last of those that had the key."""
        return _first(session, DELETED_LAST, place) if _seen(call, place) else None

    def at_moment(self, call: Call, session: Session, place: Place, moment_us: int) -> MemoryRow:
        """What the key held at a time, whatever became of it since."""
        if _seen(call, place):
            since = (*place, moment_us, moment_us, HOLDERS_MAX)
            for sql, params in ((HOLDER, place), (DELETED_SINCE, since)):
                for row in session.execute(sql, params):
                    was = as_it_was(session, MemoryRow(*row), moment_us)
                    if was is not None:
                        return was
        raise no_such_key(place, " at that time")

    def in_version(self, call: Call, session: Session, place: Place, version: int) -> MemoryRow:
        """A version of what the key holds or held last."""
        row = self.last(call, session, place)
        try:
            return self._store.in_version(call, session, row.id, version)
        except NotFound:
            raise no_such_key(place, f" in version {version}") from None


def _seen(call: Call, place: Place) -> bool:
    namespace, key = place
    if not call.sees(namespace, key):
        return False
    call.require(namespace, key)
    return True


def _first(session: Session, sql: str, place: Place) -> MemoryRow | None:
    found = session.execute(sql, place)
    return MemoryRow(*found[0]) if found else None


def no_such_key(place: Place, when: str = "") -> NotFound:
    """The same for what never was, what is gone and what is not yours to see."""
    namespace, key = place
    return NotFound(
        f"There is no memory under the key {key!r} in {namespace}{when}.",
        namespace=namespace,
        key=key,
    )
