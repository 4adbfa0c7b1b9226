"""The oldest entries of the journal taken away, so that the rest can still be verified.

The ledger keeps an anchor: the number and the hash of the last entry that is gone. The trimming has
an entry of its own, in the same transaction, which says the same. What only the journal knew and
somebody still needs, who wrote a version under another name, is put aside first.
"""

from __future__ import annotations

import msgspec

from recollect.orchestrator.storage.interface import Change, Session

TRIMMING = "trim_journal"
READ_ANCHOR = "SELECT trimmed_seq, trimmed_head FROM ledger WHERE id = 1"
OLDEST = "SELECT seq, at_us, hash FROM journal WHERE seq > ? ORDER BY seq LIMIT ?"
KEEP_WRITERS = """
INSERT INTO trimmed_writers (num, version, identity)
SELECT DISTINCT m.num, j.version_after, j.identity
FROM journal j JOIN memories m ON m.id = j.subject
WHERE j.seq > ? AND j.seq <= ? AND j.agent <> j.identity AND j.version_after IS NOT NULL
    AND (j.version_before IS NULL OR j.version_before <> j.version_after)
ON CONFLICT DO NOTHING
"""
REMOVE = "DELETE FROM journal WHERE seq <= ?"
MOVE_ANCHOR = "UPDATE ledger SET trimmed_seq = ?, trimmed_head = ? WHERE id = 1"


class Oldest(msgspec.Struct, frozen=True):
    """The entries at the beginning that are old enough."""

    after: int
    """Behind this one."""
    seq: int
    """Up to this one."""
    head: bytes
    count: int
    complete: bool
    """Whether the next one is not old enough, or there is none."""


def oldest(session: Session, before_us: int, limit: int) -> Oldest:
    """So many entries from the first on, up to the first that is younger."""
    [(after, head)] = session.execute(READ_ANCHOR)
    found = session.execute(OLDEST, (after, limit + 1))
    seq, count = after, 0
    for entry_seq, at_us, entry_hash in found[:limit]:
        if at_us >= before_us:
            return Oldest(after, seq, head or b"", count, True)
        seq, head, count = entry_seq, bytes(entry_hash), count + 1
    complete = len(found) <= limit or found[limit][1] >= before_us
    return Oldest(after, seq, head or b"", count, complete)


def remove(session: Session, old: Oldest) -> None:
    """Take them away and begin the journal behind them."""
    session.execute(KEEP_WRITERS, (old.after, old.seq))
    session.execute(REMOVE, (old.seq,))
    session.execute(MOVE_ANCHOR, (old.seq, old.head))


def subject_of(seq: int) -> str:
    """What the entry of a trimming is about."""
    return f"journal:{seq}"


def detail_of(head: bytes) -> str:
    """What it says of the last entry that is gone."""
    return f"its hash was {head.hex()}"


def says_trimmed(change: Change, seq: int, head: bytes) -> bool:
    """Whether an entry says that the journal was trimmed so far."""
    return (
        change.operation == TRIMMING
        and change.outcome is None
        and change.subject == subject_of(seq)
        and change.detail == detail_of(head)
    )
