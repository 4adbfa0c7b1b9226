"""Memories that repeat or contradict one another, gathered into conflicts.

Which pairs are worth judging is found in three ways: the same words but for numbers, negations and
opposites; the same subject; near in meaning. Only memories of the very same namespace are judged:
what is said in one place may well be otherwise in another. The one thing that is told across
namespaces is a key that holds something else in a namespace above; that is never settled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from recollect.orchestrator.access.grants import covers
from recollect.orchestrator.consolidation.comparing import skeleton
from recollect.orchestrator.consolidation.judging import (
    CONTRADICTION,
    DUPLICATE,
    Kind,
    Looked,
    Verdict,
    judge,
    subject_of,
)
from recollect.orchestrator.consolidation.similarity import near_pairs
from recollect.orchestrator.embedding.interface import Vectors

MEMBERS_MAX = 50
"""Of one conflict; what is beyond is seen again when these are settled."""
BUCKET_NEIGHBOURS_MAX = 50
"""How many others of the same words or subject one memory is compared with."""
SAME_KEY = "the same key holds something else in a namespace above"

Edge = tuple[int, int]
"""Numbers of two memories, the smaller first."""


class Conflict(msgspec.Struct, frozen=True):
    """Memories that belong together, the newest first."""

    kind: Kind
    subject: str
    similarity: float
    reason: str
    members: tuple[Looked, ...]
    verdicts: dict[Edge, Verdict] = {}

    @property
    def settleable(self) -> bool:
        """Whether all of it lies in one namespace."""
        return len({member.namespace for member in self.members}) == 1

    def bound_to(self, num: int) -> set[int]:
        """The members that repeat or contradict one of them, and what only repeats those."""
        bound = {num}
        bound |= {other for edge in self.verdicts if num in edge for other in edge}
        while True:
            more = {
                other
                for edge, verdict in self.verdicts.items()
                if verdict.kind == DUPLICATE and not bound.isdisjoint(edge)
                for other in edge
            }
            if more <= bound:
                return bound - {num}
            bound |= more


def conflicts_among(
    memories: Sequence[Looked],
    vectors: dict[int, Vectors],
    *,
    duplicate_similarity: float,
    conflict_similarity: float,
) -> list[Conflict]:
    """The conflicts among some memories, that with the newest memory first."""
    homes: dict[str, list[Looked]] = defaultdict(list)
    for memory in memories:
        homes[memory.namespace].append(memory)
    found: list[Conflict] = []
    for home in homes.values():
        near = _near(home, vectors, min(duplicate_similarity, conflict_similarity))
        verdicts: dict[Edge, Verdict] = {}
        for one, other in _worth_judging(home, near):
            edge = _edge(one, other)
            if edge in verdicts or (verdict := judge(one, other)) is None:
                continue
            needed = duplicate_similarity if verdict.kind == DUPLICATE else conflict_similarity
            # What has the same words or subject need not be near as well.
            if near.get(edge, 1.0) >= needed or skeleton_of(one) == skeleton_of(other):
                verdicts[edge] = verdict
        found += _gathered(home, verdicts, vectors)
    found += _same_keys(memories)
    return sorted(found, key=lambda conflict: -conflict.members[0].num)


def skeleton_of(looked: Looked) -> Hashable:
    """What memories that repeat one another have in common."""
    if looked.statement is None:
        return looked.text
    return skeleton(looked.statement) or looked.text


def _near(home: list[Looked], vectors: dict[int, Vectors], similarity: float) -> dict[Edge, float]:
    """Pairs that are near in meaning, with how near they are."""
    placed = [memory for memory in home if memory.num in vectors and memory.statement is not None]
    if len(placed) < 2:
        return {}
    matrix = np.stack([vectors[memory.num] for memory in placed])
    return {
        _edge(placed[one], placed[other]): score
        for one, other, score in near_pairs(matrix, similarity)
    }


def _worth_judging(home: list[Looked], near: dict[Edge, float]) -> Iterator[tuple[Looked, Looked]]:
    buckets: dict[Hashable, list[Looked]] = defaultdict(list)
    for memory in home:
        buckets["text", memory.text].append(memory)
    # Of many that are word for word the same, each is compared with the next, and one with others.
    firsts = []
    for same in list(buckets.values()):
        yield from pairwise(same)
        firsts.append(same[0])
        firsts += [other for other in same[1:] if judge(same[0], other) is None]
    buckets.clear()
    for memory in firsts:
        if memory.statement is not None:
            buckets["words", skeleton_of(memory)].append(memory)
        if memory.said is not None:
            buckets["subject", memory.said.subject].append(memory)
    for bucket in buckets.values():
        for place, memory in enumerate(bucket):
            for other in bucket[place + 1 : place + 1 + BUCKET_NEIGHBOURS_MAX]:
                yield memory, other
    by_num = {memory.num: memory for memory in home}
    for one, other_num in near:
        yield by_num[one], by_num[other_num]


def _gathered(
    home: list[Looked], verdicts: dict[Edge, Verdict], vectors: dict[int, Vectors]
) -> Iterator[Conflict]:
    """What hangs together by some judgement, each time as one conflict."""
    by_num = {memory.num: memory for memory in home}
    for nums in _components(verdicts):
        members = [by_num[num] for num in sorted(nums, reverse=True)][:MEMBERS_MAX]
        within = {member.num for member in members}
        own = {edge: verdict for edge, verdict in verdicts.items() if within.issuperset(edge)}
        # Beyond so many members, one may be left without any of its own.
        members = [m for m in members if any(m.num in edge for edge in own)]
        if not own:
            continue
        differing = [verdict for verdict in own.values() if verdict.kind == CONTRADICTION]
        told = differing[0] if differing else next(iter(own.values()))
        yield Conflict(
            kind=told.kind,
            subject=subject_of(members[0]),
            similarity=max(_similarity(by_num[one], by_num[two], vectors) for one, two in own),
            reason=told.reason,
            members=tuple(members),
            verdicts=own,
        )


def _components(edges: Iterable[Edge]) -> list[set[int]]:
    parent: dict[int, int] = {}

    def root(num: int) -> int:
        while parent.setdefault(num, num) != num:
            parent[num] = parent[parent[num]]
            num = parent[num]
        return num

    for one, other in edges:
        parent[root(one)] = root(other)
    found: dict[int, set[int]] = defaultdict(set)
    for num in parent:
        found[root(num)].add(num)
    return list(found.values())


def _similarity(one: Looked, other: Looked, vectors: dict[int, Vectors]) -> float:
    """How near two memories are: in meaning, or without vectors by the words they share."""
    if one.num in vectors and other.num in vectors:
        return round(float(np.clip(vectors[one.num] @ vectors[other.num], 0.0, 1.0)), 4)
    if one.text == other.text or one.statement is None or other.statement is None:
        return 1.0
    left, right = one.statement.bag, other.statement.bag
    return round(len(left & right) / max(1, len(left | right)), 4)


def _same_keys(memories: Sequence[Looked]) -> Iterator[Conflict]:
    """Keys that hold one thing in a namespace and another in one below it."""
    keyed: dict[str, list[Looked]] = defaultdict(list)
    for memory in memories:
        if memory.key is not None:
            keyed[memory.key].append(memory)
    for key, holders in keyed.items():
        for holder in holders:
            below = [
                other
                for other in holders
                if other is not holder
                and covers(holder.namespace, other.namespace)
                and (other.text, other.value) != (holder.text, holder.value)
            ]
            if below:
                members = sorted([holder, *below], key=lambda memory: -memory.num)[:MEMBERS_MAX]
                yield Conflict(CONTRADICTION, key[:80], 1.0, SAME_KEY, tuple(members))


def _edge(one: Looked, other: Looked) -> Edge:
    return (one.num, other.num) if one.num < other.num else (other.num, one.num)
