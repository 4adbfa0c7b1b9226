"""Search by meaning: a FAISS index in memory, made from the stored vectors at start.

Changes are noted on the event loop, which never waits for a search, and taken in by the next search
before it looks, so a search sees every write that was answered before it began. Searches come one
after another. A removed vector becomes a
tombstone; when tombstones prevail, the index is made anew without them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from recollect.orchestrator.embedding.interface import Vectors

Numbers = npt.NDArray[np.int64]

TOMBSTONES_MIN = 10_000
NOTES_MAX = 50_000

# The constructors that take arrays are added in Python, where faiss's own types do not see them.
_faiss: Any = faiss

# One query at a time is faster on one thread, and leaves the other cores to other work.
faiss.omp_set_num_threads(1)


class VectorIndex:
    """Exact inner-product search over the vectors of the living memories."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        # Appended by the event loop; emptied, in order, under the lock by whoever searches.
        self._notes: deque[tuple[int, Vectors | None]] = deque()
        self._lock = threading.Lock()
        # All below is touched under the lock alone.
        self._index = faiss.IndexFlatIP(dimensions)
        self._num_at: list[int] = []
        self._position_of: dict[int, int] = {}
        self._alive = np.zeros(1024, dtype=bool)

    def __len__(self) -> int:
        return len(self._position_of)

    def count(self) -> int:
        """How many memories have a vector, with every noted change taken in."""
        with self._lock:
            self._settle()
            return len(self._position_of)

    def load(self, nums: Sequence[int], vectors: Vectors) -> None:
        """Take in many vectors at once."""
        with self._lock:
            self._append(list(nums), vectors)

    def put(self, num: int, vector: Vectors) -> None:
        """Note a new or changed vector."""
        self._notes.append((num, vector))
        self._settle_if_many()

    def remove(self, num: int) -> None:
        """Note that a memory is gone."""
        self._notes.append((num, None))
        self._settle_if_many()

    def search(
        self, vector: Vectors, k: int, allowed: Numbers | None = None
    ) -> list[tuple[int, float]]:
        """Numbers and similarities of the k nearest, of all or of the allowed ones."""
        with self._lock:
            self._settle()
            selector = self._selector(allowed)
            if not self._position_of or (allowed is not None and selector is None):
                return []
            parameters = _faiss.SearchParameters(sel=selector) if selector is not None else None
            k = min(k, self._index.ntotal)
            scores, positions = self._index.search(
                np.ascontiguousarray(vector.reshape(1, -1)), k, params=parameters
            )
            return [
                (self._num_at[position], float(score))
                for position, score in zip(positions[0], scores[0], strict=True)
                if position >= 0
            ]

    def _selector(self, allowed: Numbers | None) -> Any:
        if allowed is not None:
            found = (self._position_of.get(num) for num in allowed.tolist())
            positions = np.array([p for p in found if p is not None], dtype=np.int64)
            return _faiss.IDSelectorBatch(positions) if len(positions) else None
        if len(self._position_of) == self._index.ntotal:
            return None
        return _faiss.IDSelectorBitmap(
            np.packbits(self._alive[: self._index.ntotal], bitorder="little")
        )

    def _settle_if_many(self) -> None:
        """Keep the notes bounded when nobody searches, unless a search is at work just now."""
        if len(self._notes) > NOTES_MAX and self._lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self._lock.release()

    def _settle(self) -> None:
        fresh: dict[int, Vectors] = {}
        for _ in range(len(self._notes)):
            num, vector = self._notes.popleft()
            fresh.pop(num, None)
            position = self._position_of.pop(num, None)
            if position is not None:
                self._alive[position] = False
            if vector is not None:
                fresh[num] = vector
        if fresh:
            self._append(list(fresh), np.stack(list(fresh.values())))
        dead = self._index.ntotal - len(self._position_of)
        if dead > max(TOMBSTONES_MIN, len(self._position_of)):
            self._compact()

    def _append(self, nums: list[int], vectors: Vectors) -> None:
        start, stop = self._index.ntotal, self._index.ntotal + len(nums)
        if stop > len(self._alive):
            grown = np.zeros(max(stop, 2 * len(self._alive)), dtype=bool)
            grown[:start] = self._alive[:start]
            self._alive = grown
        self._index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        self._alive[start:stop] = True
        self._num_at.extend(nums)
        self._position_of.update(zip(nums, range(start, stop), strict=True))

    def _compact(self) -> None:
        positions = np.flatnonzero(self._alive[: self._index.ntotal])
        nums = [self._num_at[position] for position in positions]
        vectors = self._index.reconstruct_batch(positions)
        self._index = faiss.IndexFlatIP(self._dimensions)
        self._num_at, self._position_of = [], {}
        self._append(nums, vectors)
