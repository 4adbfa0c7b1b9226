"""What every change of an identity has in common: whom it is about, its line, and its force."""

from __future__ import annotations

from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.protocol import records
from recollect.protocol.errors import LimitExceeded, NotFound

FIND = "SELECT revoked_us FROM identities WHERE name = ?"


def require_living(transaction: WriteTransaction, name: str) -> None:
    """Refuse a name that nobody has now."""
    found = transaction.execute(FIND, (name,))
    if not found:
        raise no_such(name)
    if found[0][0] is not None:
        raise NotFound(
            f"The identity {name!r} was revoked: `recollect keys new {name}` makes it anew.",
            name=name,
        )


def changed(
    keyring: Keyring, call: Call, transaction: WriteTransaction, name: str, detail: str
) -> records.IdentityChanged:
    """Enter a change of an identity, and have it in force once it is on disk."""
    seq = record(call, transaction, subject=name, detail=detail)
    entry = next(entry for entry in keyring.changed(transaction) if entry.name == name)
    return {"status": "success", "identity": entry.record(), "seq": seq}


def no_such(name: str) -> NotFound:
    return NotFound(f"There is no identity {name!r}: `recollect keys list` shows all.", name=name)


def too_many(limit: str, maximum: int, whose: str, what: str) -> LimitExceeded:
    return LimitExceeded(
        f"{whose} {maximum:,} {what} already, which is the limit.", limit=limit, maximum=maximum
    )
