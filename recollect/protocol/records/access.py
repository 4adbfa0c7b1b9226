"""The shapes of identities and what they may do."""

from __future__ import annotations

from typing import TypedDict


class GrantRecord(TypedDict):
    """`pattern` is `*`, a prefix such as `user`, or a namespace, and covers all below it."""

    pattern: str
    access: str


class BearerKeyRecord(TypedDict):
    """`key_id` is the beginning of the hash of the key, by which it is named."""

    key_id: str
    label: str | None
    created_at: str
    revoked_at: str | None


class IdentityRecord(TypedDict):
    name: str
    public_key: str | None
    grants: list[GrantRecord]
    bearer_keys: list[BearerKeyRecord]
    requests_per_s: float | None
    memories_max: int | None
    memories: int
    created_at: str
    revoked_at: str | None


class IdentityChanged(TypedDict):
    status: str
    identity: IdentityRecord
    seq: int


class IdentitiesListed(TypedDict):
    status: str
    identities: list[IdentityRecord]
    count: int
    server_key: str | None
    """The public key by which clients know the orchestrator, if it asks for keys."""


class Myself(TypedDict):
    status: str
    identity: str
    grants: list[GrantRecord]
