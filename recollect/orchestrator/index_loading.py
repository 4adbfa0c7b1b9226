"""The vector index at start: its saved segments, completed from the stored vectors."""

from __future__ import annotations

from functools import partial

import numpy as np

from recollect.orchestrator.embedding.interface import VECTOR_ITEM_BYTES, Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.memory_vectors import EMBED_LATER_AGAIN, ROWS_AT_ONCE
from recollect.orchestrator.off_loop import to_the_end
from recollect.orchestrator.search.vectors import Numbers
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.storage.listed import numbers

PAGE_ROWS = 10_000

TABLES = ("vectors", "shadow_vectors")
# A list leaves the database fastest as one value.
PAIRS = """
SELECT string_agg(CAST(num AS TEXT), ','), string_agg(CAST(seq AS TEXT), ',') FROM {table}
"""
PAGE = "SELECT num, seq, model, vector FROM {table} WHERE num IN ({marks}) ORDER BY num"
DROP = "DELETE FROM {table} WHERE num = ?"
VECTOR = "SELECT model, vector FROM {table} WHERE num = ?"

LATEST_COMPARED = 64
SAMPLE_COMPARED = 192
TOLERANCE = 1e-3


async def load_index(storage: Storage, meaning: Meaning, table: str = "vectors") -> int:
    """Fill the index from its files and from the stored vectors; how many were not in the files.

    A stored vector of another model or of a wrong length is dropped, to be made anew.
    """
    assert table in TABLES
    index = meaning.index
    await to_the_end(index.open)
    missing = await storage.read(partial(_missing, table, meaning))
    misfits: list[int] = []
    for start in range(0, len(missing), PAGE_ROWS):
        misfits += await storage.read(
            partial(_load_page, table, meaning, missing[start : start + PAGE_ROWS])
        )
    for start in range(0, len(misfits), PAGE_ROWS):
        await storage.write(partial(_drop, table, misfits[start : start + PAGE_ROWS]))
    return len(missing)


def drop_gone(table: str, meaning: Meaning, session: Session) -> None:
    """Take out of the index what is not stored any more."""
    meaning.index.reconcile(*_pairs(table, session))


def _pairs(table: str, session: Session) -> tuple[Numbers, Numbers]:
    assert table in TABLES
    [(nums, seqs)] = session.execute(PAIRS.format(table=table))
    return numbers(nums), numbers(seqs)


def _missing(table: str, meaning: Meaning, session: Session) -> Numbers:
    nums, seqs = _pairs(table, session)

    def trusted(kept: Numbers) -> bool:
        return _agrees(
            table, meaning, nums[np.isin(nums, kept)], seqs[np.isin(nums, kept)], session
        )

    return np.sort(meaning.index.reconcile(nums, seqs, trusted))


def _agrees(table: str, meaning: Meaning, nums: Numbers, seqs: Numbers, session: Session) -> bool:
    """Whether the index holds the vectors of this store, by a sample.

    If the files come from a history that went another way, the latest of what both have in common
    differ; if they come from another store, almost all do.
    """
    latest = nums[np.argsort(seqs)[-LATEST_COMPARED:]]
    some = np.random.default_rng().choice(nums, min(SAMPLE_COMPARED, len(nums)), replace=False)
    for num in {*latest.tolist(), *some.tolist()}:
        [(model, stored)] = session.execute(VECTOR.format(table=table), (num,))
        if (
            model != meaning.model
            or len(stored) != VECTOR_ITEM_BYTES * meaning.embedding.dimensions
        ):
            continue  # such a one is dropped when the index is loaded
        vector = np.frombuffer(stored, dtype=np.float32)
        [similarity] = meaning.index.similarities(vector, np.array([num], dtype=np.int64))
        if not abs(similarity - float(vector @ vector)) < TOLERANCE:
            return False
    return True


def _load_page(table: str, meaning: Meaning, wanted: Numbers, session: Session) -> list[int]:
    """Load some vectors; returns the numbers of those that do not fit."""
    length = VECTOR_ITEM_BYTES * meaning.embedding.dimensions
    misfits, nums, seqs, parts = list[int](), list[int](), list[int](), list[bytes]()
    for start in range(0, len(wanted), ROWS_AT_ONCE):
        part = wanted[start : start + ROWS_AT_ONCE].tolist()
        sql = PAGE.format(table=table, marks=", ".join("?" for _ in part))
        for num, seq, model, vector in session.execute(sql, part):
            if model != meaning.model or len(vector) != length:
                misfits.append(num)
                continue
            nums.append(num)
            seqs.append(seq)
            parts.append(bytes(vector))
    if nums:
        vectors: Vectors = np.frombuffer(b"".join(parts), dtype=np.float32)
        meaning.index.load(
            np.array(nums, dtype=np.int64),
            np.array(seqs, dtype=np.int64),
            vectors.reshape(len(nums), -1),
        )
    return misfits


def _drop(table: str, nums: list[int], transaction: WriteTransaction) -> None:
    transaction.executemany(DROP.format(table=table), [(num,) for num in nums])
    if table == "vectors":
        transaction.executemany(EMBED_LATER_AGAIN, [(num,) for num in nums])
