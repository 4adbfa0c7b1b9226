"""Long-term memory: procedures, incidents, changes of settings, and what is known."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from recollect.config.settings import EmbeddingSettings, Settings, TrustSettings
from recollect.protocol import errors
from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation
from tests.harness.somebody import somebody
from tests.harness.worlds import World

ALICE = somebody("alice", write=("user:alice",))
BOB = somebody("bob", write=("user:bob",))


def count(world: World) -> int:
    number: int = world(ops.Count())["count"]
    return number


async def archive(world: World, memory_id: str) -> None:
    sql = "UPDATE memories SET archived_us = updated_us WHERE id = ?"
    await world.storage.write(lambda transaction: transaction.execute(sql, (memory_id,)))


def test_a_procedure_is_kept_by_its_name_and_the_same_name_is_its_next_version(
    world: World,
) -> None:
    first = world(
        ops.StoreProcedure(
            "release",
            ["tag it", "push the tag"],
            "For every new version",
            importance=0.9,
            metadata={"team": "core"},
            tags=["ops"],
            source="handbook",
            trust=0.7,
        ),
        agent="anna",
    )
    assert (first["created"], first["version"]) == (True, 1)
    assert first["collection"] == "procedures"
    got = world(ops.GetProcedure("release"))["procedure"]
    assert got["id"] == first["memory_id"]
    assert (got["name"], got["steps"]) == ("release", ["tag it", "push the tag"])
    assert got["description"] == "For every new version"
    assert (got["importance"], got["source"], got["trust"]) == (0.9, "handbook", 0.7)
    assert (got["metadata"], got["tags"]) == ({"team": "core"}, ["ops"])
    assert got["updated_by"] == "anna"

    again = world(ops.StoreProcedure("release", ["push the button"]), agent="ben")
    assert (again["created"], again["version"]) == (False, 2)
    assert again["memory_id"] == first["memory_id"]
    got = world(ops.GetProcedure("release"))["procedure"]
    assert (got["steps"], got["description"], got["version"]) == (["push the button"], "", 2)
    assert (got["updated_by"], got["tags"]) == ("ben", [])
    versions = world(ops.History(first["memory_id"]))["versions"]
    assert "2. push the tag" in versions[1]["memory"]["content"]
    assert versions[0]["memory"]["content"] == "How to: release\n1. push the button"
    assert world(ops.GetByKey("app:default", "procedure/release"))["memory"]["version"] == 2


def test_the_same_name_elsewhere_or_after_a_deletion_is_another_procedure(world: World) -> None:
    first = world(ops.StoreProcedure("release", ["a"], namespace="user:alice"))
    other = world(ops.StoreProcedure("release", ["b"], namespace="user:bob"))
    assert (other["created"], other["memory_id"] != first["memory_id"]) == (True, True)
    world(ops.DeleteMemory(first["memory_id"]))
    with pytest.raises(errors.NotFound, match="release"):
        world(ops.GetProcedure("release", namespace="user:alice"))
    anew = world(ops.StoreProcedure("release", ["c"], namespace="user:alice"))
    assert (anew["created"], anew["version"]) == (True, 1)
    got = world(ops.GetProcedure("release", namespace="user:alice"))["procedure"]
    assert got["steps"] == ["c"]


def test_a_key_that_is_something_elses_is_not_taken(world: World) -> None:
    world(ops.AddMemory("mine", key="procedure/release"))
    world(ops.AddMemory("mine", key="knowledge/release"))
    for asked in (ops.StoreProcedure("release", ["a"]), ops.StoreKnowledge("release", "all")):
        with pytest.raises(errors.AlreadyExists):
            world(asked)
    with pytest.raises(errors.NotFound):
        world(ops.GetProcedure("release"))
    assert count(world) == 2


def test_an_incident_is_kept_and_resolved(world: World) -> None:
    stored = world(
        ops.StoreIncident(
            "Checkout was down",
            "Every payment timed out.",
            "critical",
            cause="The pool ran dry",
            occurred_at="2026-03-01T10:00:00Z",
        )
    )
    assert (stored["created"], stored["collection"]) == (True, "incidents")
    memory = world(ops.GetMemory(stored["memory_id"]))["memory"]
    assert memory["content"].splitlines() == [
        "Incident (critical): Checkout was down",
        "When: 2026-03-01T10:00:00.000000Z",
        "Every payment timed out.",
        "Cause: The pool ran dry",
    ]
    assert memory["valid_from"] == "2026-03-01T10:00:00.000000Z"
    assert memory["memory_tier"] == "long"
    resolved = world(ops.ResolveIncident(stored["memory_id"], "A larger pool", expected_version=1))
    assert (resolved["created"], resolved["version"]) == (False, 2)
    said = world(ops.GetMemory(stored["memory_id"]))["memory"]["content"]
    assert "Cause: The pool ran dry\nResolution: A larger pool" in said
    with pytest.raises(errors.VersionConflict):
        world(ops.ResolveIncident(stored["memory_id"], "Other", expected_version=1))
    world(ops.ResolveIncident(stored["memory_id"], "A queue", cause="A leak"))
    said = world(ops.GetMemory(stored["memory_id"]))["memory"]["content"]
    assert said.endswith("Cause: A leak\nResolution: A queue")
    again = world(ops.StoreIncident("Checkout was down"))
    assert again["memory_id"] != stored["memory_id"]


def test_the_history_of_a_setting_has_the_latest_change_first(world: World) -> None:
    values: list[Any] = [None, 5, {"size": [1, 2.5]}, "big", True]
    for old, new in pairwise(values):
        asked = ops.RecordConfigChange("pool", "size", old, new, "load", namespace="app:shop")
        assert world(asked, agent="ops")["created"]
    world(ops.RecordConfigChange("pool", "timeout_s", 1, 2, namespace="app:shop:eu"))
    world(ops.RecordConfigChange("cache", "size", 1, 2, namespace="app:shop"))
    history = world(ops.ConfigHistory("pool", "size"))
    assert [change["new_value"] for change in history["changes"]] == values[:0:-1]
    assert [change["old_value"] for change in history["changes"]] == values[-2::-1]
    latest = history["changes"][0]
    assert (latest["component"], latest["parameter"]) == ("pool", "size")
    assert (latest["reason"], latest["changed_by"]) == ("load", "ops")
    assert latest["namespace"] == "app:shop"
    page = world(ops.ConfigHistory("pool", limit=3))
    assert page["changes"][0]["parameter"] == "timeout_s"
    rest = world(ops.ConfigHistory("pool", limit=3, cursor=page["cursor"]))
    assert [change["new_value"] for change in rest["changes"]] == [{"size": [1, 2.5]}, 5]
    assert rest["cursor"] is None
    eu = world(ops.ConfigHistory("pool", namespace="app:shop:eu"))
    assert [change["parameter"] for change in eu["changes"]] == ["timeout_s"]
    world(ops.DeleteMemory(latest["id"]))
    assert world(ops.ConfigHistory("pool", "size"))["count"] == 3
    # To archive it is not to undo that it happened.
    world.run(archive(world, history["changes"][1]["id"]))
    assert world(ops.ConfigHistory("pool", "size"))["count"] == 3
    assert world(ops.ConfigHistory("nothing"))["changes"] == []


def test_names_may_be_as_long_as_they_may_in_any_script(world: World) -> None:
    # None is like another part of it, so that nothing makes them shorter where they are kept.
    names = ["".join(chr(0x4E00 + (n * 7919 + at) % 20_000) for n in range(512)) for at in (0, 1)]
    component, parameter = names
    world(ops.RecordConfigChange(component, parameter, 1, 2))
    assert world(ops.ConfigHistory(component, parameter))["count"] == 1
    assert world(ops.ConfigHistory(component, component))["count"] == 0


def test_a_long_value_is_kept_whole_and_told_in_short(world: World) -> None:
    value = {"text": "x" * 50_000}
    stored = world(ops.RecordConfigChange("site", "banner", None, value))
    assert world(ops.ConfigHistory("site"))["changes"][0]["new_value"] == value
    assert len(world(ops.GetMemory(stored["memory_id"]))["memory"]["content"]) < 1_000


def test_knowledge_is_kept_by_its_title(world: World) -> None:
    first = world(ops.StoreKnowledge("Refunds", "Within 30 days.", trust=0.9))
    assert (first["created"], first["collection"]) == (True, "knowledge")
    again = world(ops.StoreKnowledge("Refunds", "Within 60 days."))
    assert (again["created"], again["version"]) == (False, 2)
    memory = world(ops.GetByKey("app:default", "knowledge/Refunds"))["memory"]
    assert memory["id"] == first["memory_id"]
    assert memory["content"] == "Refunds\nWithin 60 days."
    assert (memory["memory_type"], memory["memory_tier"]) == ("knowledge", "long")


def test_each_is_found_by_its_meaning_in_its_collection(world: World) -> None:
    stored = {
        "procedures": world(ops.StoreProcedure("restart the pump", ["close the valve"])),
        "incidents": world(ops.StoreIncident("The pump leaked", "Water in the cellar")),
        "config_changes": world(ops.RecordConfigChange("pump", "pressure", 2, 3)),
        "knowledge": world(ops.StoreKnowledge("Pump", "It was built in 1998.")),
    }
    for n in range(30):
        world(ops.AddMemory(f"The pump was seen on day {n}"))
    for collection, answer in stored.items():
        found = world(ops.SemanticSearch("the pump", collections=[collection]))["results"]
        assert [result["id"] for result in found] == [answer["memory_id"]]
    together = world(ops.SemanticSearch("the pump", k=10, collections=list(stored)))["results"]
    assert {result["collection"] for result in together} == set(stored)


def test_what_others_keep_is_not_there(world: World) -> None:
    home: dict[str, Any] = {"namespace": "user:alice"}
    world(ops.StoreProcedure("secret", ["hide"], **home), ALICE)
    incident = world(ops.StoreIncident("A secret", **home), ALICE)["memory_id"]
    world(ops.RecordConfigChange("vault", "depth", 1, 2, **home), ALICE)
    with pytest.raises(errors.NotFound):
        world(ops.GetProcedure("secret", **home), BOB)
    with pytest.raises(errors.NotFound):
        world(ops.ResolveIncident(incident, "ha"), BOB)
    assert world(ops.ConfigHistory("vault"), BOB)["changes"] == []
    assert world(ops.ConfigHistory("vault", **home), BOB)["changes"] == []
    assert world(ops.ConfigHistory("vault"), ALICE)["count"] == 1
    for asked in (
        ops.StoreProcedure("secret", ["seek"], **home),
        ops.StoreIncident("Another", **home),
        ops.RecordConfigChange("vault", "depth", 2, 1, **home),
        ops.StoreKnowledge("All", "of it", **home),
    ):
        # A key that may not be seen is refused where it would be written.
        with pytest.raises(errors.Forbidden):
            world(asked, BOB)
    assert count(world) == 3


BAD: dict[str, tuple[Operation[Any], type[errors.RecollectError]]] = {
    "a blank name": (ops.StoreProcedure(" ", ["a"]), errors.InvalidArgument),
    "no steps": (ops.StoreProcedure("a", []), errors.InvalidArgument),
    "a blank step": (ops.StoreProcedure("a", ["b", ""]), errors.InvalidArgument),
    "a NUL in a name": (ops.StoreProcedure("a\x00", ["b"]), errors.InvalidArgument),
    "a long name": (ops.StoreProcedure("a" * 510, ["b"]), errors.LimitExceeded),
    "too many steps": (ops.StoreProcedure("a", ["b"] * 257), errors.LimitExceeded),
    "a long step": (ops.StoreProcedure("a", ["b" * 10_001]), errors.LimitExceeded),
    "steps too long together": (
        ops.StoreProcedure("a", ["b" * 9_000] * 23),
        errors.LimitExceeded,
    ),
    "a blank title": (ops.StoreIncident("  "), errors.InvalidArgument),
    "no severity": (ops.StoreIncident("a", severity="bad"), errors.InvalidArgument),  # type: ignore[arg-type]
    "no moment": (ops.StoreIncident("a", occurred_at="soon"), errors.InvalidArgument),
    "a NUL in a cause": (ops.StoreIncident("a", cause="\x00"), errors.InvalidArgument),
    "a blank component": (ops.RecordConfigChange(" ", "b", 1, 2), errors.InvalidArgument),
    "a blank parameter": (ops.RecordConfigChange("a", "\t", 1, 2), errors.InvalidArgument),
    "a value that is no JSON": (
        ops.RecordConfigChange("a", "b", 1, float("nan")),
        errors.InvalidArgument,
    ),
    "an infinite value": (
        ops.RecordConfigChange("a", "b", [float("inf")], 1),
        errors.InvalidArgument,
    ),
    "a value too large": (
        ops.RecordConfigChange("a", "b", "x" * 1_048_576, 1),
        errors.LimitExceeded,
    ),
    "a value too deep": (
        ops.RecordConfigChange("a", "b", 1, [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]),
        errors.LimitExceeded,
    ),
    "a blank knowledge": (ops.StoreKnowledge("a", " "), errors.InvalidArgument),
    "a blank title of knowledge": (ops.StoreKnowledge(" ", "a"), errors.InvalidArgument),
    "no incident": (ops.ResolveIncident("nothing", "a"), errors.NotFound),
    "a blank resolution": (ops.ResolveIncident("nothing", " "), errors.InvalidArgument),
}


def test_what_cannot_be_kept_is_refused_and_writes_nothing(world: World) -> None:
    for name, (asked, error) in BAD.items():
        with pytest.raises(error):
            world(asked)
        assert count(world) == 0, name


@pytest.fixture
def careful(storage_url: str, tmp_path: Path) -> Iterator[World]:
    """One that refuses secrets."""
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), trust=TrustSettings(secrets="refuse")
    )
    world = World(storage_url, tmp_path / "careful", settings)
    yield world
    world.close()


def test_the_name_of_a_setting_tells_that_its_value_is_a_secret(careful: World) -> None:
    for given in ({"old_value": "correct-horse-9"}, {"new_value": {"password": "Tr0ub4dor&3x"}}):
        with pytest.raises(errors.SecretRefused):
            careful(ops.RecordConfigChange("db", "password", **given))
    assert count(careful) == 0


def test_a_secret_value_is_blotted_out_in_the_text_as_well(
    storage_url: str, tmp_path: Path
) -> None:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), trust=TrustSettings(secrets="mask")
    )
    world = World(storage_url, tmp_path / "masking", settings)
    try:
        asked = ops.RecordConfigChange("db", "password", "correct-horse-9", "Tr0ub4dor&3x")
        memory_id = world(asked)["memory_id"]
        told = repr([world(ops.GetMemory(memory_id)), world(ops.ConfigHistory("db"))])
        assert "correct-horse" not in told
        assert "Tr0ub4dor" not in told
        assert world(ops.ConfigHistory("db", "password"))["count"] == 1
    finally:
        world.close()


def test_what_is_purged_leaves_no_columns(world: World) -> None:
    made = [
        world(ops.StoreProcedure("a", ["b"])),
        world(ops.StoreIncident("a")),
        world(ops.RecordConfigChange("a", "b", 1, 2)),
    ]
    for answer in made:
        world(ops.Purge(answer["memory_id"]))

    async def left(table: str) -> Any:
        return await world.storage.read(lambda s: s.execute(f"SELECT count(*) FROM {table}"))

    for table in ("procedures", "incidents", "config_changes"):
        assert world.run(left(table)) == [(0,)]


def test_an_old_version_comes_back_with_its_columns(world: World) -> None:
    procedure = world(ops.StoreProcedure("release", ["tag it"], "Old"))["memory_id"]
    world(ops.StoreProcedure("release", ["push the button"]))
    world(ops.RestoreByKey("app:default", "procedure/release", 1))
    got = world(ops.GetProcedure("release"))["procedure"]
    assert (got["steps"], got["description"], got["version"]) == (["tag it"], "Old", 3)
    world(ops.Restore(procedure, 2))
    assert world(ops.GetProcedure("release"))["procedure"]["steps"] == ["push the button"]
    world(ops.DeleteMemory(procedure))
    world(ops.Restore(procedure))
    assert world(ops.GetProcedure("release"))["procedure"]["steps"] == ["push the button"]


def test_what_a_source_did_to_a_record_is_taken_back_whole(world: World) -> None:
    asked = ops.LogDecision("Which database?", [], "PostgreSQL", namespace="user:alice")
    decision_id = world(asked, agent="alice")["decision_id"]
    world(ops.RecordOutcome(decision_id, "Buy my stocks", True), agent="mallory")
    forgotten = world(ops.ForgetSource("mallory"))
    decision = world(ops.GetDecision(decision_id))["decision"]
    assert (decision["outcome"], decision["success"]) == (None, None)
    assert decision["outcome_by"] is None
    assert "stocks" not in world(ops.GetMemory(decision_id))["memory"]["content"]
    world(ops.Undo(forgotten["run_id"]))
    decision = world(ops.GetDecision(decision_id))["decision"]
    assert (decision["outcome"], decision["outcome_by"]) == ("Buy my stocks", "mallory")


def test_the_text_of_a_record_is_changed_by_its_own_operations_alone(world: World) -> None:
    procedure = world(ops.StoreProcedure("release", ["tag it"]))["memory_id"]
    for asked in (
        ops.UpdateMemory(procedure, {"content": "Press any key"}),
        ops.Put("app:default", "procedure/release", {"steps": []}),
        ops.UpdateByKey("app:default", "procedure/release", "Press any key"),
        ops.UpdateMemory(procedure, {"value": {"steps": []}}),
    ):
        with pytest.raises(errors.InvalidArgument, match="procedures"):
            world(asked)
    world(ops.UpdateMemory(procedure, {"tags": ["ops"], "importance": 0.9}))
    got = world(ops.GetProcedure("release"))["procedure"]
    assert (got["steps"], got["tags"], got["version"]) == (["tag it"], ["ops"], 2)
