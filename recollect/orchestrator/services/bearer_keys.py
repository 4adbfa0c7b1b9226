"""Bearer keys: made known by their hash, and revoked. The keys themselves never come here."""

from __future__ import annotations

from collections.abc import Callable

from recollect.orchestrator.access.changing import changed, require_living, too_many
from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.calls import Call, writes
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.protocol import records
from recollect.protocol.bearer_keys import key_id_of
from recollect.protocol.errors import AlreadyExists, NotFound
from recollect.protocol.operations import CreateBearerKey, RevokeBearerKey

BEARER_KEYS_MAX = 100
"""Of one identity, those included that were revoked: of these the oldest make room."""

COUNT = "SELECT count(*) FROM bearer_keys WHERE identity = ?"
MAKE_ROOM = """
DELETE FROM bearer_keys WHERE hash = (
    SELECT hash FROM bearer_keys WHERE identity = ? AND revoked_us IS NOT NULL
    ORDER BY revoked_us, hash LIMIT 1
)
RETURNING hash
"""
# All whose hash begins so: no digit of one comes behind f.
HOLDERS = "SELECT identity, revoked_us FROM bearer_keys WHERE hash >= ? AND hash < ?"
INSERT = "INSERT INTO bearer_keys (hash, identity, label, created_us) VALUES (?, ?, ?, ?)"
REVOKE = """
UPDATE bearer_keys SET revoked_us = coalesce(revoked_us, ?)
WHERE identity = ? AND hash >= ? AND hash < ?
RETURNING hash
"""

Write = Callable[[WriteTransaction], records.IdentityChanged]


class BearerKeyService:
    """The bearer keys of identities. A change is in force before it is answered."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    @writes(CreateBearerKey)
    def create_bearer_key(self, call: Call, operation: CreateBearerKey) -> Write:
        name, key_hash = operation.name, operation.key_hash

        def write(transaction: WriteTransaction) -> records.IdentityChanged:
            require_living(transaction, name)
            for holder, revoked_us in transaction.execute(HOLDERS, _span(key_id_of(key_hash))):
                state = "is one of" if revoked_us is None else "was revoked; it was one of"
                raise AlreadyExists(
                    f"This bearer key {state} {holder!r}: make a new one.", name=holder
                )
            ((count,),) = transaction.execute(COUNT, (name,))
            if count >= BEARER_KEYS_MAX and not transaction.execute(MAKE_ROOM, (name,)):
                whose = f"The identity {name!r} has"
                raise too_many("bearer_keys_max", BEARER_KEYS_MAX, whose, "bearer keys")
            transaction.execute(INSERT, (key_hash, name, operation.label, call.now_us))
            detail = f"bearer key {key_id_of(key_hash)}"
            return changed(self._keyring, call, transaction, name, detail)

        return write

    @writes(RevokeBearerKey)
    def revoke_bearer_key(self, call: Call, operation: RevokeBearerKey) -> Write:
        name, key_id = operation.name, operation.key_id

        def write(transaction: WriteTransaction) -> records.IdentityChanged:
            if not transaction.execute(REVOKE, (call.now_us, name, *_span(key_id))):
                raise NotFound(
                    f"The identity {name!r} has no bearer key {key_id!r}; `recollect keys list` "
                    "shows those it has.",
                    name=name,
                    key_id=key_id,
                )
            detail = f"bearer key {key_id} revoked"
            return changed(self._keyring, call, transaction, name, detail)

        return write


def _span(key_id: str) -> tuple[str, str]:
    """Between which two texts all hashes lie that begin with an id."""
    return key_id, f"{key_id}g"
