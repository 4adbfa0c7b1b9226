"""Codes of four bits a dimension, for a quick first look at all vectors of a smaller segment.

Where neighbours lie scattered, an inverted file of ten thousand vectors has to visit nearly all of
its lists. These codes are half as long as its own and FAISS compares 32 of them at once, in
registers. They are coarser, so more is looked at closely than is wanted; and how far they were off
there tells whether anything better can be among what was not.

They are made of the vectors whenever a segment is opened or built, and are in no file.
"""

from __future__ import annotations

import math
from typing import Any

import faiss
import numpy as np

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.vectors import bitmaps, scoring
from recollect.orchestrator.search.vectors.bitmaps import Bits, Positions

_faiss: Any = faiss
_pointer: Any = faiss.swig_ptr

LEVELS = 16
# The steps that lose least of a normal distribution of this deviation.
STEP = np.float32(0.335)
ROWS_MAX = 32_768
"""A larger segment is searched sooner by visiting few of its lists."""
ROW_NS = 9.0
SEARCH_NS = 10_000.0
"""Measured, for vectors of 384 dimensions: a search takes so long, and so long for each row."""
NEAREST_MAX = 64
SPARE = 8
"""So many times what is wanted is looked at closely."""
SURE = 5.0
"""By how many deviations of what was looked at the rest may be better than its code says."""
RESTS_MAX = 255
"""Where many say nearly the same, codes do not tell them apart, and are hardly tried any more."""


class Nibbles:
    """The codes of all rows; searched from any thread."""

    def __init__(self, vectors: Vectors) -> None:
        rows, dimensions = vectors.shape
        middle = vectors.mean(axis=0, dtype=np.float32)
        spread = vectors.std(axis=0, dtype=np.float32)
        steps = (np.arange(LEVELS, dtype=np.float32) - (LEVELS - 1) / 2) * STEP
        levels = middle[:, None] + spread[:, None] * steps
        index = _faiss.IndexPQFastScan(dimensions, dimensions, 4, faiss.METRIC_INNER_PRODUCT)
        _faiss.copy_array_to_vector(
            np.ascontiguousarray(levels, dtype=np.float32).reshape(-1), index.pq.centroids
        )
        index.is_trained = True
        index.add(np.ascontiguousarray(vectors))
        self._index = index
        self._rows = rows
        # After a search that was in vain, so many are not tried. Only a guess: threads may
        # overwrite each other's.
        self._rests = self._rests_next = 0

    def search(
        self, query: Vectors, k: int, vectors: Vectors, living: Bits | None
    ) -> tuple[Positions, scoring.Scores] | None:
        """The k nearest of those that live, each with its similarity, and all that could be their
        equals; None if it is not certain that they are."""
        if self._rests > 0:
            self._rests -= 1
            return None
        looked_at = SPARE * k + 2 * SPARE
        if looked_at >= self._rows:
            return None
        codes = np.empty(looked_at, dtype=np.float32)
        places: Positions = np.empty(looked_at, dtype=np.int64)
        self._index.search_c(1, _pointer(query), looked_at, _pointer(codes), _pointer(places))
        scores = scoring.scores_at(vectors, places, query)
        # By how much they differ, and how much that varies: as `mean` and `std`, which take longer.
        off = scores - codes
        mean = float(off.sum()) / looked_at
        variance = max(0.0, float(off.dot(off)) / looked_at - mean * mean)
        best_left = float(codes[-1]) + mean + SURE * math.sqrt(variance)
        if living is not None:
            scores[~bitmaps.among(living, places)] = -np.inf
        ordered = scores.copy()
        ordered.partition(looked_at - k)
        bound = ordered[looked_at - k]
        if not bound > best_left:
            self._rests = self._rests_next = min(2 * self._rests_next + 1, RESTS_MAX)
            return None
        self._rests_next = 0
        nearest = np.flatnonzero(scores >= bound - scoring.ROUNDING)
        return places[nearest], scores[nearest]


def pay(rows: int, otherwise_ns: float) -> bool:
    """Whether so many rows are searched sooner by these than in some other way."""
    return rows <= ROWS_MAX and SEARCH_NS + ROW_NS * rows < otherwise_ns
