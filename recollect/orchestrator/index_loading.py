"""The vector index at start: taken from the stored vectors, completed where some are missing."""

from __future__ import annotations

from functools import partial

import numpy as np

from recollect.orchestrator.embedding.interface import Embedder
from recollect.orchestrator.memory_store import REPLACE_VECTOR
from recollect.orchestrator.search.vectors import VectorIndex
from recollect.orchestrator.storage.interface import Row, Session, Storage, WriteTransaction

PAGE_ROWS = 10_000
EMBED_ROWS = 1_000

VECTORS = """
SELECT v.num, v.vector FROM vectors v JOIN memories m ON m.num = v.num
WHERE v.num > ? AND v.model = ? AND m.deleted_us IS NULL ORDER BY v.num LIMIT ?
"""
WITHOUT_VECTOR = """
SELECT m.num, m.content FROM memories m LEFT JOIN vectors v ON v.num = m.num AND v.model = ?
WHERE m.num > ? AND m.deleted_us IS NULL AND v.num IS NULL ORDER BY m.num LIMIT ?
"""


async def load_index(storage: Storage, embedder: Embedder, index: VectorIndex) -> int:
    """Fill the index; returns how many memories had to be embedded anew."""
    await storage.read(lambda session: _load(session, embedder, index))
    embedded, after = 0, 0
    while rows := await storage.read(partial(_without_vector, embedder.model, after)):
        vectors = await embedder.embed([content for _, content in rows])
        nums = [num for num, _ in rows]
        params = [
            (num, embedder.model, vector.tobytes())
            for num, vector in zip(nums, vectors, strict=True)
        ]

        await storage.write(partial(_keep, params))
        index.load(nums, vectors)
        embedded, after = embedded + len(rows), nums[-1]
    return embedded


def _keep(params: list[tuple[int, str, bytes]], transaction: WriteTransaction) -> None:
    transaction.executemany(REPLACE_VECTOR, params)


def _without_vector(model: str, after: int, session: Session) -> list[Row]:
    return session.execute(WITHOUT_VECTOR, (model, after, EMBED_ROWS))


def _load(session: Session, embedder: Embedder, index: VectorIndex) -> None:
    after = 0
    while rows := session.execute(VECTORS, (after, embedder.model, PAGE_ROWS)):
        nums = [num for num, _ in rows]
        joined = b"".join(vector for _, vector in rows)
        index.load(nums, np.frombuffer(joined, dtype=np.float32).reshape(len(nums), -1))
        after = nums[-1]
