"""Who is known: all identities as they are at this moment, by key and by name.

They live in three tables. What is asked at every message is a copy of them, never changed but
exchanged as a whole once a change is on disk, so that a key that was revoked is refused from then
on, also on connections that are open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import structlog

from recollect.orchestrator.access import credentials
from recollect.orchestrator.access.entries import Entry, read_entries
from recollect.orchestrator.access.identities import LOCAL, Identity
from recollect.orchestrator.calls import Call, Refusal
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.storage.properties import get_property, set_property
from recollect.protocol.errors import Overloaded, RecollectError, Unauthenticated

log = structlog.get_logger()

REFRESH_S = 1.0
LOOKS_MAX = 60
"""After so many looks all is read again: an orchestrator of an older version may share the store,
which does not say that it has changed something."""
CHANGED = "identities_changed"
"""The property that says at which change the identities were last changed."""
RETRY_AFTER_MS = 1


class Snapshot(msgspec.Struct, frozen=True):
    """All identities at one moment. Shared between threads, because nobody changes it."""

    by_credential: Mapping[str, Identity]
    revoked: Mapping[str, str]
    """Names by the credentials that were revoked."""


def unknown_key(credential: str | None) -> Unauthenticated:
    """Why a message with a key that was known, or is not, is not worked on."""
    if credential is not None and credentials.is_bearer(credential):
        return Unauthenticated(
            "The orchestrator does not know this bearer key, or not any more. `recollect keys new "
            "NAME --bearer`, run where it is served, makes another."
        )
    return Unauthenticated(
        "The orchestrator does not know this key any more. `recollect keys new NAME`, run where it "
        "is served, makes another."
    )


class Keyring:
    """The identities that are known now. The snapshot is exchanged by the event loop alone."""

    def __init__(self, storage: Storage, local_key: str | None) -> None:
        self._storage = storage
        self._local = {} if local_key is None else {local_key: LOCAL}
        self._snapshot = Snapshot(self._local, {})
        self._exchanges = 0
        # What the store said of the last change of what was read.
        self._changed: str | None = None
        self.on_change: Callable[[], None] | None = None
        """Told on the event loop when other identities are known, or with other grants."""

    @property
    def local_keys(self) -> frozenset[str]:
        """Keys that belong to this machine and can be nobody else's."""
        return frozenset(self._local)

    @property
    def strangers_count(self) -> int:
        """How many others than this machine have a key that lets them connect; a bearer key alone
        does not, since somebody else has to carry it."""
        known = self._snapshot.by_credential
        return sum(not credentials.is_bearer(key) for key in known) - len(self._local)

    def identity(self, credential: str | None) -> Identity | None:
        """Whose key it is; None if it is unknown or was revoked."""
        return self._snapshot.by_credential.get(credential) if credential is not None else None

    def check_still_allowed(self, call: Call) -> None:
        """Refuse what was begun before its key was revoked or its grants were changed, and would
        only now be done or told. Any thread may ask."""
        credential = call.credential
        if credential is None:
            return
        now = self._snapshot.by_credential.get(credential)
        if now is None:
            call.refusals.append(Refusal(credentials.shown(credential), None, "revoked key"))
            raise unknown_key(credential)
        if now.grants is not call.grants and now.grants != call.grants:
            raise Overloaded(
                f"What {call.identity!r} may do was changed in the meantime; send the request "
                "again.",
                retry_after_ms=RETRY_AFTER_MS,
            )

    def revoked_name(self, credential: str | None) -> str | None:
        """Whose key it was, if it was revoked."""
        return self._snapshot.revoked.get(credential) if credential is not None else None

    async def load(self) -> None:
        """Read the tables, unless a change of our own has been entered meanwhile."""
        exchanges, before = self._exchanges, self._snapshot

        def read(session: Session) -> tuple[str | None, Snapshot | None]:
            changed = get_property(session, CHANGED)
            snapshot = self._made(read_entries(session))
            return changed, None if snapshot == before else snapshot

        changed, snapshot = await self._storage.read(read)
        if exchanges == self._exchanges:
            self._changed = changed
            if snapshot is not None:
                self._exchange(snapshot)

    async def follow(self) -> None:
        """Where others may write to the same storage, look again and again."""
        looks = 0
        while not self._storage.inline_reads:
            await asyncio.sleep(REFRESH_S)
            looks += 1
            try:
                if looks % LOOKS_MAX == 0 or await self._is_changed():
                    await self.load()
            except RecollectError as error:
                log.warning("Identities were not read.", action="keyring", reason=error.message)

    async def _is_changed(self) -> bool:
        said = await self._storage.read(
            lambda session: get_property(session, CHANGED), asks_once=True
        )
        return said != self._changed

    def changed(self, transaction: WriteTransaction) -> list[Entry]:
        """Take over what a transaction has made of the tables as soon as it is on disk."""
        entries = read_entries(transaction)
        snapshot = self._made(entries)
        set_property(transaction, CHANGED, str(transaction.last_seq()))

        def exchange() -> None:
            self._exchange(snapshot)
            self._exchanges += 1

        transaction.after_commit.append(exchange)
        return entries

    def _exchange(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        if self.on_change is not None:
            self.on_change()

    def _made(self, entries: list[Entry]) -> Snapshot:
        living: dict[str, Identity] = {}
        revoked: dict[str, str] = {}
        for entry in entries:
            for credential, identity in entry.identities():
                if identity is not None:
                    living[credential] = identity
                else:
                    revoked[credential] = entry.name
        return Snapshot({**living, **self._local}, revoked)
