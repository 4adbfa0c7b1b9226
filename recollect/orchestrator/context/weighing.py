"""Weighs what was found in all tiers on one scale, and leaves out what would not help.

What comes first anyway, or says the task again, is so near to the task that beside it nothing else
would seem to help. So it sets no measure: the rest is weighed by its own best.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set

import msgspec

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.search.ranking import Candidate, Intent, Ranked, Weights, collapse, rank
from recollect.protocol.operations.context import ContextTier

RANKED_MIN, RANKED_MAX = 60, 400
TOKENS_A_PIECE = 25
"""Hardly a piece is shorter with its marks; so many more are not worth ranking."""
APART_SHARE = 0.5
"""Of these, how many may be what comes first or repeats the task."""
RELEVANT_SHARE = 0.3
"""What has less of the best score than this is about something else: two thirds of what a recall
gives beside the answers, and one answer of thirty."""
NEAR_SHARE = 0.1
"""The same beside the best of all, where that comes first or repeats the task. It is low, because
nothing is as near to a task as its own words; what has one of them in it is about it anyway."""
UNTRUSTED_RATE = 0.1
"""What is left of a memory's value if it is not trusted at all."""
TASK_CHARS_MAX = 1_000
READ_RATE = 4
"""So much of a task is looked for, in so many times as much of a memory's beginning."""

_words = re.compile(r"\w+").findall


class Considered(msgspec.Struct, frozen=True):
    """A memory that may go into a context."""

    row: MemoryRow
    tier: ContextTier
    score: float
    """Relevance and all else that a recall weighs; the same scale for all tiers."""
    value: float
    """What it is worth in this context, from 0 to 1: its score beside the best, and its trust."""
    first: bool
    """It belongs to the task at hand, or has just happened and is critical."""
    vector: Vectors | None


class Weighed(msgspec.Struct, frozen=True):
    """What may help, and how much each is worth beside the best, trust left aside."""

    ranked: list[Ranked]
    shares: dict[int, float]


def weigh(
    intent: Intent,
    candidates: Mapping[int, Candidate],
    weights: Weights,
    runs: Sequence[Sequence[int]],
    *,
    first: Set[int],
    repeats: Set[int],
    tokens_max: int,
) -> Weighed:
    """The best of some candidates: what comes first before all else, each thing once."""
    ranked = rank(intent, list(candidates.values()), weights, runs)
    shares = shares_of(ranked)
    apart = first | repeats
    if not apart.isdisjoint(candidates):
        rest = [candidate for num, candidate in candidates.items() if num not in apart]
        own = shares_of(rank(intent, rest, weights, runs))
        for num, share in own.items():
            near = shares[num] >= NEAR_SHARE or candidates[num].lexical is not None
            shares[num] = share if near else 0.0
    limit = min(RANKED_MAX, max(RANKED_MIN, tokens_max // TOKENS_A_PIECE))
    ranked.sort(key=lambda item: item.num not in first)
    before = [item for item in ranked if item.num in apart]
    rest_ranked = [
        item for item in ranked if item.num not in apart and shares[item.num] >= RELEVANT_SHARE
    ]
    # Neither is lost behind the other.
    before = before[: max(int(APART_SHARE * limit), limit - len(rest_ranked))]
    return Weighed(collapse([*before, *rest_ranked[: limit - len(before)]], candidates), shares)


def shares_of(ranked: Sequence[Ranked]) -> dict[int, float]:
    """The score of each beside the best of them."""
    best = ranked[0].score if ranked else 0.0
    return {item.num: max(item.score, 0.0) / best if best > 0 else 0.0 for item in ranked}


def value_of(share: float, trust: float) -> float:
    """What a memory is worth that has such a share of the best score."""
    return share * (UNTRUSTED_RATE + (1 - UNTRUSTED_RATE) * trust)


def repeating(task: str, candidates: Iterable[Candidate]) -> set[int]:
    """Those that begin with all the words of a task: it is noted already, or was done before."""
    task = task[:TASK_CHARS_MAX].casefold()
    words = set(_words(task))
    longest = max(words, key=len, default="")
    chars = READ_RATE * len(task)
    found: set[int] = set()
    for candidate in candidates:
        beginning = candidate.content[:chars].casefold()
        if longest in beginning and words <= set(_words(beginning)):
            found.add(candidate.num)
    return found
