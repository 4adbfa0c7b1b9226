"""The head: the newest vectors, searched exactly until they are sealed.

A chunk is an array that is filled once, from the front. A `HeadPart` says how far it is filled and
what in it is gone; it is never changed, only replaced, so a search keeps the state it began with
while rows are added behind it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.vectors import scoring
from recollect.orchestrator.search.vectors.allowed import Allowed
from recollect.orchestrator.search.vectors.bitmaps import Positions
from recollect.orchestrator.search.vectors.scoring import Found, Numbers


class Chunk:
    """Room for a number of rows. Filled, and its `at` changed, under the index's lock alone."""

    def __init__(self, capacity: int, dimensions: int) -> None:
        self.capacity = capacity
        self.vectors: Vectors = np.empty((capacity, dimensions), dtype=np.float32)
        self.nums: Numbers = np.empty(capacity, dtype=np.int64)
        self.seqs: Numbers = np.empty(capacity, dtype=np.int64)
        # Where each living number is.
        self.at: dict[int, int] = {}


@dataclasses.dataclass(frozen=True, eq=False)
class HeadPart:
    """A chunk as it was at one moment."""

    chunk: Chunk
    size: int = 0
    gone: npt.NDArray[np.bool_] | None = None
    """Which rows are superseded or removed; None when none is."""
    living: int = 0
    low: int = 0
    high: int = -1
    """No number in the chunk, living or gone, is outside these two; for a quick look."""

    @property
    def room(self) -> int:
        """How many rows may still be added."""
        return self.chunk.capacity - self.size

    @property
    def nums(self) -> Numbers:
        return self.chunk.nums

    @property
    def seqs(self) -> Numbers:
        return self.chunk.seqs

    @property
    def vectors(self) -> Vectors:
        return self.chunk.vectors

    def with_rows(self, nums: Numbers, seqs: Numbers, vectors: Vectors) -> HeadPart:
        """The part after rows were added to its chunk, which has the room for them."""
        start, stop = self.size, self.size + len(nums)
        self.chunk.vectors[start:stop] = vectors
        self.chunk.nums[start:stop] = nums
        self.chunk.seqs[start:stop] = seqs
        self.chunk.at.update(zip(nums.tolist(), range(start, stop), strict=True))
        low, high = int(nums.min()), int(nums.max())
        if self.size:
            low, high = min(low, self.low), max(high, self.high)
        living = self.living + len(nums)
        return dataclasses.replace(self, size=stop, living=living, low=low, high=high)

    def without(self, nums: list[int]) -> HeadPart:
        """The part after some numbers, known or not, were removed."""
        at = self.chunk.at
        positions = [at.pop(num) for num in nums if num in at]
        if not positions:
            return self
        gone = np.zeros(self.chunk.capacity, dtype=bool) if self.gone is None else self.gone.copy()
        gone[positions] = True
        return dataclasses.replace(self, gone=gone, living=self.living - len(positions))

    def living_positions(self) -> Positions:
        """Where the living rows are, in the order in which they came."""
        if self.gone is None:
            return np.arange(self.size, dtype=np.int64)
        return np.flatnonzero(~self.gone[: self.size])

    def lost_since(self, earlier: HeadPart) -> Numbers:
        """The numbers that lived in this chunk earlier and do not now."""
        if self.gone is None or self.gone is earlier.gone:
            return scoring.NO_NUMBERS
        lost = self.gone[: earlier.size]
        if earlier.gone is not None:
            lost = lost & ~earlier.gone[: earlier.size]
        return self.chunk.nums[: earlier.size][lost]

    def located(self, nums: Numbers) -> Positions:
        """Where each number is; -1 where it is not, or no longer."""
        living = self.living_positions()
        if not len(living) or not ((nums >= self.low) & (nums <= self.high)).any():
            return np.full(len(nums), -1, dtype=np.int64)
        order = np.argsort(self.nums[living])
        ordered = self.nums[living][order]
        places = np.searchsorted(ordered, nums)
        places[places == len(ordered)] = 0
        return np.where(ordered[places] == nums, living[order[places]], -1)

    def search(self, query: Vectors, k: int, allowed: Allowed | None) -> Found:
        """At least the k nearest of the living and allowed rows."""
        scores = scoring.scores_of_all(self.vectors[: self.size], query)
        if self.gone is None and allowed is None:
            places = scoring.leaders(scores, k)
        else:
            positions = self.living_positions()
            if allowed is not None:
                positions = positions[allowed.among(self.nums[positions])]
            places = positions[scoring.leaders(scores[positions], k)]
        return self.nums[places], scoring.scores_at(self.vectors, places, query)
