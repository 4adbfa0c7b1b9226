"""Identities and their grants: made, listed, changed and revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from recollect.orchestrator.access.changing import (
    FIND,
    changed,
    no_such,
    require_living,
    too_many,
)
from recollect.orchestrator.access.entries import grant_records, read_entries
from recollect.orchestrator.access.grants import PATTERN_RULE, is_pattern, normalised
from recollect.orchestrator.access.identities import OWN_NAMES
from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import AlreadyExists, InvalidArgument, NotFound
from recollect.protocol.key_files import KEY_RULE, is_key
from recollect.protocol.operations import (
    CreateIdentity,
    GrantAccess,
    ListIdentities,
    RevokeAccess,
    WhoAmI,
)

IDENTITIES_MAX = 10_000
GRANTS_MAX = 1_000

COUNT = "SELECT count(*) FROM identities"
HOLDER = "SELECT name, revoked_us FROM identities WHERE public_key = ?"
INSERT = """
INSERT INTO identities (name, public_key, requests_per_s, memories_max, memories, created_us)
VALUES (?, ?, ?, ?, 0, ?)
"""
# What it has stored stays its own, and goes on to be counted.
REVIVE = """
UPDATE identities
SET public_key = ?, requests_per_s = ?, memories_max = ?, created_us = ?, revoked_us = NULL
WHERE name = ?
"""
GRANTS_OF = "SELECT pattern FROM grants WHERE identity = ?"
GRANT = """
INSERT INTO grants (identity, pattern, access) VALUES (?, ?, ?)
ON CONFLICT (identity, pattern) DO UPDATE SET access = excluded.access
"""
TAKE_BACK = "DELETE FROM grants WHERE identity = ? AND pattern = ? RETURNING access"
TAKE_ALL_BACK = "DELETE FROM grants WHERE identity = ?"
REVOKE = "UPDATE identities SET revoked_us = ? WHERE name = ?"
REVOKE_BEARER_KEYS = """
UPDATE bearer_keys SET revoked_us = ? WHERE identity = ? AND revoked_us IS NULL
"""

Write = Callable[[WriteTransaction], records.IdentityChanged]


class IdentityService:
    """Who is known and what they may do. A change is in force before it is answered."""

    def __init__(
        self, storage: Storage, keyring: Keyring, validator: Validator, server_key: str | None
    ) -> None:
        self._storage = storage
        self._keyring = keyring
        self._validator = validator
        self._server_key = server_key

    @writes(CreateIdentity)
    def create_identity(self, call: Call, operation: CreateIdentity) -> Write:
        name, key = operation.name, operation.public_key
        if name in OWN_NAMES:
            raise AlreadyExists(
                f"The name {name!r} stands for the orchestrator or its own machine; choose "
                "another.",
                name=name,
            )
        if key is not None and not is_key(key):
            raise InvalidArgument(f"public_key is not a key: {KEY_RULE}.", field="public_key")
        bounds = (operation.requests_per_s, operation.memories_max)

        def write(transaction: WriteTransaction) -> records.IdentityChanged:
            found = transaction.execute(FIND, (name,))
            if found and found[0][0] is None:
                raise AlreadyExists(
                    f"There is an identity {name!r} already: choose another name, or revoke that "
                    f"one first with `recollect keys revoke {name}`.",
                    name=name,
                )
            self._check_free(transaction, key)
            if found:
                transaction.execute(REVIVE, (key, *bounds, call.now_us, name))
            else:
                self._check_room(transaction)
                transaction.execute(INSERT, (name, key, *bounds, call.now_us))
            return self._changed(call, transaction, name, f"key {key}" if key else "no key")

        return write

    @reads(ListIdentities)
    def list_identities(
        self, call: Call, operation: ListIdentities
    ) -> asyncio.Future[records.IdentitiesListed]:
        def read(session: Session) -> records.IdentitiesListed:
            entries = read_entries(session)
            return {
                "status": "success",
                "identities": [entry.record() for entry in entries],
                "count": len(entries),
                "server_key": self._server_key,
            }

        return self._storage.read(read)

    @writes(GrantAccess)
    def grant_access(self, call: Call, operation: GrantAccess) -> Write:
        name, access = operation.name, operation.access
        pattern = normalised(operation.pattern)
        self._validator.text("pattern", pattern, "namespace_chars_max")
        if not is_pattern(pattern):
            raise InvalidArgument(
                f"{operation.pattern!r} is not a pattern: {PATTERN_RULE}.", field="pattern"
            )

        def write(transaction: WriteTransaction) -> records.IdentityChanged:
            require_living(transaction, name)
            given = {row[0] for row in transaction.execute(GRANTS_OF, (name,))}
            if pattern not in given and len(given) >= GRANTS_MAX:
                raise too_many("grants_max", GRANTS_MAX, f"The identity {name!r} has", "grants")
            transaction.execute(GRANT, (name, pattern, access))
            return self._changed(call, transaction, name, f"{access} on {pattern}")

        return write

    @writes(RevokeAccess)
    def revoke_access(self, call: Call, operation: RevokeAccess) -> Write:
        name = operation.name
        pattern = None if operation.pattern is None else normalised(operation.pattern)

        def write(transaction: WriteTransaction) -> records.IdentityChanged:
            if pattern is not None:
                require_living(transaction, name)
                if not transaction.execute(TAKE_BACK, (name, pattern)):
                    raise NotFound(
                        f"The identity {name!r} has no grant on {pattern!r}; `recollect keys list` "
                        "shows those it has.",
                        name=name,
                        pattern=pattern,
                    )
                return self._changed(call, transaction, name, f"nothing on {pattern} any more")
            found = transaction.execute(FIND, (name,))
            if not found:
                raise no_such(name)
            if found[0][0] is None:
                transaction.execute(REVOKE, (call.now_us, name))
                # If the name is given again, its old keys stay what they are.
                transaction.execute(REVOKE_BEARER_KEYS, (call.now_us, name))
            transaction.execute(TAKE_ALL_BACK, (name,))
            return self._changed(call, transaction, name, "revoked")

        return write

    @reads(WhoAmI)
    def who_am_i(self, call: Call, operation: WhoAmI) -> records.Myself:
        return {
            "status": "success",
            "identity": call.identity,
            "grants": grant_records(call.grants.grants),
        }

    def _changed(
        self, call: Call, transaction: WriteTransaction, name: str, detail: str
    ) -> records.IdentityChanged:
        return changed(self._keyring, call, transaction, name, detail)

    def _check_free(self, transaction: WriteTransaction, key: str | None) -> None:
        """Refuse a key that is or was somebody's: a key that was revoked stays so."""
        if key is None:
            return
        if key in self._keyring.local_keys:
            raise AlreadyExists("This key is the one of the orchestrator's own machine.")
        for holder, revoked_us in transaction.execute(HOLDER, (key,)):
            state = "is the one of" if revoked_us is None else "was revoked; it was the one of"
            raise AlreadyExists(f"This key {state} {holder!r}: make a new one.", name=holder)

    def _check_room(self, transaction: WriteTransaction) -> None:
        ((count,),) = transaction.execute(COUNT)
        if count >= IDENTITIES_MAX:
            raise too_many("identities_max", IDENTITIES_MAX, "There are", "identities")
