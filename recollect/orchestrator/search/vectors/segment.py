"""A sealed segment: vectors that do not change any more, and what in them is gone.

The segment itself is immutable; a `Living` pairs it with its tombstones and is replaced as a whole
when some are added, so a search keeps the state it began with.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recollect.orchestrator.cache.weighed import WeighedCache
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.vectors import bitmaps, nibbles, scoring
from recollect.orchestrator.search.vectors.allowed import Allowed
from recollect.orchestrator.search.vectors.bitmaps import Bits, Positions
from recollect.orchestrator.search.vectors.ivf import Ivf
from recollect.orchestrator.search.vectors.nibbles import Nibbles
from recollect.orchestrator.search.vectors.scoring import Found, Numbers
from recollect.orchestrator.search.vectors.selection import Selection

# Up to this many survivors of a filter are always compared one by one; more of them if that costs
# hardly more than to search for them inside the index, which is less certain to find them all.
SURVIVORS_EXACT_MAX = 2_048
SURVIVOR_NS = 100.0
USUAL_K = 10
# Numbers are looked up in a table while it has at most this many places for one that is taken.
TABLE_SPARSITY_MAX = 8
SELECTIONS_KEPT_MAX = 1_024
SELECTED_KEPT_MAX = 4
"""All selections of a segment together select no more than this many times its rows."""
SELECTED_KEPT_MIN = 65_536


class Segment:
    """Rows in the order of their numbers, each number once."""

    def __init__(
        self, name: str | None, nums: Numbers, seqs: Numbers, vectors: Vectors, ivf: Ivf | None
    ) -> None:
        self.name = name
        """Of its files; None when it is only in memory."""
        self.nums, self.seqs, self.vectors, self.ivf = nums, seqs, vectors, ivf
        self.low, self.high = (int(nums[0]), int(nums[-1])) if len(nums) else (0, -1)
        self._table: npt.NDArray[np.int32] | None = None
        span = self.high - self.low + 1
        if len(nums) < span <= TABLE_SPARSITY_MAX * len(nums):
            self._table = np.full(span, -1, dtype=np.int32)
            self._table[nums - self.low] = np.arange(len(nums), dtype=np.int32)
        self.dense = span == len(nums)
        self.nibbles: Nibbles | None = None
        if ivf is not None and nibbles.pay(len(nums), ivf.plain_cost_ns(USUAL_K)):
            self.nibbles = Nibbles(vectors)

    def __len__(self) -> int:
        return len(self.nums)

    @property
    def kind(self) -> str:
        return "exact" if self.ivf is None else "ivf"

    @property
    def size_bytes(self) -> int:
        """Of its vectors, numbers and codes, in memory or in files."""
        codes = 0 if self.ivf is None else self.vectors.size + 8 * len(self.nums)
        if self.nibbles is not None:
            codes += self.vectors.size // 2
        return self.vectors.nbytes + self.nums.nbytes + self.seqs.nbytes + codes

    def positions_of(self, nums: Numbers) -> Positions:
        """Where each number is, or -1; every number lies between low and high."""
        if self.dense:
            return nums - self.low
        if self._table is not None:
            return self._table[nums - self.low].astype(np.int64)
        places = np.searchsorted(self.nums, nums)
        return np.where(self.nums[places] == nums, places, -1)


class Living:
    """A segment with its tombstones. Only its cache of selections ever changes."""

    def __init__(self, segment: Segment, bits: Bits | None = None) -> None:
        self.segment = segment
        self.bits = bits
        self.low, self.high = segment.low, segment.high
        self.living = len(segment) if bits is None else bitmaps.size_of(bits)
        self._everything = Selection(len(segment), self.living, bits=bits)
        # By the identity of a filter, which is kept with it so that no other can take its place.
        self._selections: WeighedCache[int, tuple[Allowed, Selection]] = WeighedCache(
            entries_max=SELECTIONS_KEPT_MAX,
            weight_max=max(SELECTED_KEPT_MIN, SELECTED_KEPT_MAX * len(segment)),
        )

    @property
    def nums(self) -> Numbers:
        return self.segment.nums

    @property
    def seqs(self) -> Numbers:
        return self.segment.seqs

    @property
    def vectors(self) -> Vectors:
        return self.segment.vectors

    def living_positions(self) -> Positions:
        """Where the living rows are, in ascending order."""
        if self.bits is None:
            return np.arange(len(self.segment), dtype=np.int64)
        return bitmaps.positions_in(self.bits, len(self.segment))

    def located(self, nums: Numbers) -> Positions:
        """Where each number is; -1 where it is not, or no longer."""
        segment = self.segment
        positions = np.full(len(nums), -1, dtype=np.int64)
        inside = np.flatnonzero((nums >= segment.low) & (nums <= segment.high))
        if len(inside):
            places = segment.positions_of(nums[inside])
            if self.bits is not None:
                places[~bitmaps.among(self.bits, np.maximum(places, 0))] = -1
            positions[inside] = places
        return positions

    def without(self, positions: Positions) -> Living:
        """The segment after the rows at some positions were removed."""
        if not len(positions):
            return self
        bits = bitmaps.full(len(self.segment)) if self.bits is None else self.bits
        return Living(self.segment, bitmaps.without(bits, positions))

    def holds_gone(self, nums: Numbers | None) -> bool:
        """Whether the segment still has rows that are gone: any, or of these numbers."""
        if self.living == len(self.segment):
            return False
        if nums is None:
            return True
        inside = nums[(nums >= self.low) & (nums <= self.high)]
        places = self.segment.positions_of(inside)
        return bool((places >= 0).any() and (self.located(inside[places >= 0]) < 0).any())

    def lost_since(self, earlier: Living) -> Numbers:
        """The numbers that lived in this segment earlier and do not now."""
        if self.bits is None or self.bits is earlier.bits:
            return scoring.NO_NUMBERS
        lost = ~self.bits & (bitmaps.full(len(self.nums)) if earlier.bits is None else earlier.bits)
        return self.nums[bitmaps.positions_in(lost, len(self.nums))]

    def selection(self, allowed: Allowed | None) -> Selection:
        """Which of the living rows a filter leaves."""
        if allowed is None:
            return self._everything
        kept = self._selections.get(id(allowed))
        if kept is not None:
            return kept[1]
        selection = self._select(allowed)
        if allowed.lasting:
            # What FAISS asks is one bit for each row, whatever is selected.
            weight = 1 + selection.count + len(self.segment) // 64
            self._selections.keep(id(allowed), (allowed, selection), weight)
        return selection

    def search(self, query: Vectors, k: int, selection: Selection, total: int) -> Found:
        """About the k nearest of the selection, k where k exist; of `total` selected in all parts.

        Where a part holds a small share, few of the k nearest of all are to be expected in it, and
        only those need to be found with care.
        """
        if not selection.count:
            return scoring.NOTHING
        expected = k * selection.count / total
        careful = min(float(k), expected + 2 * expected**0.5 + 1)
        ivf = self.segment.ivf
        if ivf is None or (selection.by_filter and _better_exact(ivf, careful, selection.count)):
            return self._exactly(query, k, selection)
        quickly = self.segment.nibbles
        if quickly is not None and not selection.by_filter and k <= nibbles.NEAREST_MAX:
            near = quickly.search(query, k, self.vectors, self.bits)
            if near is not None:
                return self.nums[near[0]], near[1]
        # More than k, since the codes are rounded and the full vectors have the last word.
        wanted = min(k + k // 4 + 6, selection.count)
        places = ivf.search(query, careful, wanted, selection)
        return self.nums[places], scoring.scores_at(self.vectors, places, query)

    def _exactly(self, query: Vectors, k: int, selection: Selection) -> Found:
        if selection.count == len(self.segment):
            places = scoring.leaders(scoring.scores_of_all(self.vectors, query), k)
        else:
            positions = selection.positions
            scores = scoring.scores_at(self.vectors, positions, query)
            leaders = scoring.leaders(scores, k)
            return self.nums[positions[leaders]], scores[leaders]
        return self.nums[places], scoring.scores_at(self.vectors, places, query)

    def _select(self, allowed: Allowed) -> Selection:
        segment = self.segment
        nums = allowed.between(segment.low, segment.high)
        if not len(nums):
            return Selection(len(segment), 0, positions=nums)
        positions = segment.positions_of(nums)
        if not segment.dense:
            positions = positions[positions >= 0]
        if self.bits is not None:
            positions = positions[bitmaps.among(self.bits, positions)]
        return Selection(len(segment), len(positions), positions=positions)


def _better_exact(ivf: Ivf, k: float, survivors: int) -> bool:
    """Whether a few survivors of a filter are better compared one by one."""
    if survivors <= SURVIVORS_EXACT_MAX:
        return True
    return survivors * SURVIVOR_NS <= ivf.cost_ns(k, survivors)
