"""Pairs of memories that are near in meaning, all of a namespace at once.

Plain matrix products, a block of rows at a time. It is work for a thread, not for the event loop.
"""

from __future__ import annotations

import numpy as np

from recollect.orchestrator.embedding.interface import Vectors

VECTORS_MAX = 20_000
"""Of one namespace; the time grows with the square."""
PAIRS_MAX = 20_000
BLOCK_ITEMS = 4_000_000

Pair = tuple[int, int, float]


def near_pairs(vectors: Vectors, similarity: float, pairs_max: int = PAIRS_MAX) -> list[Pair]:
    """Places of rows whose cosine similarity reaches a bound, the nearest first."""
    vectors = vectors[:VECTORS_MAX]
    count = len(vectors)
    if count < 2:
        return []
    block_rows = max(1, BLOCK_ITEMS // count)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    kept = 0
    for start in range(0, count, block_rows):
        block = vectors[start : start + block_rows] @ vectors.T
        rows, columns = np.nonzero(block >= similarity)
        upper = columns > rows + start
        rows, columns = rows[upper], columns[upper]
        scores = block[rows, columns]
        if len(scores) > pairs_max:
            best = np.argpartition(-scores, pairs_max)[:pairs_max]
            rows, columns, scores = rows[best], columns[best], scores[best]
        found.append((rows + start, columns, scores))
        kept += len(scores)
        if kept > 4 * pairs_max:
            found = [_best(found, pairs_max)]
            kept = pairs_max
    rows, columns, scores = _best(found, pairs_max)
    return list(zip(rows.tolist(), columns.tolist(), scores.tolist(), strict=True))


def _best(
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]], pairs_max: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(-scores, kind="stable")[:pairs_max]
    return rows[order], columns[order], scores[order]
