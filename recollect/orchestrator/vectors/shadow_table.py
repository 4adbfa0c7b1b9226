"""The table in which a new model's vectors are gathered until it takes the place of the old one's.

Another orchestrator may have chosen another model meanwhile: whoever writes to the table makes sure
in the same transaction that the store is still on its way to theirs.
"""

from __future__ import annotations

from collections.abc import Callable

from recollect.orchestrator.embedding.choosing import ACTIVE, MODEL, TARGET
from recollect.orchestrator.embedding.interface import Pooled
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.specs import EmbedderSpec
from recollect.orchestrator.memories.rows import COLUMNS, PRESENT, MemoryRow
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.storage.journal import READ_LEDGER
from recollect.orchestrator.storage.properties import get_property, set_property
from recollect.orchestrator.vectors.memory_vectors import EMBED_LATER_AGAIN

PAGE_TEXTS = 256
CATCH_UP_ROWS = 256
CLEAR_ROWS = 2_000
BEHIND_MAX = 1_000_000

NEXT = f"""
SELECT {COLUMNS} FROM memories WHERE num > ? AND {PRESENT} ORDER BY num LIMIT ?
"""
# What changed since its new vector was made, or has none yet.
BEHIND = """
SELECT v.num, v.seq FROM vectors v LEFT JOIN shadow_vectors s ON s.num = v.num
WHERE v.seq > ? AND (s.num IS NULL OR s.seq < v.seq) ORDER BY v.seq LIMIT ?
"""
LIVING = f"SELECT {COLUMNS} FROM memories WHERE num = ? AND {PRESENT}"
KEEP = """
INSERT INTO shadow_vectors (num, model, vector, seq, passages) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (num) DO UPDATE SET
    model = excluded.model, vector = excluded.vector, seq = excluded.seq,
    passages = excluded.passages
"""
STILL_LIVING = f"SELECT 1 FROM memories WHERE num = ? AND {PRESENT}"
FORGET = "DELETE FROM shadow_vectors WHERE num = ?"
SWAP = (
    "ALTER TABLE vectors RENAME TO retired_vectors",
    "ALTER TABLE shadow_vectors RENAME TO vectors",
    "ALTER TABLE retired_vectors RENAME TO shadow_vectors",
)
CLEAR = """
DELETE FROM shadow_vectors WHERE num IN (SELECT num FROM shadow_vectors ORDER BY num LIMIT ?)
RETURNING 1
"""
OTHERS = "SELECT num FROM vectors WHERE seq >= ? AND model <> ?"
FOREIGN = "SELECT 1 FROM shadow_vectors WHERE model <> ? LIMIT 1"
LAST = "SELECT coalesce(max(num), 0) FROM shadow_vectors"
COUNT = "SELECT count(*) FROM vectors"


def _is_target(session: Session, spec: EmbedderSpec | None) -> bool:
    """Whether the store is on its way to a model, or to none: another orchestrator may have said
    otherwise."""
    return get_property(session, TARGET) == (None if spec is None else spec.to_text())


def clear_some(target: EmbedderSpec | None, transaction: WriteTransaction) -> int:
    """Remove a bounded number of vectors; how many, and none if the store has another target."""
    if not _is_target(transaction, target):
        return 0
    return len(transaction.execute(CLEAR, (CLEAR_ROWS,)))


def next_page(after: int, session: Session) -> tuple[int, list[MemoryRow]]:
    """Rows, and the sequence number of the moment at which they were as they are."""
    [(seq, _)] = session.execute(READ_LEDGER)
    return int(seq), [MemoryRow(*row) for row in session.execute(NEXT, (after, PAGE_TEXTS))]


def behind_page(since_seq: int, session: Session) -> tuple[int, int | None, list[MemoryRow]]:
    """A page of what is behind, the number it reaches to, and None there if it is the last."""
    [(seq, _)] = session.execute(READ_LEDGER)
    found = session.execute(BEHIND, (since_seq, CATCH_UP_ROWS))
    rows = [MemoryRow(*row) for num, _ in found for row in session.execute(LIVING, (num,))]
    # Several may share a number: the page's last one is looked at again.
    reached_seq = int(found[-1][1]) - 1 if len(found) == CATCH_UP_ROWS else None
    return int(seq), reached_seq, rows


def gone(nums: list[int], session: Session) -> list[int]:
    """Which of some memories live no longer."""
    return [num for num in nums if not session.execute(STILL_LIVING, (num,))]


def keep(
    spec: EmbedderSpec,
    model: str,
    seq: int,
    made: list[tuple[MemoryRow, Pooled]],
    transaction: WriteTransaction,
) -> set[int] | None:
    """Keep new vectors, except of memories that were deleted meanwhile; the numbers of the kept.

    None if the store is not on its way to this model any more.
    """
    if not _is_target(transaction, spec):
        return None
    kept = {row.num for row, _ in made if transaction.execute(STILL_LIVING, (row.num,))}
    transaction.executemany(
        KEEP,
        [
            (row.num, model, pooled.vector, seq, pooled.passages or None)
            for row, pooled in made
            if row.num in kept
        ],
    )
    return kept


def switch_tables(
    spec: EmbedderSpec,
    target: Meaning,
    since_seq: int,
    exchange: Callable[[], None],
    transaction: WriteTransaction,
) -> int | None:
    """Exchange the tables; what is still behind is left to be embedded late.

    None if the store is not on its way to this model any more.
    """
    if not _is_target(transaction, spec):
        return None
    behind = [num for num, _ in transaction.execute(BEHIND, (since_seq, BEHIND_MAX))]
    for num in behind:
        transaction.execute(FORGET, (num,))
        transaction.execute(EMBED_LATER_AGAIN, (num,))
    for statement in SWAP:
        transaction.execute(statement)
    set_property(transaction, ACTIVE, spec.to_text())
    set_property(transaction, MODEL, target.model)
    set_property(transaction, TARGET, None)

    def after_commit() -> None:
        for num in behind:
            target.index.remove(num)
        exchange()

    transaction.after_commit.append(after_commit)
    return transaction.last_seq()


def sweep(seq: int, target: Meaning, transaction: WriteTransaction) -> None:
    """Have embedded again what was written with another model from a change on."""
    for (num,) in transaction.execute(OTHERS, (seq, target.model)):
        transaction.execute("DELETE FROM vectors WHERE num = ?", (num,))
        transaction.execute(EMBED_LATER_AGAIN, (num,))
