"""Which memories belong together: of one task, one session or one parent, or near in meaning.

Pure functions: the same memories are always grouped alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.memories.rows import MemoryRow

T = TypeVar("T")

GROUP_MIN = 3
GROUP_MAX = 20
PLAIN = frozenset({"memories", "steps", "events"})
"""Collections of which the single entry may go behind a summary; every other is a record."""
IMPORTANT = 0.8
"""From this importance on a memory is to be found as it is."""

Group = list[MemoryRow]


def may_be_summed_up(row: MemoryRow) -> bool:
    """Whether a memory may go behind a summary.

    What has a key must be found by it, what expires must not live on in a summary, what has a value
    or a last day of validity says more than its text, and what is important is kept as it is.
    """
    return (
        row.collection in PLAIN
        and row.key is None
        and row.expires_us is None
        and row.value is None
        and row.valid_to_us is None
        and row.importance < IMPORTANT
    )


def groups_among(
    rows: Sequence[MemoryRow],
    tasks: Mapping[int, str],
    vectors: Mapping[int, Vectors],
    similarity: float,
) -> list[Group]:
    """Groups of memories that may be summed up, each of one namespace and in order of time.

    `tasks` and `vectors` are by the numbers of the memories; not every memory has one.
    """
    left = sorted(filter(may_be_summed_up, rows), key=lambda row: (row.created_us, row.num))
    groups: list[Group] = []
    bonds: tuple[Callable[[MemoryRow], str | None], ...] = (
        lambda row: tasks.get(row.num),
        lambda row: row.session_id,
        lambda row: row.parent_id,
    )
    for bond in bonds:
        found, left = _bound(left, bond)
        groups += found
    for home in _by(left, lambda row: row.namespace).values():
        groups += _near(home, vectors, similarity)
    return sorted(groups, key=lambda group: group[0].num)


def _bound(
    rows: list[MemoryRow], bond: Callable[[MemoryRow], str | None]
) -> tuple[list[Group], list[MemoryRow]]:
    """Groups of what has something in common, and the rest."""
    groups: list[Group] = []
    for (_, common), members in _by(rows, lambda row: (row.namespace, bond(row))).items():
        if common is not None and len(members) >= GROUP_MIN:
            groups += _pieces(members)
    grouped = {row.num for group in groups for row in group}
    return groups, [row for row in rows if row.num not in grouped]


def _pieces(members: list[MemoryRow]) -> list[Group]:
    """Members in their order, in pieces of about the same size, none too large."""
    count = -(-len(members) // GROUP_MAX)
    bounds = [len(members) * at // count for at in range(count + 1)]
    return [members[start:end] for start, end in pairwise(bounds)]


def _near(rows: list[MemoryRow], vectors: Mapping[int, Vectors], similarity: float) -> list[Group]:
    """Groups of what is near in meaning to the oldest of them, which each begins with."""
    known = [row for row in rows if row.num in vectors]
    if len(known) < GROUP_MIN:
        return []
    matrix = np.stack([vectors[row.num] for row in known])
    free = np.ones(len(known), dtype=bool)
    groups: list[Group] = []
    for leader in range(len(known)):
        if not free[leader]:
            continue
        scores = np.where(free, matrix @ matrix[leader], -1.0)
        scores[leader] = 2.0
        nearest = np.argsort(-scores, kind="stable")[:GROUP_MAX]
        chosen = sorted(int(at) for at in nearest if scores[at] >= similarity)
        if len(chosen) >= GROUP_MIN:
            groups.append([known[at] for at in chosen])
            free[chosen] = False
    return groups


def within_bounds(
    groups: Sequence[Group], total: Mapping[str, int], shrink_max: float
) -> tuple[list[Group], list[Group]]:
    """The groups that one run may sum up, and those that are left to the next.

    A namespace with so many memories in `total` gets fewer by no more than that part; one group may
    always be summed up, so that every run comes further.
    """
    taken: list[Group] = []
    left: list[Group] = []
    fewer: dict[str, int] = {}
    for group in groups:
        home = group[0].namespace
        by = fewer.get(home, 0) + len(group) - 1
        if home in fewer and by > shrink_max * total.get(home, 0):
            left.append(group)
        else:
            fewer[home] = by
            taken.append(group)
    return taken, left


def _by(rows: Sequence[MemoryRow], key: Callable[[MemoryRow], T]) -> dict[T, list[MemoryRow]]:
    found: dict[T, list[MemoryRow]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
