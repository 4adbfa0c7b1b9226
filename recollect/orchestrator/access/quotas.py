"""How many memories an identity may have stored.

Only those that have a bound are counted: each memory they store has a row that says whose it is,
and their count moves in the memory's own transaction. A memory counts until it is purged.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.calls import Call
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.protocol.errors import LimitExceeded

COUNT_UP = """
UPDATE identities SET memories = memories + ?
WHERE name = ? AND (memories_max IS NULL OR memories + ? <= memories_max)
RETURNING memories
"""
COUNT_DOWN = "UPDATE identities SET memories = memories - 1 WHERE name = ?"
OWN = Insert("owned", ("num", "identity"))
DISOWN = "DELETE FROM owned WHERE num = ? RETURNING identity"
USED = "SELECT memories FROM identities WHERE name = ?"


def take(call: Call, transaction: WriteTransaction, count: int) -> None:
    """Refuse unless the caller may store so many more."""
    if call.memories_max is None or not count:
        return
    if transaction.execute(COUNT_UP, (count, call.identity, count)):
        return
    found = transaction.execute(USED, (call.identity,))
    used = found[0][0] if found else 0
    raise LimitExceeded(
        f"The identity {call.identity!r} may have {call.memories_max:,} memories and has {used:,}; "
        f"{count:,} more do not fit. Purge some, or ask for a larger memories_max.",
        limit="memories_max",
        maximum=call.memories_max,
        actual=used + count,
    )


def own(call: Call, transaction: WriteTransaction, nums: Sequence[int]) -> None:
    """Enter whose the new memories are."""
    if call.memories_max is not None:
        transaction.insert(OWN, [(num, call.identity) for num in nums])


def give_back(transaction: WriteTransaction, num: int) -> None:
    """A memory is gone: its owner, if it has one that is counted, may store another."""
    for (identity,) in transaction.execute(DISOWN, (num,)):
        transaction.execute(COUNT_DOWN, (identity,))
