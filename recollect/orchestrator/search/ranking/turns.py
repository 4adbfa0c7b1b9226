"""Who stands beside whom in a session, and how good the best of each session are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SESSION_BEST = 3


class Beside(NamedTuple):
    """For each candidate the place of the turn before and after it.

    There is one place more than candidates: the last, which stands for "none" and leads to itself.
    """

    before: npt.NDArray[np.intp]
    after: npt.NDArray[np.intp]


def turns_beside(nums: Sequence[int], runs: Iterable[Sequence[int]]) -> Beside | None:
    """The turns beside each candidate; None if no two candidates stand side by side."""
    none = len(nums)
    place = {num: index for index, num in enumerate(nums)}
    before = np.full(none + 1, none, dtype=np.intp)
    after = np.full(none + 1, none, dtype=np.intp)
    found = False
    for run in runs:
        earlier = none
        for num in run:
            here = place.get(num, none)
            if here != none and earlier != none:
                before[here], after[earlier] = earlier, here
                found = True
            earlier = here
    return Beside(before, after) if found else None


def session_best(
    sessions: Sequence[str | None], relevance: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """For each candidate the mean relevance of the three best of its session.

    A session with fewer counts the missing ones as worth nothing, so that one lucky hit is no
    session about the thing. Without a session there is no credit.
    """
    groups: dict[str, list[int]] = {}
    for index, session in enumerate(sessions):
        if session is not None:
            groups.setdefault(session, []).append(index)
    best = np.zeros(len(sessions))
    for members in groups.values():
        if len(members) > 1:
            best[members] = sum(sorted(relevance[members])[-SESSION_BEST:]) / SESSION_BEST
    return best
