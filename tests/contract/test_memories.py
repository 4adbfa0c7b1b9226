"""Memories through the services: stored, changed, deleted, restored, read as they were."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from recollect.orchestrator.access.grants import NOTHING
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.assembly import parts
from recollect.orchestrator.clock import to_iso
from recollect.protocol import errors
from recollect.protocol.operations import (
    AddMemory,
    Count,
    DeleteMemory,
    GetChildren,
    GetMemory,
    History,
    ListMemories,
    Purge,
    ReinforceMemory,
    Restore,
    SemanticSearch,
    Stats,
    UpdateMemory,
)
from tests.harness.worlds import World


def add(world: World, content: str = "a memory", **fields: Any) -> str:
    memory_id: str = world(AddMemory(content, **fields))["memory_id"]
    return memory_id


def get(world: World, memory_id: str, **options: Any) -> dict[str, Any]:
    memory: dict[str, Any] = world(GetMemory(memory_id, **options))["memory"]
    return memory


def found(world: World, query: str, **options: Any) -> set[str]:
    return {m["id"] for m in world(SemanticSearch(query, k=50, **options))["results"]}


def test_a_memory_comes_back_as_it_was_stored(world: World) -> None:
    parent = add(world, "parent")
    memory_id = add(
        world,
        "the content — with ünïcode 🎈",
        memory_type="semantic",
        memory_tier="long",
        importance=0.75,
        metadata={"a": {"b": [1, 2.5, None, True, "x"]}},
        tags=["one", "two", "one"],
        parent_id=parent,
        namespace="user:alice",
        key="k",
        value={"n": 1},
        source="a book",
        trust=0.5,
        valid_from="2026-01-01",
        valid_to=1_800_000_000,
    )
    memory = get(world, memory_id)
    assert memory["content"] == "the content — with ünïcode 🎈"
    assert memory["memory_type"] == "semantic"
    assert memory["memory_tier"] == "long"
    assert memory["importance"] == 0.75
    assert memory["metadata"] == {"a": {"b": [1, 2.5, None, True, "x"]}}
    assert memory["tags"] == ["one", "two"]
    assert memory["parent_id"] == parent
    assert (memory["namespace"], memory["key"], memory["value"]) == ("user:alice", "k", {"n": 1})
    assert (memory["source"], memory["trust"], memory["version"]) == ("a book", 0.5, 1)
    assert memory["valid_from"] == "2026-01-01T00:00:00.000000Z"
    assert memory["created_at"] == memory["updated_at"]
    assert memory["deleted_at"] is None


def test_who_wrote_it_and_in_which_session_is_kept(world: World) -> None:
    memory_id = world(AddMemory("x"), agent="planner", session="s1")["memory_id"]
    world(UpdateMemory(memory_id, {"content": "y"}), agent="critic")
    memory = get(world, memory_id)
    assert (memory["created_by"], memory["updated_by"]) == ("planner", "critic")
    assert memory["session_id"] == "s1"


def test_ids_sort_by_time(world: World) -> None:
    ids = [add(world) for _ in range(50)]
    assert ids == sorted(ids)


def test_every_update_is_a_new_version_and_the_old_one_stays(world: World) -> None:
    memory_id = add(world, "first", metadata={"a": 1, "b": 2})
    changed = world(UpdateMemory(memory_id, {"content": "second", "metadata_patch": {"b": None}}))
    assert changed["version"] == 2
    world(UpdateMemory(memory_id, {"metadata": {"c": 3}, "tags": ["t"]}))
    versions = world(History(memory_id))["versions"]
    assert [v["version"] for v in versions] == [3, 2, 1]
    assert [v["memory"]["content"] for v in versions] == ["second", "second", "first"]
    assert [v["memory"]["metadata"] for v in versions] == [{"c": 3}, {"a": 1}, {"a": 1, "b": 2}]
    assert get(world, memory_id, version=1)["content"] == "first"
    assert get(world, memory_id)["tags"] == ["t"]


def test_as_of_reads_what_was_believed_then(world: World) -> None:
    def moment() -> str:
        world.clock.advance(60)
        now = to_iso(world.clock.now_us())
        world.clock.advance(60)
        return now

    before = moment()
    memory_id = add(world, "first")
    after_add = moment()
    world(UpdateMemory(memory_id, {"content": "second"}))
    after_update = moment()
    world(DeleteMemory(memory_id))
    after_delete = moment()

    assert get(world, memory_id, as_of=after_add)["content"] == "first"
    assert get(world, memory_id, as_of=after_update)["content"] == "second"
    for gone in (before, after_delete):
        with pytest.raises(errors.NotFound):
            get(world, memory_id, as_of=gone)


def test_an_expected_version_that_is_not_the_present_one_is_a_conflict(world: World) -> None:
    memory_id = add(world)
    world(UpdateMemory(memory_id, {"content": "b"}, expected_version=1))
    operations = (
        UpdateMemory(memory_id, {"content": "c"}, expected_version=1),
        DeleteMemory(memory_id, expected_version=1),
        Restore(memory_id, 1, expected_version=1),
    )
    for operation in operations:
        with pytest.raises(errors.VersionConflict) as caught:
            world(operation)
        assert caught.value.details["actual_version"] == 2
    assert get(world, memory_id)["content"] == "b"


def test_a_deleted_memory_is_gone_everywhere_and_can_be_restored(world: World) -> None:
    memory_id = add(world, "unusual words: zebra quartz")
    assert memory_id in found(world, "zebra quartz")
    world(DeleteMemory(memory_id))
    with pytest.raises(errors.NotFound):
        get(world, memory_id)
    assert memory_id not in found(world, "zebra quartz")
    assert world(Count())["count"] == 0
    assert world(ListMemories(include_deleted=True))["count"] == 1
    assert get(world, memory_id, include_deleted=True)["deleted_at"] is not None

    assert world(Restore(memory_id))["version"] == 3
    assert get(world, memory_id)["content"] == "unusual words: zebra quartz"
    assert memory_id in found(world, "zebra quartz")


def test_an_old_version_can_be_made_the_newest(world: World) -> None:
    memory_id = add(world, "yellow submarine")
    world(UpdateMemory(memory_id, {"content": "purple mountain"}))
    assert world(Restore(memory_id, 1))["version"] == 3
    assert get(world, memory_id)["content"] == "yellow submarine"
    best = world(SemanticSearch("yellow submarine", k=1))["results"][0]
    assert best["score"] == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(errors.InvalidArgument):
        world(Restore(memory_id))
    with pytest.raises(errors.NotFound):
        world(Restore(memory_id, 99))


def test_purge_leaves_no_row_and_detaches_the_children(world: World) -> None:
    memory_id = add(world, "secret")
    child = add(world, "child", parent_id=memory_id)
    world(UpdateMemory(memory_id, {"content": "secret two"}))
    assert world(Purge(memory_id))["purged"] == 1
    for operation in (GetMemory(memory_id, include_deleted=True), History(memory_id)):
        with pytest.raises(errors.NotFound):
            world(operation)
    assert get(world, child)["parent_id"] is None
    assert memory_id not in found(world, "secret two")


def test_cascade_takes_the_whole_tree_in_one_step(world: World) -> None:
    root = add(world, "root")
    branches = [add(world, f"branch {n}", parent_id=root) for n in range(3)]
    leaves = [add(world, f"leaf {n}", parent_id=branch) for branch in branches for n in range(2)]
    other = add(world, "other")
    deleted = world(DeleteMemory(root))
    assert set(deleted["deleted_ids"]) == {root, *branches, *leaves}
    assert world(Count())["count"] == 1
    assert get(world, other)["content"] == "other"


def test_without_cascade_the_children_become_roots(world: World) -> None:
    root = add(world, "root")
    child = add(world, "child", parent_id=root)
    grandchild = add(world, "grandchild", parent_id=child)
    deleted = world(DeleteMemory(root, cascade=False))
    assert deleted["deleted_ids"] == [root]
    assert deleted["detached_ids"] == [child]
    assert get(world, child)["parent_id"] is None
    assert get(world, grandchild)["parent_id"] == child


def test_cycles_are_refused(world: World) -> None:
    root = add(world, "root")
    child = add(world, "child", parent_id=root)
    grandchild = add(world, "grandchild", parent_id=child)
    for parent in (root, child, grandchild):
        with pytest.raises(errors.CycleRefused):
            world(UpdateMemory(root, {"parent_id": parent}))
    assert get(world, root)["version"] == 1
    world(UpdateMemory(grandchild, {"parent_id": root}))
    assert get(world, grandchild)["parent_id"] == root


def test_a_parent_must_be_there(world: World) -> None:
    gone = add(world)
    world(DeleteMemory(gone))
    for parent in ("nobody", gone):
        with pytest.raises(errors.NotFound):
            add(world, parent_id=parent)
    assert world(Count())["count"] == 0


def test_children_come_in_the_order_asked_for_page_by_page(world: World) -> None:
    root = add(world, "root")
    weights = [0.1, 0.9, 0.5, 0.5, 0.3]
    children = [
        add(world, f"child {n}", parent_id=root, importance=weight)
        for n, weight in enumerate(weights)
    ]

    def pages(**options: Any) -> list[str]:
        ids: list[str] = []
        cursor = None
        while True:
            page = world(GetChildren(root, limit=2, cursor=cursor, **options))
            ids += [memory["id"] for memory in page["memories"]]
            cursor = page["cursor"]
            if cursor is None:
                return ids

    assert pages() == children[::-1]
    assert pages(sort_order="asc") == children
    by_importance = pages(sort_field="importance", sort_order="desc")
    assert [children.index(child) for child in by_importance] == [1, 3, 2, 4, 0]
    with pytest.raises(errors.NotFound):
        world(GetChildren("nobody"))


def test_a_cursor_of_another_query_is_refused(world: World) -> None:
    for _ in range(3):
        add(world)
    cursor = world(ListMemories(limit=1))["cursor"]
    assert cursor is not None
    for bad in (
        ListMemories(limit=1, cursor=cursor, namespace="user:bob"),
        ListMemories(cursor="rubbish!"),
        ListMemories(cursor=""),
    ):
        with pytest.raises(errors.InvalidArgument, match="cursor"):
            world(bad)


def test_namespaces_are_found_by_prefix_of_whole_parts(world: World) -> None:
    ids = {
        namespace: add(world, "note", namespace=namespace)
        for namespace in ("user:alice", "user:alice:preferences", "user:alice2", "user:alic")
    }
    listed = world(ListMemories(namespace="user:alice"))["memories"]
    wanted = {ids["user:alice"], ids["user:alice:preferences"]}
    assert {memory["id"] for memory in listed} == wanted
    assert found(world, "note", namespace="user:alice") == wanted
    assert world(Count(namespace="user:alice"))["count"] == 2


@pytest.mark.parametrize("namespace", ["alice", "user", "user:", "other:x", "user:a b", "user::a"])
def test_a_namespace_must_follow_the_rule(world: World, namespace: str) -> None:
    with pytest.raises(errors.InvalidArgument, match="namespace begins with temp"):
        add(world, namespace=namespace)


def test_a_key_is_unique_among_the_living_of_its_namespace(world: World) -> None:
    first = add(world, key="k")
    with pytest.raises(errors.AlreadyExists) as caught:
        add(world, key="k")
    assert caught.value.details["memory_id"] == first
    add(world, key="k", namespace="user:bob")
    world(DeleteMemory(first))
    add(world, key="k")
    with pytest.raises(errors.AlreadyExists):
        world(Restore(first))


def test_an_expired_memory_gives_up_its_key(world: World) -> None:
    now_s = world.clock.now_us() / 1_000_000
    brief = add(world, "brief", key="k", expires_at=now_s + 60)
    world.clock.advance(61)
    add(world, "next", key="k")
    assert [v["operation"] for v in world(History(brief))["versions"]] == ["expire", "add_memory"]


def test_an_expired_memory_is_gone(world: World) -> None:
    now_s = world.clock.now_us() / 1_000_000
    brief = add(world, "brief note", expires_at=now_s + 60)
    lasting = add(world, "lasting note")
    assert found(world, "note") == {brief, lasting}
    world.clock.advance(61)
    with pytest.raises(errors.NotFound):
        get(world, brief)
    assert found(world, "note") == {lasting}
    assert world(Count())["count"] == 1


def test_strength_falls_with_time_and_reading_or_reinforcing_renews_it(world: World) -> None:
    memory_id = add(world, "x", importance=0.0)
    fresh = get(world, memory_id)
    world.clock.advance(7 * 86_400)
    faded = get(world, memory_id)
    assert fresh["strength"] > 0.999
    assert 0.45 < faded["strength"] < 0.55
    renewed = get(world, memory_id)
    assert renewed["strength"] > 0.999
    assert renewed["fades_at"] > fresh["fades_at"]
    reinforced = world(ReinforceMemory(memory_id, 2.0))
    assert reinforced["stability_s"] > 1.9 * renewed["stability_s"]
    assert get(world, memory_id)["version"] == 1


def test_what_is_known_of_reads_is_not_lost_to_who_may_not_see_the_memory(world: World) -> None:
    memory_id = add(world)
    for _ in range(3):
        get(world, memory_id)
    stranger = Identity("stranger", NOTHING)
    with pytest.raises(errors.NotFound):
        world(ReinforceMemory(memory_id), stranger)
    assert world(ReinforceMemory(memory_id))["access_count"] == 4
    world.restart()
    assert get(world, memory_id)["access_count"] == 4


def test_what_is_known_of_reads_is_not_lost_to_an_answer_that_is_told_again(world: World) -> None:
    memory_id = add(world)
    for _ in range(3):
        get(world, memory_id)
    first = world(ReinforceMemory(memory_id), key="once")
    assert first["access_count"] == 4
    for _ in range(2):
        get(world, memory_id)
    assert world(ReinforceMemory(memory_id), key="once") == first
    assert world(ReinforceMemory(memory_id))["access_count"] == 7


def test_importance_and_tier_slow_the_fading(world: World) -> None:
    def stability_s(**fields: Any) -> float:
        value: float = get(world, add(world, **fields))["stability_s"]
        return value

    assert stability_s(importance=1.0) > stability_s(importance=0.0)
    assert stability_s(memory_tier="long") > stability_s(memory_tier="short")
    memory_id = add(world, importance=0.5)
    before = get(world, memory_id)["stability_s"]
    world(UpdateMemory(memory_id, {"memory_tier": "long"}))
    assert get(world, memory_id)["stability_s"] > before


def test_reads_are_counted_and_written_later(world: World) -> None:
    memory_id = add(world)
    for _ in range(5):
        get(world, memory_id)
    world.restart()
    assert get(world, memory_id)["access_count"] == 5


def test_a_retry_gets_the_first_answer_and_another_payload_a_conflict(world: World) -> None:
    first = world(AddMemory("once"), key="k1")
    again = world(AddMemory("once"), key="k1")
    assert first == again
    for other in (AddMemory("twice"), DeleteMemory(first["memory_id"])):
        with pytest.raises(errors.IdempotencyConflict):
            world(other, key="k1")
    world.restart()
    assert world(AddMemory("once"), key="k1") == first
    assert world(Count())["count"] == 1


def test_a_failed_write_may_be_tried_again_under_its_key(world: World) -> None:
    with pytest.raises(errors.NotFound):
        world(AddMemory("child", parent_id="nobody"), key="k1")
    parent = add(world)
    world(AddMemory("child", parent_id=parent), key="k1")
    assert world(Count())["count"] == 2


def test_an_expired_request_is_not_executed(world: World) -> None:
    past_ms = world.clock.now_us() // 1000 - 1
    with pytest.raises(errors.DeadlineExceeded):
        world(AddMemory("late"), deadline_ms=past_ms)
    assert world(Count())["count"] == 0


def test_min_seq_of_a_change_that_never_was_ends_at_the_deadline(world: World) -> None:
    memory_id = add(world)
    seq = world(UpdateMemory(memory_id, {"content": "b"}))["seq"]
    assert get(world, memory_id, min_seq=seq)["seq"] == seq
    # The clock moves by a microsecond a look: a few of them are left.
    now_us = world.clock.now_us()
    world.clock.advance((990 - now_us % 1000) / 1_000_000 + 0.001)
    soon_ms = world.clock.now_us() // 1000 + 1
    with pytest.raises(errors.NotYetVisible):
        world(GetMemory(memory_id, min_seq=seq + 1000), deadline_ms=soon_ms)


def test_the_index_is_made_anew_from_the_rows_at_start(world: World) -> None:
    kept = add(world, "kept memory about gardens")
    changed = add(world, "old words about rivers")
    world(UpdateMemory(changed, {"content": "new words about mountains"}))
    gone = add(world, "deleted memory about gardens")
    world(DeleteMemory(gone))
    before = world(SemanticSearch("memory about gardens", k=10))["results"]
    world.restart()
    after = world(SemanticSearch("memory about gardens", k=10))["results"]
    assert [m["id"] for m in after] == [m["id"] for m in before]
    assert after[0]["id"] == kept
    assert gone not in {m["id"] for m in after}
    assert world(Stats())["index"]["vectors"] == 2


@pytest.mark.parametrize("damage", ["DELETE FROM vectors", "UPDATE vectors SET vector = '[1,2,3]'"])
def test_a_memory_whose_vector_is_lost_or_damaged_is_embedded_again(
    world: World, damage: str
) -> None:
    memory_id = add(world, "a lonely lighthouse")

    async def do_damage() -> None:
        await world.storage.write(lambda transaction: transaction.execute(damage))

    world.run(do_damage())
    world.restart()
    world.settle()
    assert found(world, "lonely lighthouse") == {memory_id}


def test_the_last_moment_of_time_can_be_stored_and_shown(world: World) -> None:
    never = "9999-12-31T23:59:59.999999Z"
    memory_id = add(world, "for ever", expires_at=never, valid_from="0001-01-01T00:00:00Z")
    assert get(world, memory_id)["expires_at"] == never
    assert world(ListMemories())["memories"][0]["valid_from"] == "0001-01-01T00:00:00.000000Z"


def test_a_repeated_restore_gets_its_first_answer(world: World) -> None:
    memory_id = add(world)
    world(DeleteMemory(memory_id))
    first = world(Restore(memory_id), key="r")
    assert world(Restore(memory_id), key="r") == first
    with pytest.raises(errors.InvalidArgument):
        world(Restore(memory_id), key="another")


def test_restoring_another_tier_restores_how_fast_it_fades(world: World) -> None:
    memory_id = add(world, memory_tier="short")
    before = get(world, memory_id)["stability_s"]
    world(UpdateMemory(memory_id, {"memory_tier": "long"}))
    world(Restore(memory_id, 1))
    assert get(world, memory_id)["stability_s"] < 2 * before


def test_a_metadata_patch_removes_only_what_it_names(world: World) -> None:
    memory_id = add(world, metadata={"a": None, "b": 1, "c": 2})
    world(UpdateMemory(memory_id, {"metadata_patch": {"c": None, "d": 4}}))
    assert get(world, memory_id)["metadata"] == {"a": None, "b": 1, "d": 4}


def test_reads_by_search_and_by_id_are_counted_alike(world: World) -> None:
    memory_id = add(world, "counted")
    get(world, memory_id)
    for _ in range(3):
        found(world, "counted")
    assert get(world, memory_id)["access_count"] == 4


def test_oversized_content_is_refused_before_any_work_on_it(world: World) -> None:
    memory_id = add(world)
    with pytest.raises(errors.LimitExceeded):
        world(UpdateMemory(memory_id, {"content": "x " * 200_000}))
    with pytest.raises(errors.LimitExceeded) as caught:
        add(world, value=list(range(500_000)))
    assert caught.value.details["limit"] == "limits.value_bytes_max"


def test_a_number_is_not_compared_with_text(world: World) -> None:
    wrong: list[dict[str, Any]] = [
        {"importance": "high"},
        {"version": {"contains": "1"}},
        {"trust": {"in": ["x"]}},
    ]
    for filters in wrong:
        with pytest.raises(errors.InvalidArgument):
            world(Count(filters=filters))


def test_of_large_memories_fewer_are_kept_at_hand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bound = 2_000_000
    monkeypatch.setattr(parts, "ROWS_CACHED_BYTES_MAX", bound)
    world = World("sqlite", tmp_path / "data")
    numbers = list(range(4_000))
    added = [add(world, f"memory {n}", metadata={"numbers": numbers}) for n in range(120)]
    get(world, added[0])
    tracemalloc.start()
    for _ in range(2):
        assert all(get(world, one)["metadata"]["numbers"] == numbers for one in added)
        assert len(found(world, "memory")) == 50
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 3 * bound
    world.close()
