"""Identities as their tables have them: with their grants and their bearer keys."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from recollect.orchestrator.access import credentials
from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.clock import to_iso, to_iso_or_none
from recollect.orchestrator.storage.interface import Row, Session
from recollect.protocol import records
from recollect.protocol.bearer_keys import key_id_of

SELECT_IDENTITIES = """
SELECT name, public_key, requests_per_s, memories_max, memories, created_us, revoked_us
FROM identities ORDER BY name
"""
SELECT_GRANTS = "SELECT identity, pattern, access FROM grants ORDER BY identity, pattern"
SELECT_BEARER_KEYS = """
SELECT identity, hash, label, created_us, revoked_us
FROM bearer_keys ORDER BY identity, created_us, hash
"""


class BearerKey(msgspec.Struct, frozen=True):
    """What is known of one bearer key."""

    hash: str
    label: str | None
    created_us: int
    revoked_us: int | None

    def record(self) -> records.BearerKeyRecord:
        return {
            "key_id": key_id_of(self.hash),
            "label": self.label,
            "created_at": to_iso(self.created_us),
            "revoked_at": to_iso_or_none(self.revoked_us),
        }


class Entry(msgspec.Struct, frozen=True):
    """A row of the identities, with what belongs to it."""

    name: str
    public_key: str | None
    requests_per_s: float | None
    memories_max: int | None
    memories: int
    created_us: int
    revoked_us: int | None
    grants: tuple[Grant, ...] = ()
    bearer_keys: tuple[BearerKey, ...] = ()

    def identities(self) -> Iterator[tuple[str, Identity | None]]:
        """All by which it is or was known, with who that is; None for what was revoked."""
        grants = Grants(self.grants)
        for credential, revoked_us in self._credentials():
            yield (
                credential,
                None
                if revoked_us
                else Identity(
                    self.name, grants, credential, self.requests_per_s, self.memories_max
                ),
            )

    def _credentials(self) -> Iterator[tuple[str, int | None]]:
        if self.public_key is not None:
            yield self.public_key, self.revoked_us
        for key in self.bearer_keys:
            yield credentials.of_hash(key.hash), self.revoked_us or key.revoked_us

    def record(self) -> records.IdentityRecord:
        return {
            "name": self.name,
            "public_key": self.public_key,
            "grants": grant_records(self.grants),
            "bearer_keys": [key.record() for key in self.bearer_keys],
            "requests_per_s": self.requests_per_s,
            "memories_max": self.memories_max,
            "memories": self.memories,
            "created_at": to_iso(self.created_us),
            "revoked_at": to_iso_or_none(self.revoked_us),
        }


def grant_records(grants: tuple[Grant, ...]) -> list[records.GrantRecord]:
    """Grants as answers show them."""
    return [{"pattern": grant.pattern, "access": grant.access} for grant in grants]


def read_entries(session: Session) -> list[Entry]:
    """All identities, by name."""
    grants: dict[str, list[Grant]] = {}
    for name, pattern, access in session.execute(SELECT_GRANTS):
        grants.setdefault(name, []).append(Grant(pattern, access))
    keys: dict[str, list[BearerKey]] = {}
    for name, *rest in session.execute(SELECT_BEARER_KEYS):
        keys.setdefault(name, []).append(BearerKey(*rest))
    return [_entry(row, grants, keys) for row in session.execute(SELECT_IDENTITIES)]


def _entry(row: Row, grants: dict[str, list[Grant]], keys: dict[str, list[BearerKey]]) -> Entry:
    name = row[0]
    return msgspec.structs.replace(
        Entry(*row), grants=tuple(grants.get(name, ())), bearer_keys=tuple(keys.get(name, ()))
    )
