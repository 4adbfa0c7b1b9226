"""Exact inner products with FAISS's own kernels: one thread, no copies, the GIL let go.

A pass over many rows may differ from another in the last bit, so what is left of it is scored once
more by `scores_at`, which gives equal vectors equal scores wherever they are kept.
"""

from __future__ import annotations

import threading
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.vectors.bitmaps import Positions

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Found = tuple[Numbers, Scores]

# Two sums of the same products in another order differ by less than this for unit vectors.
ROUNDING = np.float32(2e-6)
NO_NUMBERS: Numbers = np.empty(0, dtype=np.int64)
NO_SCORES: Scores = np.empty(0, dtype=np.float32)
NOTHING: Found = (NO_NUMBERS, NO_SCORES)

# FAISS's own types do not know its kernels.
_faiss: Any = faiss
_pointer: Any = faiss.swig_ptr
_threads = threading.local()


def one_thread() -> None:
    """Have FAISS use one thread in this thread: one query is faster so, and other cores stay free.

    The setting belongs to the thread that makes it, hence every searching thread makes it once.
    """
    if not getattr(_threads, "limited", False):
        faiss.omp_set_num_threads(1)
        _threads.limited = True


def scores_of_all(rows: Vectors, query: Vectors) -> Scores:
    """The query's inner product with every row."""
    scores = np.empty(len(rows), dtype=np.float32)
    if len(rows):
        _faiss.fvec_inner_products_ny(
            _pointer(scores), _pointer(query), _pointer(rows), rows.shape[1], len(rows)
        )
    return scores


def scores_at(rows: Vectors, positions: Positions, query: Vectors) -> Scores:
    """The query's inner product with the rows at some positions, the same for the same row."""
    scores = np.empty(len(positions), dtype=np.float32)
    if len(positions):
        _faiss.fvec_inner_products_by_idx(
            _pointer(scores),
            _pointer(query),
            _pointer(rows),
            _pointer(positions),
            rows.shape[1],
            1,
            len(positions),
        )
    return scores


def leaders(scores: Scores, k: int) -> Positions:
    """Where the k highest are, and all that could be their equals; in no order."""
    if len(scores) <= k:
        return np.arange(len(scores), dtype=np.int64)
    ordered = scores.copy()
    ordered.partition(len(scores) - k)
    bound = ordered[len(scores) - k] - ROUNDING
    return np.flatnonzero(scores >= bound)


def best(found: list[Found], k: int) -> list[tuple[int, float]]:
    """The k best of several lists, equals by number, the newest first."""
    if len(found) == 1:
        nums, scores = found[0]
    else:
        nums = np.concatenate([part[0] for part in found])
        scores = np.concatenate([part[1] for part in found])
    order = np.lexsort((-nums, -scores))[:k]
    return list(zip(nums[order].tolist(), scores[order].tolist(), strict=True))
