"""Batches, relationships, groups and sessions through the services."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from recollect.protocol import errors
from recollect.protocol.operations import (
    AddMemory,
    AddRelationship,
    AddToGroup,
    BatchAddMemories,
    BatchGetMemories,
    Count,
    CreateContextGroup,
    CreateSession,
    DeleteMemory,
    ErrorReport,
    GetMemoriesByGroup,
    GetRelatedMemories,
    Purge,
    RecentErrors,
    ReportErrors,
    SemanticSearch,
)
from tests.harness.worlds import World


def add(world: World, content: str = "a memory", **fields: Any) -> str:
    memory_id: str = world(AddMemory(content, **fields))["memory_id"]
    return memory_id


def test_a_batch_is_one_transaction_with_an_answer_for_each_item(world: World) -> None:
    parent = add(world, "parent")
    taken = add(world, "holder", key="taken")
    items: list[dict[str, Any]] = [
        {"content": "good one", "tags": ["a"]},
        {"content": ""},
        {"content": "bad", "importance": 2},
        {"content": "bad", "contnet": "typo"},
        {"content": "orphan", "parent_id": "nobody"},
        {"content": "child", "parent_id": parent},
        {"content": "clash", "key": "taken"},
        {"content": "new key", "key": "k"},
        {"content": "same key", "key": "k"},
    ]
    answer = world(BatchAddMemories(items))
    states = [item["status"] for item in answer["results"]]
    assert states == [
        "success",
        "error",
        "error",
        "error",
        "error",
        "success",
        "error",
        "success",
        "error",
    ]
    codes = [item["error"]["code"] for item in answer["results"] if "error" in item]
    assert codes == ["invalid_argument"] * 3 + ["not_found"] + ["already_exists"] * 2
    assert "content" in answer["results"][3]["error"]["message"]
    assert (answer["status"], answer["stored"], answer["failed"]) == ("partial", 3, 6)
    assert world(Count())["count"] == 5
    stored = [i for i in answer["memory_ids"] if i is not None]
    fetched = world(BatchGetMemories([*stored, "nobody", taken]))
    assert [m["content"] for m in fetched["memories"]] == ["good one", "child", "new key", "holder"]
    assert fetched["missing_ids"] == ["nobody"]


def test_an_atomic_batch_is_refused_whole(world: World) -> None:
    bad: list[dict[str, Any]] = [{"content": ""}, {"content": "x", "parent_id": "nobody"}]
    for item in bad:
        with pytest.raises(errors.RecollectError, match=r"memories\[1\]"):
            world(BatchAddMemories([{"content": "good"}, item], atomic=True))
    assert world(Count())["count"] == 0


def test_ten_thousand_memories_go_in_at_once_and_one_more_is_refused(world: World) -> None:
    items = [{"content": f"memory number {n}"} for n in range(10_000)]
    answer = world(BatchAddMemories(items), key="big")
    assert answer["stored"] == 10_000
    assert world(BatchAddMemories(items), key="big") == answer
    assert world(Count())["count"] == 10_000
    assert world(SemanticSearch("memory number 9999", k=1))["count"] == 1
    with pytest.raises(errors.LimitExceeded) as caught:
        world(BatchAddMemories([*items, {"content": "one more"}]))
    assert caught.value.details["limit"] == "limits.batch_items_max"


def test_relationships_are_found_from_both_ends(world: World) -> None:
    a, b, c = (add(world, name) for name in "abc")
    world(AddRelationship(a, b, "supports", 0.5))
    world(AddRelationship(c, a, "contradicts"))

    def related(memory_id: str, *kind: str, **options: Any) -> list[tuple[str, str, str]]:
        found = world(GetRelatedMemories(memory_id, *kind, **options))["related"]
        return [(r["memory"]["content"], r["relationship_type"], r["direction"]) for r in found]

    assert related(a) == [("c", "contradicts", "in"), ("b", "supports", "out")]
    assert related(b) == [("a", "supports", "in")]
    assert related(a, "supports") == [("b", "supports", "out")]
    assert related(a, direction="in") == [("c", "contradicts", "in")]
    world(AddRelationship(a, b, "supports", 0.9))
    assert len(related(b)) == 1


def test_a_walk_goes_to_its_depth_and_meets_each_memory_once(world: World) -> None:
    chain = [add(world, f"m{n}") for n in range(5)]
    for left, right in itertools.pairwise(chain):
        world(AddRelationship(left, right, "next"))
    world(AddRelationship(chain[4], chain[0], "next"))
    walked = world(GetRelatedMemories(chain[0], depth=2, direction="out"))["related"]
    assert [(r["memory"]["id"], r["depth"]) for r in walked] == [(chain[1], 1), (chain[2], 2)]
    everything = world(GetRelatedMemories(chain[0], depth=5))["related"]
    assert {r["memory"]["id"] for r in everything} == set(chain[1:])
    assert world(GetRelatedMemories(chain[0], depth=5, limit=2))["count"] == 2
    world(DeleteMemory(chain[1]))
    after = world(GetRelatedMemories(chain[0], depth=1, direction="out"))
    assert after["count"] == 0


def test_a_relationship_needs_two_memories(world: World) -> None:
    a = add(world)
    with pytest.raises(errors.InvalidArgument, match="itself"):
        world(AddRelationship(a, a, "x"))
    for source, target in ((a, "nobody"), ("nobody", a)):
        with pytest.raises(errors.NotFound):
            world(AddRelationship(source, target, "x"))
    with pytest.raises(errors.InvalidArgument):
        world(AddRelationship(a, add(world), "x", strength=1.5))


def test_a_purged_memory_leaves_no_link(world: World) -> None:
    a, b = add(world), add(world)
    world(AddRelationship(a, b, "x"))
    world(Purge(b))
    assert world(GetRelatedMemories(a))["count"] == 0


def test_a_group_keeps_its_members_in_order_and_once(world: World) -> None:
    group = world(CreateContextGroup("sprint", "what we planned"))["group_id"]
    members = [add(world, f"m{n}") for n in range(5)]
    for member in [*members, members[0]]:
        world(AddToGroup(member, group))
    world(DeleteMemory(members[2]))
    listed, cursor = [], None
    while True:
        page = world(GetMemoriesByGroup(group, limit=2, cursor=cursor))
        listed += [m["id"] for m in page["memories"]]
        if (cursor := page["cursor"]) is None:
            break
    assert listed == [members[0], members[1], members[3], members[4]]
    with pytest.raises(errors.NotFound, match="group"):
        world(AddToGroup(members[0], "nobody"))
    with pytest.raises(errors.NotFound, match="memory"):
        world(AddToGroup("nobody", group))
    with pytest.raises(errors.NotFound):
        world(GetMemoriesByGroup("nobody"))


def test_a_session_is_begun(world: World) -> None:
    answer = world(CreateSession("alice", session_metadata={"channel": "cli"}))
    assert answer["user_id"] == "alice"
    assert answer["session_type"] == "conversation"
    with pytest.raises(errors.InvalidArgument):
        world(CreateSession(""))


def test_reported_errors_are_counted_by_kind(world: World) -> None:
    for _ in range(3):
        world(ReportErrors("agent-1", [ErrorReport("timeout", "no answer", count=2)]))
    world(ReportErrors("agent-2", [ErrorReport("circuit_open", "tripped")]))
    errors_seen = world(RecentErrors())["errors"]
    assert [(e["source"], e["code"], e["count"]) for e in errors_seen] == [
        ("agent-2", "circuit_open", 1),
        ("agent-1", "timeout", 6),
    ]
    assert world(RecentErrors(source="agent-1"))["count"] == 1
