"""Which memories are summed up together."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.tiers.grouping import (
    GROUP_MAX,
    GROUP_MIN,
    groups_among,
    may_be_summed_up,
    within_bounds,
)


def row(num: int, **given: Any) -> MemoryRow:
    made: dict[str, Any] = dict.fromkeys(MemoryRow.__struct_fields__)
    made |= {"num": num, "id": f"m{num}", "namespace": "user:a", "collection": "memories"}
    made |= {"importance": 0.5, "created_us": num, "content": f"text {num}"}
    return MemoryRow(**(made | given))


def nums(groups: list[list[MemoryRow]]) -> list[list[int]]:
    return [[row.num for row in group] for group in groups]


def test_what_is_of_one_task_one_session_or_one_parent_belongs_together() -> None:
    rows = [
        *(row(n, session_id="s") for n in (1, 4, 7)),
        *(row(n, parent_id="p") for n in (2, 5, 8)),
        *(row(n, collection="steps", session_id="s") for n in (3, 6, 9)),
        *(row(n, session_id="t") for n in (10, 11)),
    ]
    tasks = {3: "a", 6: "a", 9: "a"}
    assert nums(groups_among(rows, tasks, {}, 0.7)) == [[1, 4, 7], [2, 5, 8], [3, 6, 9]]


def test_namespaces_are_kept_apart() -> None:
    rows = [row(n, session_id="s", namespace=f"user:{n}") for n in range(5)]
    near = dict.fromkeys(range(5), np.array([1.0, 0.0], dtype=np.float32))
    assert groups_among(rows, {}, near, 0.5) == []


def test_what_is_near_in_meaning_belongs_together() -> None:
    angles = {1: 0.0, 2: 1.5, 3: 0.1, 4: 1.6, 5: 0.2, 6: 3.0, 7: 1.4}
    vectors = {
        num: np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)
        for num, angle in angles.items()
    }
    assert nums(groups_among([row(n) for n in angles], {}, vectors, 0.9)) == [[1, 3, 5], [2, 4, 7]]


def test_groups_are_bounded_disjoint_and_always_the_same() -> None:
    chance = random.Random(5)
    for _ in range(20):
        rows = [
            row(
                n,
                namespace=chance.choice(["user:a", "user:b"]),
                session_id=chance.choice([None, "s", "t"]),
                parent_id=chance.choice([None, "p"]),
            )
            for n in range(chance.randrange(1, 150))
        ]
        vectors = {
            r.num: np.array([chance.random(), chance.random()], dtype=np.float32)
            for r in rows
            if chance.random() < 0.8
        }
        groups = groups_among(rows, {}, vectors, 0.9)
        members = [r.num for group in groups for r in group]
        assert len(members) == len(set(members))
        assert all(GROUP_MIN <= len(group) <= GROUP_MAX for group in groups)
        assert all(len({r.namespace for r in group}) == 1 for group in groups)
        chance.shuffle(rows)
        assert nums(groups_among(rows, {}, vectors, 0.9)) == nums(groups)


def test_records_keys_and_what_says_more_than_its_text_are_never_summed_up() -> None:
    assert may_be_summed_up(row(1))
    for given in (
        {"collection": "decisions"},
        {"collection": "goals"},
        {"collection": "summaries"},
        {"collection": "documents"},
        {"collection": "patterns"},
        {"key": "k"},
        {"value": "1"},
        {"expires_us": 5},
        {"valid_to_us": 5},
        {"importance": 0.9},
    ):
        assert not may_be_summed_up(row(1, **given)), given


def test_a_run_takes_no_more_than_its_part_of_a_namespace_and_always_something() -> None:
    groups = [
        [row(10 * g + n, namespace=home) for n in range(4)]
        for g, home in enumerate(["user:a", "user:a", "user:b", "user:a"])
    ]
    taken, left = within_bounds(groups, {"user:a": 12, "user:b": 4}, 0.5)
    assert ([g[0].num for g in taken], [g[0].num for g in left]) == ([0, 10, 20], [30])
    taken, left = within_bounds(groups, {}, 0.01)
    assert ([g[0].num for g in taken], [g[0].num for g in left]) == ([0, 20], [10, 30])
