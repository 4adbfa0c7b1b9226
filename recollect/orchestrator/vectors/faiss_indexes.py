"""The vector indexes of this process, each at start its saved segments, completed from the stored
vectors."""

from __future__ import annotations

import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np

from recollect.config.settings import IndexSettings
from recollect.orchestrator.embedding.interface import VECTOR_ITEM_BYTES, Embedder, Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.off_loop import to_the_end
from recollect.orchestrator.search.vectors import FaissIndex, Numbers
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.storage.listed import numbers
from recollect.orchestrator.troubles.trouble import Trouble
from recollect.orchestrator.vectors.memory_vectors import EMBED_LATER_AGAIN, ROWS_AT_ONCE

INDEX_FOLDER = "index"
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


class FaissIndexes:
    """Those of one data folder, or of none."""

    def __init__(self, settings: IndexSettings, data: Path | None) -> None:
        self._settings = settings
        self._folder = None if data is None else data / INDEX_FOLDER

    def make(self, embedder: Embedder, trouble: Trouble) -> FaissIndex:
        folder = self._folder
        return FaissIndex(
            embedder.dimensions,
            folder=None if folder is None else folder / folder_name(embedder.model),
            model=embedder.model,
            head_max=self._settings.head_max,
            trouble=trouble,
        )

    async def load(self, storage: Storage, meaning: Meaning, table: str = "vectors") -> int:
        loaded = await _load(storage, meaning, table)
        if table != TABLES[0]:
            # Whatever is deleted from now on, the index hears of. What was deleted before, it may
            # have read just then.
            await storage.read(partial(_drop_gone, table, meaning))
        return loaded

    async def keep_up(self, storage: Storage, meaning: Meaning) -> None:
        """Nothing is due: the index grows by itself."""

    async def discard(self, storage: Storage, meaning: Meaning) -> None:
        await to_the_end(_faiss(meaning).discard)

    def forget_others(self, model: str) -> None:
        if self._folder is not None and self._folder.is_dir():
            for folder in self._folder.iterdir():
                if folder.name != folder_name(model):
                    shutil.rmtree(folder, ignore_errors=True)


def folder_name(model: str) -> str:
    """The name of a model as that of a folder."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", model)


def _faiss(meaning: Meaning) -> FaissIndex:
    assert isinstance(meaning.index, FaissIndex)
    return meaning.index


async def _load(storage: Storage, meaning: Meaning, table: str) -> int:
    """Fill the index from its files and from the stored vectors; how many were not in the files."""
    assert table in TABLES
    await to_the_end(_faiss(meaning).open)
    missing = await storage.read(partial(_missing, table, meaning))
    misfits: list[int] = []
    for start in range(0, len(missing), PAGE_ROWS):
        misfits += await storage.read(
            partial(_load_page, table, meaning, missing[start : start + PAGE_ROWS])
        )
    for start in range(0, len(misfits), PAGE_ROWS):
        await storage.write(partial(_drop, table, misfits[start : start + PAGE_ROWS]))
    return len(missing)


def _drop_gone(table: str, meaning: Meaning, session: Session) -> None:
    """Take out of the index what is not stored any more."""
    _faiss(meaning).reconcile(*_pairs(table, session))


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

    return np.sort(_faiss(meaning).reconcile(nums, seqs, trusted))


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
        [similarity] = _faiss(meaning).similarities(vector, np.array([num], dtype=np.int64))
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
