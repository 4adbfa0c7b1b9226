"""Making a new segment of what lives in older parts, a slice of rows in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.vectors import training
from recollect.orchestrator.search.vectors.bitmaps import Positions
from recollect.orchestrator.search.vectors.scoring import Numbers
from recollect.orchestrator.search.vectors.segment import Segment

SLICE_ROWS = 8_192


class Source(Protocol):
    """A part of the index whose living rows go into the new segment."""

    @property
    def nums(self) -> Numbers: ...
    @property
    def seqs(self) -> Numbers: ...
    @property
    def vectors(self) -> Vectors: ...
    def living_positions(self) -> Positions: ...


class Room(Protocol):
    """Where the rows of the new segment are put."""

    def append(self, rows: Vectors) -> None: ...
    def vectors(self) -> Vectors: ...
    def finish(self, nums: Numbers, seqs: Numbers, vectors: Vectors, index: Any) -> Segment: ...
    def abandon(self) -> None: ...


class Memory:
    """Room in memory, for an index without a folder and for when the disk refuses."""

    def __init__(self, rows: int, dimensions: int) -> None:
        self._vectors: Vectors = np.empty((rows, dimensions), dtype=np.float32)
        self._filled = 0

    def append(self, rows: Vectors) -> None:
        self._vectors[self._filled : self._filled + len(rows)] = rows
        self._filled += len(rows)

    def vectors(self) -> Vectors:
        return self._vectors

    def finish(self, nums: Numbers, seqs: Numbers, vectors: Vectors, index: Any) -> Segment:
        return Segment(None, nums, seqs, vectors, index)

    def abandon(self) -> None:
        """Nothing: what was written goes with this object."""


def build(
    sources: Sequence[Source], room: Room, *, ivf_min: int, seed: int, go_on: Callable[[], None]
) -> Segment:
    """A segment of all living rows, which are at least one; no number lives in two sources."""
    try:
        positions = [source.living_positions() for source in sources]
        nums = np.concatenate([s.nums[p] for s, p in zip(sources, positions, strict=True)])
        seqs = np.concatenate([s.seqs[p] for s, p in zip(sources, positions, strict=True)])
        origin = np.repeat(np.arange(len(sources)), [len(p) for p in positions])
        place = np.concatenate(positions)
        order = np.argsort(nums)
        for start in range(0, len(order), SLICE_ROWS):
            go_on()
            chosen = order[start : start + SLICE_ROWS]
            room.append(_rows(sources, origin[chosen], place[chosen]))
        vectors = room.vectors()
        trained = len(order) >= ivf_min
        # The index is given away and not kept here, so that it can be replaced by a smaller copy.
        return room.finish(
            nums[order],
            seqs[order],
            vectors,
            training.build(vectors, seed, go_on) if trained else None,
        )
    except BaseException:
        room.abandon()
        raise


def _rows(sources: Sequence[Source], origin: Positions, place: Positions) -> Vectors:
    rows = np.empty((len(place), sources[0].vectors.shape[1]), dtype=np.float32)
    for number, source in enumerate(sources):
        mine = origin == number
        if mine.any():
            rows[mine] = source.vectors[place[mine]]
    return rows
