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
WHERE v.num > ? AND v.model = ? AND length(v.vector) = ? AND m.deleted_us IS NULL
ORDER BY v.num LIMIT ?
"""
WITHOUT_VECTOR = """
SELECT m.num, m.content FROM memories m
LEFT JOIN vectors v ON v.num = m.num AND v.model = ? AND length(v.vector) = ?
WHERE m.num > ? AND m.deleted_us IS NULL AND v.num IS NULL ORDER BY m.num LIMIT ?
"""


def bytes_of(embedder: Embedder) -> int:
    """How long a stored vector must be; one of another length is damaged and made anew."""
    return 4 * embedder.dimensions


async def load_index(storage: Storage, embedder: Embedder, index: VectorIndex) -> int:
    """Fill the index; returns how many memories had to be embedded anew."""
    await storage.read(lambda session: _load(session, embedder, index))
    embedded, after = 0, 0
    while rows := await storage.read(partial(_without_vector, embedder, after)):
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


def _without_vector(embedder: Embedder, after: int, session: Session) -> list[Row]:
    params = (embedder.model, bytes_of(embedder), after, EMBED_ROWS)
    return session.execute(WITHOUT_VECTOR, params)


def _load(session: Session, embedder: Embedder, index: VectorIndex) -> None:
    after = 0
    while rows := session.execute(VECTORS, (after, embedder.model, bytes_of(embedder), PAGE_ROWS)):
        nums = [num for num, _ in rows]
        joined = b"".join(vector for _, vector in rows)
        index.load(nums, np.frombuffer(joined, dtype=np.float32).reshape(len(nums), -1))
        after = nums[-1]
