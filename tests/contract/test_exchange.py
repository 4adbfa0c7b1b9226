"""Exporting and importing: a store taken to another reads the same, and twice adds nothing."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect.config.settings import EmbeddingSettings, Settings, TrustSettings
from recollect.protocol import errors
from recollect.protocol import operations as ops
from tests.faults.walls import identity
from tests.harness.exchanging import (
    HOME,
    all_reads,
    exported,
    furnish,
    lasting,
    same_time,
    take_in,
)
from tests.harness.worlds import World

ALICE = identity("alice", (HOME, "admin"))
SECRET = "sk-proj-" + "q7Zk2Vw9Xb4Lm1Rt" * 3


@pytest.fixture
def source(tmp_path: Path) -> Iterator[World]:
    """A world to export from, where it is `world` that takes in."""
    world = World("sqlite", tmp_path / "source")
    yield world
    world.close()


def without_temporary(answers: dict[str, Any]) -> dict[str, Any]:
    """Answers without the state that is on no disk, and so in no export."""
    for answer in answers.values():
        if isinstance(answer, dict) and "state" in answer:
            answer["state"].pop("temp:x", None)
    return answers


def test_a_store_taken_to_another_storage_and_back_answers_everything_as_it_did(
    source: World, world: World, tmp_path: Path
) -> None:
    furnish(source)
    records = exported(source)
    same_time(source, world)
    taken = take_in(world, records)
    assert taken["problems"] == []
    assert (taken["added"], taken["unresolved"]) == (len(records), 0)
    assert taken["waited"], "no record referred to a later one: the way back to it was not tried"
    # As strong as they were, too, before anybody reads them.
    assert exported(world, 17) == records
    source.settle()
    world.settle()
    now_s = source.clock.now_us() / 1e6
    moments = [now_s - 10, now_s - 130, now_s - 100_000]
    asked = without_temporary(all_reads(source, records, moments))
    assert without_temporary(all_reads(world, records, moments)) == asked
    assert world(ops.CheckIntegrity())["problems"] == []
    assert world(ops.VerifyAudit())["valid"]
    back = World("sqlite", tmp_path / "back")
    try:
        again = exported(world)
        assert take_in(back, again)["problems"] == []
        assert exported(back) == again
        assert lasting(again) == lasting(records)
    finally:
        back.close()


def test_the_same_records_again_add_nothing(source: World, world: World) -> None:
    furnish(source)
    records = exported(source)
    take_in(world, records)
    seq = world(ops.Stats())["seq"]
    again = take_in(world, records)
    assert (again["added"], again["completed"], again["present"]) == (0, 0, len(records))
    assert world(ops.Stats())["seq"] == seq
    # Nor if the keys of objects come in another order, as over gRPC.
    shuffled = json.loads(json.dumps(records, sort_keys=True))
    assert take_in(world, shuffled)["present"] == len(records)
    assert world(ops.Stats())["seq"] == seq
    # Into its own store as well.
    assert take_in(source, records)["present"] == len(records)


def test_pages_of_any_size_make_up_the_same_export(world: World) -> None:
    furnish(world)
    memory = world(ops.AddMemory("Often changed", namespace=HOME))["memory_id"]
    for n in range(150):
        world(ops.UpdateMemory(memory, {"content": f"Change {n}"}))
    whole = lasting(exported(world))
    assert [r["kind"] for r in whole].count("versions") == 2
    for limit in (1, 3, 64):
        assert lasting(exported(world, limit)) == whole


def test_a_long_history_arrives_whole(source: World, world: World) -> None:
    memory = source(ops.AddMemory("Often changed", namespace=HOME))["memory_id"]
    for n in range(150):
        source(ops.UpdateMemory(memory, {"content": f"Change {n}"}))
    records = exported(source)
    take_in(world, records, size=1)
    versions = world(ops.History(memory, limit=1000))["versions"]
    assert [v["memory"]["content"] for v in versions][:2] == ["Change 149", "Change 148"]
    assert len(versions) == 151
    assert exported(world) == records


def test_changes_during_an_export_tear_no_record(source: World, world: World) -> None:
    changed = [source(ops.AddMemory(f"Fact {n}", namespace=HOME))["memory_id"] for n in range(6)]
    for n in range(70):
        source(ops.UpdateMemory(changed[2], {"content": f"Change {n}"}))
    records: list[Any] = []
    cursor = None
    while True:
        page = source(ops.ExportRecords(cursor=cursor, limit=1))
        records += page["records"]
        cursor = page["cursor"]
        if cursor is None:
            break
        for memory_id in changed:
            source(ops.UpdateMemory(memory_id, {"importance": 0.1, "content": "Changed meanwhile"}))
        late = source(ops.AddMemory("Made meanwhile", namespace=HOME))["memory_id"]
        source(ops.AddRelationship(changed[0], late, "to"))
    taken = take_in(world, records)
    assert (taken["problems"], taken["added"]) == ([], len(records))
    for memory_id in changed:
        present = world(ops.GetMemory(memory_id))["memory"]
        numbers = [v["version"] for v in world(ops.History(memory_id, limit=1000))["versions"]]
        assert numbers == list(range(present["version"], 0, -1))
    assert {r["id"] for r in records if r["kind"] == "memory"} == set(changed)


def test_what_was_taken_in_is_found_and_told_of(source: World, world: World) -> None:
    added = source(ops.AddMemory("The lighthouse keeper likes fog", namespace=HOME))
    take_in(world, exported(source))
    world.settle()
    for way in (ops.SemanticSearch("lighthouse"), ops.Recall("lighthouse keeper")):
        assert [hit["id"] for hit in world(way)["results"]] == [added["memory_id"]]
    [change] = world(ops.ReadChanges(0))["changes"]
    assert (change["operation"], change["subject"]) == ("import_records", added["memory_id"])
    [entry] = world(ops.AuditLog(operation="import_records"))["entries"]
    assert (entry["namespace"], entry["version_after"]) == (HOME, 1)


def test_a_dry_run_says_what_would_be_and_changes_nothing(source: World, world: World) -> None:
    furnish(source)
    records = exported(source)
    said = world(ops.ImportRecords(records, dry_run=True))
    assert (said["added"], said["problems"], said["dry_run"]) == (len(records), [], True)
    assert world(ops.Count(include_deleted=True))["count"] == 0
    assert world(ops.Stats())["seq"] == 0
    take_in(world, records[:20])
    said = world(ops.ImportRecords(records, dry_run=True))
    assert (said["present"], said["added"]) == (20, len(records) - 20)


def test_what_is_otherwise_there_is_a_conflict_and_stays(source: World, world: World) -> None:
    source(ops.Put(HOME, "drink", "tea"))
    plain = source(ops.AddMemory("A fact", namespace=HOME))["memory_id"]
    records = exported(source)
    world(ops.Put(HOME, "drink", "coffee"))
    other_text = copy.deepcopy(records[1]) | {"content": "Another fact"}
    take_in(world, [other_text])
    taken = take_in(world, records)
    assert [(p["outcome"], p["error"]["code"]) for p in taken["problems"]] == [
        ("conflict", "already_exists"),
        ("conflict", "already_exists"),
    ]
    assert taken["conflicts"] == 2
    assert world(ops.GetByKey(HOME, "drink"))["memory"]["value"] == "coffee"
    assert world(ops.GetMemory(plain))["memory"]["content"] == "Another fact"


def test_what_has_gone_on_since_is_present_and_what_is_behind_is_a_conflict(
    source: World, world: World
) -> None:
    memory_id = source(ops.AddMemory("First", namespace=HOME))["memory_id"]
    records = exported(source)
    take_in(world, records)
    world(ops.UpdateMemory(memory_id, {"content": "Second"}))
    assert take_in(world, records)["present"] == 1
    assert world(ops.GetMemory(memory_id))["memory"]["content"] == "Second"
    [problem] = take_in(source, exported(world))["problems"]
    assert (problem["id"], problem["error"]["code"]) == (memory_id, "version_conflict")


def test_a_namespace_is_exported_alone(source: World, world: World) -> None:
    furnish(source)
    both = source(ops.AddMemory("Elsewhere", namespace="app:x"))["memory_id"]
    here = source(ops.AddMemory("Here", namespace=HOME))["memory_id"]
    source(ops.AddRelationship(here, both, "to"))
    records = exported(source, namespace=HOME)
    homes = {record.get("namespace", HOME) for record in records}
    assert homes == {HOME}
    assert all(both not in str(record) for record in records)
    taken = take_in(world, records)
    assert (taken["problems"], taken["added"]) == ([], len(records))
    assert exported(world) == records


def test_only_who_administers_a_namespace_takes_it_along(source: World, world: World) -> None:
    furnish(source)
    with pytest.raises(errors.Forbidden):
        exported(source, who=ALICE)
    with pytest.raises(errors.Forbidden):
        exported(source, namespace="project:apollo", who=ALICE)
    with pytest.raises(errors.Forbidden):
        exported(source, namespace=HOME, who=identity("reader", (HOME, "write")))
    own = exported(source, namespace=HOME, who=ALICE)
    everything = exported(source)
    taken = take_in(world, everything, who=ALICE)
    # A link from one namespace to what was refused of the other is not there either.
    assert {p["outcome"] for p in taken["problems"]} == {"refused"}
    assert {p["error"]["code"] for p in taken["problems"]} == {"forbidden", "not_found"}
    assert lasting(exported(world)) == lasting(own)
    assert world(ops.AuditLog(outcome="denied"))["entries"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"kind": "elephant"}, "kind"),
    ({"content": 7}, "content"),
    ({"surprise": 1}, "surprise"),
    ({"created_us": 1 << 62}, "created_us"),
    ({"collection": "nothing"}, "collection"),
    ({"collection": "goals"}, "columns"),
    ({"importance": float("nan")}, "importance"),
    ({"namespace": "nowhere"}, "namespace"),
    ({"content": "x" * 200_001}, "content"),
    ({"metadata": {"a": "\x00"}}, "metadata.a"),
    ({"versions": [{"version": 9}]}, "versions"),
]


def test_a_bad_record_is_refused_alone(source: World, world: World) -> None:
    source(ops.AddMemory("Good", namespace=HOME))
    [record] = exported(source)
    bad = [{**record, "id": f"bad-{place}", **change} for place, (change, _) in enumerate(BAD)]
    said = world(ops.ImportRecords([*bad, record]))
    assert (said["status"], said["refused"], said["added"]) == ("partial", len(BAD), 1)
    for place, (problem, (_, where)) in enumerate(zip(said["problems"], BAD, strict=True)):
        assert problem["item"] == place
        assert problem["error"]["details"]["field"].startswith(where), problem
    assert world(ops.Count(include_deleted=True))["count"] == 1


def test_a_parent_is_nobody_elses_and_not_below_its_child(source: World, world: World) -> None:
    source(ops.AddMemory("One", namespace=HOME))
    [one] = exported(source)
    world(ops.AddMemory("Of Bob", namespace="user:bob"))
    [bobs] = [r for r in exported(world) if r["namespace"] == "user:bob"]
    said = world(ops.ImportRecords([{**one, "parent_id": bobs["id"]}]), ALICE)
    assert said["problems"][0]["error"]["code"] == "not_found"
    circle = [
        {**one, "parent_id": "two"},
        {**one, "id": "two", "parent_id": "three"},
        {**one, "id": "three", "parent_id": one["id"]},
        {**one, "id": "four", "parent_id": "four"},
    ]
    said = world(ops.ImportRecords(circle), ALICE)
    assert [(p["item"], p["error"]["code"]) for p in said["problems"]] == [
        (2, "cycle_refused"),
        (3, "cycle_refused"),
    ]
    assert said["added"] == 2


@pytest.mark.parametrize("mode", ["mask", "refuse"])
def test_secrets_are_kept_out_of_imports_too(source: World, tmp_path: Path, mode: Any) -> None:
    memory_id = source(ops.AddMemory(f"The key is {SECRET}", namespace=HOME))["memory_id"]
    source(ops.UpdateMemory(memory_id, {"content": f"Now {SECRET}", "metadata": {"k": SECRET}}))
    source(ops.StoreIncident("Leak", cause=f"Somebody wrote {SECRET}", namespace=HOME))
    records = exported(source)
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), trust=TrustSettings(secrets=mode)
    )
    guarded = World("sqlite", tmp_path / "guarded", settings)
    try:
        taken = take_in(guarded, records)
        assert SECRET not in str(exported(guarded)) + str(taken)
        if mode == "refuse":
            assert (taken["refused"], taken["added"]) == (2, 0)
            assert {p["error"]["code"] for p in taken["problems"]} == {"secret_refused"}
        else:
            assert taken["added"] == 2
            assert "[masked OpenAI key]" in guarded(ops.GetMemory(memory_id))["memory"]["content"]
            assert take_in(guarded, records)["present"] == 2
    finally:
        guarded.close()


def test_a_quota_holds_for_imports(source: World, world: World) -> None:
    for n in range(4):
        source(ops.AddMemory(f"Fact {n}", namespace=HOME))
    bounded = msgspec.structs.replace(ALICE, memories_max=3)
    world(ops.CreateIdentity("alice", memories_max=3))
    taken = take_in(world, exported(source), who=bounded)
    assert (taken["added"], taken["refused"]) == (3, 1)
    assert taken["problems"][0]["error"]["details"]["limit"] == "memories_max"


def test_a_cursor_of_something_else_is_refused(world: World) -> None:
    furnish(world)
    cursor = world(ops.ExportRecords(limit=1))["cursor"]
    for wrong in (cursor[:-3], "nonsense"):
        with pytest.raises(errors.InvalidArgument):
            world(ops.ExportRecords(cursor=wrong))
    with pytest.raises(errors.InvalidArgument):
        world(ops.ExportRecords(cursor=cursor, namespace=HOME))
