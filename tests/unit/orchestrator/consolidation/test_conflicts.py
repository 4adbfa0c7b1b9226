"""Which memories are judged, and how what was found becomes conflicts and new texts."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from recollect.config.settings import DecaySettings
from recollect.orchestrator.consolidation.conflicts import (
    MEMBERS_MAX,
    Conflict,
    conflicts_among,
)
from recollect.orchestrator.consolidation.forgetting import fate_among
from recollect.orchestrator.consolidation.judging import Looked
from recollect.orchestrator.consolidation.merging import merged_row, merged_text
from recollect.orchestrator.consolidation.similarity import near_pairs
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.memories.strength import Fading
from tests.unit.orchestrator.consolidation.test_judging import look


def found(memories: list[Looked], vectors: Any = None) -> list[Conflict]:
    newest_first = sorted(memories, key=lambda memory: -memory.num)
    return conflicts_among(
        newest_first, vectors or {}, duplicate_similarity=0.9, conflict_similarity=0.75
    )


def nums(conflict: Conflict) -> list[int]:
    return [member.num for member in conflict.members]


def test_near_pairs_are_those_that_a_plain_loop_finds() -> None:
    chance = np.random.default_rng(7)
    vectors = chance.normal(size=(300, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = {
        (one, other)
        for one in range(300)
        for other in range(one + 1, 300)
        if float(vectors[one] @ vectors[other]) >= 0.8
    }
    pairs = near_pairs(vectors, 0.8)
    assert {(one, other) for one, other, _ in pairs} == expected
    scores = [score for _, _, score in pairs]
    assert scores == sorted(scores, reverse=True)
    few = near_pairs(vectors, 0.8, pairs_max=5)
    assert [score for _, _, score in few] == scores[:5]
    assert near_pairs(vectors[:1], 0.0) == []


def test_conflicts_are_found_without_any_vector() -> None:
    memories = [
        look("Anna lives in Paris", 1),
        look("The lamp is red", 2),
        look("Anna lives in Berlin", 3),
        look("Anna eats meat", 4),
        look("Anna does not eat meat", 5),
        look("The organisation uses Kubernetes", 6),
        look("The organization uses Kubernetes", 7),
    ]
    assert [nums(conflict) for conflict in found(memories)] == [[7, 6], [5, 4], [3, 1]]


def test_repetitions_and_what_contradicts_them_are_one_conflict() -> None:
    memories = [
        look("Anna lives in Paris", 1),
        look("anna lives in Paris.", 2),
        look("Anna lives in Berlin", 3),
    ]
    [conflict] = found(memories)
    assert (conflict.kind, nums(conflict)) == ("contradiction", [3, 2, 1])
    # What only repeats a rival of the one that is kept goes with it.
    assert conflict.bound_to(3) == {1, 2}


def test_many_of_the_same_make_one_conflict_of_bounded_size() -> None:
    memories = [look("Anna lives in Paris", num) for num in range(1, 3_001)]
    [conflict] = found(memories)
    assert nums(conflict) == list(range(3_000, 3_000 - MEMBERS_MAX, -1))
    assert conflict.bound_to(3_000) == set(range(2_951, 3_000))


def test_nothing_is_compared_across_namespaces() -> None:
    memories = [look("Anna lives in Paris", 1), look("Anna lives in Paris", 2, namespace="user:b")]
    assert found(memories) == []


ROW = MemoryRow(
    num=1,
    id="one",
    seq=1,
    namespace="app:default",
    key=None,
    version=1,
    collection="memories",
    memory_type="general",
    tier="short",
    content="Anna likes tea.",
    value=None,
    metadata="{}",
    tags="[]",
    importance=0.5,
    stability_s=10.0,
    access_count=1,
    last_access_us=5,
    fades_us=9,
    parent_id=None,
    session_id="s",
    created_by="planner",
    updated_by="planner",
    source=None,
    trust=1.0,
    valid_from_us=None,
    valid_to_us=None,
    created_us=1,
    updated_us=1,
    expires_us=None,
    archived_us=None,
    deleted_us=None,
    operation="add_memory",
)


def row(content: str = ROW.content, **given: Any) -> MemoryRow:
    return msgspec.structs.replace(ROW, content=content, **given)


def test_a_merge_keeps_every_sentence_once_and_of_rivals_the_first() -> None:
    assert merged_text([row("Anna likes tea"), row("anna likes tea.")]) == "Anna likes tea"
    assert merged_text([row("Anna likes tea"), row("The lamp is red")]) == (
        "Anna likes tea. The lamp is red."
    )
    assert (
        merged_text(
            [
                row("Anna lives in Berlin. She likes it."),
                row("Anna lives in Paris. The lamp is red!"),
            ]
        )
        == "Anna lives in Berlin. She likes it. The lamp is red!"
    )
    assert merged_text([row("One thing\nAnother thing"), row("A third")]) == (
        "One thing.\nAnother thing.\nA third."
    )


def test_a_merge_is_trusted_as_its_least_source_and_fades_as_its_last() -> None:
    fading = Fading(DecaySettings())
    merged = merged_row(
        [
            row(trust=0.9, tags='["a"]', metadata='{"x":1}', tier="long", session_id="s"),
            row(trust=0.3, tags='["b","a"]', metadata='{"x":2,"y":3}', stability_s=99.0),
        ],
        "both",
        author="gardener",
        operation="consolidate",
        now_us=100,
        fading=fading,
        tags_max=10,
        metadata_bytes_max=1_000,
    )
    assert (merged.trust, merged.tags, merged.tier) == (0.3, '["a","b"]', "long")
    assert merged.metadata == '{"x":1,"y":3}'
    assert (merged.stability_s, merged.session_id) == (99.0, "s")
    assert (merged.source, merged.created_by, merged.version) == (
        "consolidation",
        "gardener",
        1,
    )


def versions(*states: dict[str, Any]) -> list[MemoryRow]:
    usual: dict[str, Any] = {"operation": "update_memory"}
    return [
        row(**(usual | {"version": at, "updated_us": at} | state))
        for at, state in enumerate(states, 1)
    ]


def test_the_fate_of_a_memory_follows_from_its_versions() -> None:
    mine, theirs = {"updated_by": "me"}, {"updated_by": "rogue", "content": "A lie"}

    def fate(*states: dict[str, Any]) -> tuple[str, int | None] | None:
        told = fate_among(versions(*states), "rogue")
        return None if told is None else (told.action, told.target)

    assert fate(mine) is None
    assert fate(theirs) == ("deleted", None)
    assert fate(mine, theirs) == ("reverted", 1)
    assert fate(mine, mine, theirs, theirs) == ("reverted", 2)
    # Who changes it later builds upon what was there.
    assert fate(mine, theirs, mine | {"content": "A lie", "tags": '["x"]'}) == ("reverted", 1)
    # Going back, by whom ever, is as good as what it goes back to.
    back = mine | {"operation": "restore"}
    assert fate(mine, theirs, back) is None
    again = theirs | {"updated_by": "me", "operation": "undo"}
    assert fate(mine, theirs, back, again) == ("reverted", 3)
    # A source that is only quoted counts from where it is.
    assert fate(mine, mine | {"source": "rogue"}) == ("reverted", 1)
    assert fate(mine | {"source": "rogue"}, mine | {"source": "rogue"}) == ("deleted", None)
    # What is gone is gone, unless it was the source that deleted it.
    gone = mine | {"deleted_us": 9}
    assert fate(theirs, gone) is None
    assert fate(mine, theirs, gone) is None
    assert fate(mine, gone | {"updated_by": "rogue"}) == ("reverted", 1)
    # A run in its name is not its work.
    assert fate(mine, {"updated_by": "rogue", "operation": "consolidate", "archived_us": 3}) is None
