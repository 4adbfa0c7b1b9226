"""Building the index of a large segment.

How many lists a search must visit is measured, not guessed: for some of the segment's own vectors
as queries, in which list, counted from the nearest, are their true neighbours?
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.vectors.bitmaps import Positions
from recollect.orchestrator.search.vectors.ivf import (
    CODES,
    Ivf,
    Probes,
    coded,
    coded_query,
    scale_of,
)

SLICE_ROWS = 16_384
LISTS_MAX = 4_096
ROWS_PER_LIST_MIN = 32
TRAINING_ROWS_PER_LIST = 32
TRAINING_ROUNDS = 6
TUNING_QUERIES = 400
TUNING_SLICE_ROWS = 65_536
TUNING_DEPTHS = (1, 3, 10, 32, 100, 320, 1000)
# The share of true neighbours that must be in the lists visited.
TUNING_RECALL = 0.998
# And how many times as many lists are visited, for queries that are less like the vectors.
TUNING_MARGIN = 1.5
# Visiting fewer rows than this saves nothing that could be noticed.
ROWS_VISITED_MIN = 4_096

# The classes take arrays and keywords by additions in Python that their types do not see.
_faiss: Any = faiss


def lists_for(rows: int) -> int:
    """How many lists suit a segment: about three times the root, with enough rows in each."""
    return max(1, min(int(3 * rows**0.5), rows // ROWS_PER_LIST_MIN, LISTS_MAX))


def build(vectors: Vectors, seed: int, go_on: Callable[[], None]) -> Ivf:
    """Train, fill and measure an index; go_on is asked often and raises to have the work end."""
    rows, dimensions = vectors.shape
    lists = lists_for(rows)
    chance = np.random.default_rng(seed)
    sample = _some_rows(vectors, TRAINING_ROWS_PER_LIST * lists, chance)
    centroids = _centroids(sample, lists, chance, go_on)
    scale = scale_of(sample)
    del sample
    # Lists are chosen for a search by coded centroids, and for a row by full ones: many rows are
    # compared faster in full, a single query is compared faster with codes.
    full_quantizer: Any = faiss.IndexFlatIP(dimensions)
    full_quantizer.add(centroids)
    quantizer: Any = _faiss.IndexScalarQuantizer(dimensions, CODES, faiss.METRIC_INNER_PRODUCT)
    quantizer.add(coded(centroids, scale_of(centroids)))
    index: Any = _faiss.IndexIVFScalarQuantizer(
        quantizer, dimensions, lists, CODES, faiss.METRIC_INNER_PRODUCT, False
    )
    index.is_trained = True
    list_of = np.empty(rows, dtype=np.int64)
    for start in range(0, rows, SLICE_ROWS):
        go_on()
        part = np.ascontiguousarray(vectors[start : start + SLICE_ROWS])
        ids = np.arange(start, start + len(part), dtype=np.int64)
        chosen = full_quantizer.search(part, 1)[1].reshape(-1)
        list_of[start : start + len(part)] = chosen
        codes = coded(part, scale)
        index.add_core(len(part), *(faiss.swig_ptr(array) for array in (codes, ids, chosen)))
    return Ivf(index, _measured_probes(vectors, quantizer, list_of, chance, go_on))


def _some_rows(vectors: Vectors, wanted: int, chance: np.random.Generator) -> Vectors:
    if wanted >= len(vectors):
        return np.ascontiguousarray(vectors)
    return vectors[np.sort(chance.choice(len(vectors), wanted, replace=False))]


def _centroids(
    sample: Vectors, lists: int, chance: np.random.Generator, go_on: Callable[[], None]
) -> Vectors:
    """Spherical k-means, a round at a time, so that it can be ended between rounds."""
    centroids = sample[np.sort(chance.choice(len(sample), lists, replace=False))].copy()
    for _ in range(TRAINING_ROUNDS):
        go_on()
        means = _faiss.Kmeans(
            sample.shape[1],
            lists,
            niter=1,
            spherical=True,
            min_points_per_centroid=1,
            max_points_per_centroid=len(sample),
            seed=int(chance.integers(2**31)),
        )
        means.train(sample, init_centroids=centroids)
        centroids = means.centroids
    return np.ascontiguousarray(centroids)


def _measured_probes(
    vectors: Vectors,
    quantizer: Any,
    list_of: Positions,
    chance: np.random.Generator,
    go_on: Callable[[], None],
) -> Probes:
    rows, lists = len(vectors), quantizer.ntotal
    queries = _some_rows(vectors, min(TUNING_QUERIES, rows), chance)
    codes = np.concatenate([coded_query(query) for query in queries])
    # One more, since the nearest of each query is the query itself.
    neighbours = nearest(vectors, queries, min(TUNING_DEPTHS[-1] + 1, rows), go_on)[:, 1:]
    order = quantizer.search(codes, lists)[1]
    rank_of = np.empty_like(order)
    np.put_along_axis(rank_of, order, np.arange(lists)[None, :], axis=1)
    ranks = np.take_along_axis(rank_of, list_of[neighbours], axis=1)
    floor = -(-ROWS_VISITED_MIN * lists // rows)
    probes: list[tuple[int, int]] = []
    least = min(lists, max(1, floor))
    for depth in TUNING_DEPTHS:
        if depth <= neighbours.shape[1]:
            rank = float(np.quantile(ranks[:, :depth], TUNING_RECALL))
            least = max(least, 1 + int(np.ceil(TUNING_MARGIN * rank)))
        else:
            least = lists
        probes.append((depth, min(least, lists)))
    return tuple(probes)


def nearest(
    vectors: Vectors, queries: Vectors, k: int, go_on: Callable[[], None]
) -> npt.NDArray[np.int64]:
    """The positions of the k nearest of each query, exactly, with a slice in memory at a time."""
    scores = np.empty((len(queries), 0), dtype=np.float32)
    places = np.empty((len(queries), 0), dtype=np.int64)
    for start in range(0, len(vectors), TUNING_SLICE_ROWS):
        go_on()
        part = np.ascontiguousarray(vectors[start : start + TUNING_SLICE_ROWS])
        near, at = _faiss.knn(queries, part, min(k, len(part)), metric=faiss.METRIC_INNER_PRODUCT)
        scores = np.concatenate((scores, near), axis=1)
        places = np.concatenate((places, at + start), axis=1)
        kept = np.argsort(-scores, axis=1)[:, :k]
        scores = np.take_along_axis(scores, kept, axis=1)
        places = np.take_along_axis(places, kept, axis=1)
    return places
