"""Which of the ranked matches fit a condition, asked for no more of them than are needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.orchestrator.search.filters import Condition

Numbers = NDArray[np.int64]
Values = NDArray[np.float64]

BLOCK_MIN = 64
BLOCK_GROWTH = 4
CHECKED_MIN = 64
RARELY = 0.05
"""When so many were checked and so few fit, it is better to list what fits, if an index can."""
LEADING = 4096


class Fitting(Protocol):
    """Tells what fits a condition."""

    def fitting(self, nums: list[int], condition: Condition) -> set[int]:
        """Those of some memories that fit."""
        ...

    def listed(self, condition: Condition) -> Numbers | None:
        """All that fit, in ascending order, if there is an index to find them by."""
        ...


class Survivors:
    """Checks matches against a condition, the best ones first."""

    def __init__(self, source: Fitting, condition: Condition) -> None:
        self._source = source
        self._condition = condition

    def best_first(
        self, nums: Numbers, scores: Values, wanted: int, *, chosen: bool
    ) -> Iterator[int]:
        """Numbers that fit, by falling score and number; at most as many as are wanted.

        Numbers may be repeated; `scores` has a place for each, and 0 is no match. Unless the
        numbers were chosen, they are all that have a score.
        """
        ranked = _Ranked(nums, scores)
        yielded = checked = block = 0
        listing = not chosen
        while yielded < wanted and not ranked.spent:
            if listing and checked >= CHECKED_MIN and yielded < RARELY * checked:
                listing = False  # this is decided once
                if (listed := self._source.listed(self._condition)) is not None:
                    ranked.keep_only(listed)
            block = max(BLOCK_MIN, 2 * (wanted - yielded), BLOCK_GROWTH * block)
            candidates = ranked.take(block)
            fitting = self._source.fitting(candidates, self._condition)
            checked += len(candidates)
            for num in candidates:
                if num in fitting and yielded < wanted:
                    yielded += 1
                    yield num


class _Ranked:
    """Numbers in the order of their scores, sorted only as far as they are taken."""

    def __init__(self, nums: Numbers, scores: Values) -> None:
        self._scores = scores
        self._taken: list[int] = []
        self._sorted: list[int] = []
        self._begin(nums)

    @property
    def spent(self) -> bool:
        return not self._sorted and not len(self._nums)

    def keep_only(self, listed: Numbers) -> None:
        """Go on with what is listed; all numbers with a score are among ours."""
        left = np.setdiff1d(listed[listed < len(self._scores)], self._taken)
        self._sorted = []
        self._begin(left)

    def take(self, count: int) -> list[int]:
        """The next numbers, at most so many."""
        if not self._sorted:
            self._sort_some(count)
        taken, self._sorted = self._sorted[:count], self._sorted[count:]
        self._taken += taken
        return taken

    def _begin(self, nums: Numbers) -> None:
        values = self._scores[nums]
        matching = values > 0
        if not matching.all():
            nums, values = nums[matching], values[matching]
        self._nums, self._values = nums, values

    def _sort_some(self, count: int) -> None:
        top = np.ones(len(self._nums), dtype=np.bool_)
        if len(self._nums) > count:
            # Matches of the rarest terms come first and have the highest scores, so most of the
            # others fall below the best of those. Many may be its equals, as among texts made by
            # one template: numpy takes ten times as long to part what hardly differs.
            leading = np.sort(self._values[: count + LEADING])
            bound = leading[len(leading) - count]
            higher = self._values[self._values > bound]
            if len(higher) >= count:
                at = len(higher) - count
                bound = np.partition(higher, at)[at]
            # All that have the same score go together, so repeated numbers do too.
            top = self._values >= bound
        nums, first = np.unique(self._nums[top], return_index=True)
        values = self._values[top][first]
        self._nums, self._values = self._nums[~top], self._values[~top]
        self._sorted = nums[np.lexsort((-nums, -values))].tolist()
