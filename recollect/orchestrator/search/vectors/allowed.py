"""The memories among which a search may choose."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recollect.orchestrator.cache.weighed import WeighedCache
from recollect.orchestrator.search.vectors.scoring import Numbers

KEPT_MAX = 1_024
NUMS_KEPT_MAX = 4_000_000


class Allowed:
    """Some numbers, in order and each once, ready to be compared with others in order."""

    def __init__(self, nums: Numbers, *, lasting: bool = False) -> None:
        nums = np.ascontiguousarray(nums, dtype=np.int64)
        if len(nums) > 1 and not (nums[1:] > nums[:-1]).all():
            nums = np.unique(nums)
        self.nums = nums
        self.lasting = lasting
        """Whether it may be met again, so that what is derived from it is worth keeping."""

    def between(self, low: int, high: int) -> Numbers:
        """Those from low to high, both included."""
        nums = self.nums
        if not len(nums) or (nums[0] >= low and nums[-1] <= high):
            return nums
        first, last = np.searchsorted(nums, (low, high + 1))
        return nums[first:last]

    def among(self, nums: Numbers) -> npt.NDArray[np.bool_]:
        """Which of some numbers are allowed."""
        if not len(self.nums):
            return np.zeros(len(nums), dtype=bool)
        places = np.searchsorted(self.nums, nums)
        places[places == len(self.nums)] = 0
        found: npt.NDArray[np.bool_] = self.nums[places] == nums
        return found


class AllowedCache:
    """Prepared filters, for arrays that come again.

    An array is recognised by its identity, and only if it is read-only and so promises to stay as
    it is. It is kept with what was made of it, so that its identity cannot pass to another.
    """

    def __init__(self) -> None:
        self._kept: WeighedCache[int, tuple[Numbers, Allowed]] = WeighedCache(
            entries_max=KEPT_MAX, weight_max=NUMS_KEPT_MAX
        )

    def prepared(self, nums: Numbers) -> Allowed:
        """The filter made of these numbers, now or before."""
        if nums.flags.writeable:
            return Allowed(nums)
        kept = self._kept.get(id(nums))
        if kept is not None:
            return kept[1]
        allowed = Allowed(nums, lasting=True)
        self._kept.keep(id(nums), (nums, allowed), 1 + len(nums))
        return allowed
