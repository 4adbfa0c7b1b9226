"""Who is known: all identities as they are at this moment, by key and by name.

They live in two tables. What is asked at every message is a copy of them, never changed but
exchanged as a whole once a change is on disk, so that a key that was revoked is refused from then
on, also on connections that are open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
import structlog

from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import LOCAL, Identity
from recollect.orchestrator.calls import Call, Refusal
from recollect.orchestrator.clock import to_iso, to_iso_or_none
from recollect.orchestrator.storage.interface import Row, Session, Storage, WriteTransaction
from recollect.protocol import records
from recollect.protocol.errors import Overloaded, RecollectError, Unauthenticated

log = structlog.get_logger()

REFRESH_S = 1.0
RETRY_AFTER_MS = 1
SELECT_IDENTITIES = """
SELECT name, public_key, requests_per_s, memories_max, memories, created_us, revoked_us
FROM identities ORDER BY name
"""
SELECT_GRANTS = "SELECT identity, pattern, access FROM grants ORDER BY identity, pattern"


class Entry(msgspec.Struct, frozen=True):
    """A row of the identities, with its grants."""

    name: str
    public_key: str | None
    requests_per_s: float | None
    memories_max: int | None
    memories: int
    created_us: int
    revoked_us: int | None
    grants: tuple[Grant, ...] = ()

    def identity(self) -> Identity:
        return Identity(
            self.name, Grants(self.grants), self.public_key, self.requests_per_s, self.memories_max
        )

    def record(self) -> records.IdentityRecord:
        return {
            "name": self.name,
            "public_key": self.public_key,
            "grants": grant_records(self.grants),
            "requests_per_s": self.requests_per_s,
            "memories_max": self.memories_max,
            "memories": self.memories,
            "created_at": to_iso(self.created_us),
            "revoked_at": to_iso_or_none(self.revoked_us),
        }


class Snapshot(msgspec.Struct, frozen=True):
    """All identities at one moment. Shared between threads, because nobody changes it."""

    by_key: Mapping[str, Identity]
    revoked: Mapping[str, str]
    """Names by the keys that were revoked."""


def unknown_key() -> Unauthenticated:
    """Why a message with a key that was known, or is not, is not worked on."""
    return Unauthenticated(
        "The orchestrator does not know this key any more. `recollect keys new NAME`, run where it "
        "is served, makes another."
    )


def grant_records(grants: tuple[Grant, ...]) -> list[records.GrantRecord]:
    """Grants as answers show them."""
    return [{"pattern": grant.pattern, "access": grant.access} for grant in grants]


def read_entries(session: Session) -> list[Entry]:
    """All identities, by name."""
    grants: dict[str, list[Grant]] = {}
    for name, pattern, access in session.execute(SELECT_GRANTS):
        grants.setdefault(name, []).append(Grant(pattern, access))
    return [_entry(row, grants) for row in session.execute(SELECT_IDENTITIES)]


def _entry(row: Row, grants: dict[str, list[Grant]]) -> Entry:
    return msgspec.structs.replace(Entry(*row), grants=tuple(grants.get(row[0], ())))


class Keyring:
    """The identities that are known now. The snapshot is exchanged by the event loop alone."""

    def __init__(self, storage: Storage, local_key: str | None) -> None:
        self._storage = storage
        self._local = {} if local_key is None else {local_key: LOCAL}
        self._snapshot = Snapshot(self._local, {})
        self._exchanges = 0

    @property
    def local_keys(self) -> frozenset[str]:
        """Keys that belong to this machine and can be nobody else's."""
        return frozenset(self._local)

    @property
    def strangers_count(self) -> int:
        """How many others than this machine have a key that is let in."""
        return len(self._snapshot.by_key) - len(self._local)

    def identity(self, public_key: str | None) -> Identity | None:
        """Whose key it is; None if it is unknown or was revoked."""
        return self._snapshot.by_key.get(public_key) if public_key is not None else None

    def check_still_allowed(self, call: Call) -> None:
        """Refuse what was begun before its key was revoked or its grants were changed, and would
        only now be done or told. Any thread may ask."""
        key = call.public_key
        if key is None:
            return
        now = self._snapshot.by_key.get(key)
        if now is None:
            call.refusals.append(Refusal(key, None, "revoked key"))
            raise unknown_key()
        if now.grants is not call.grants and now.grants != call.grants:
            raise Overloaded(
                f"What {call.identity!r} may do was changed in the meantime; send the request "
                "again.",
                retry_after_ms=RETRY_AFTER_MS,
            )

    def revoked_name(self, public_key: str | None) -> str | None:
        """Whose key it was, if it was revoked."""
        return self._snapshot.revoked.get(public_key) if public_key is not None else None

    async def load(self) -> None:
        """Read the tables, unless a change of our own has been entered meanwhile."""
        exchanges = self._exchanges
        snapshot = self._made(await self._storage.read(read_entries))
        if exchanges == self._exchanges:
            self._snapshot = snapshot

    async def follow(self) -> None:
        """Where others may write to the same storage, look again and again."""
        while not self._storage.inline_reads:
            await asyncio.sleep(REFRESH_S)
            try:
                await self.load()
            except RecollectError as error:
                log.warning("Identities were not read.", action="keyring", reason=error.message)

    def changed(self, transaction: WriteTransaction) -> list[Entry]:
        """Take over what a transaction has made of the tables as soon as it is on disk."""
        entries = read_entries(transaction)
        snapshot = self._made(entries)

        def exchange() -> None:
            self._snapshot = snapshot
            self._exchanges += 1

        transaction.after_commit.append(exchange)
        return entries

    def _made(self, entries: list[Entry]) -> Snapshot:
        living = {e.public_key: e.identity() for e in entries if e.public_key and not e.revoked_us}
        revoked = {e.public_key: e.name for e in entries if e.public_key and e.revoked_us}
        return Snapshot({**living, **self._local}, revoked)
