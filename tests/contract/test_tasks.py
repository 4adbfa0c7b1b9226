"""Tasks and their steps through the services."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from recollect.config.settings import (
    EmbeddingSettings,
    LimitsSettings,
    Settings,
    WorkflowSettings,
)
from recollect.orchestrator.working.texts import OUTPUT_CHARS_MAX
from recollect.protocol import errors
from recollect.protocol.operations import (
    ActiveTasks,
    AddMemory,
    DeleteMemory,
    GetMemory,
    GetTask,
    History,
    ListSteps,
    Purge,
    Put,
    RecentSummaries,
    Restore,
    SaveStep,
    SaveTask,
    SemanticSearch,
    SetActiveTask,
    SetTaskPhase,
    StoreGoal,
    UpdateMemory,
    UpdateTaskStatus,
)
from tests.faults.walls import identity
from tests.harness.worlds import World

BOB = identity("bob", ("user:bob", "admin"))
READER = identity("reader", ("app:default", "read"))


def task(world: World, task_id: str = "t") -> dict[str, Any]:
    found: dict[str, Any] = world(GetTask(task_id))["task"]
    return found


def test_a_task_is_made_with_a_name_or_gets_one(world: World) -> None:
    named = world(SaveTask("Write the parser", "parser", task_type="coding", assigned_to="coder"))
    assert (named["task_id"], named["created"], named["version"]) == ("parser", True, 1)
    assert (named["task_status"], named["phase"]) == ("pending", "backlog")
    found = task(world, "parser")
    assert (found["task_type"], found["assigned_to"], found["steps"]) == ("coding", "coder", 0)
    memory = world(GetMemory(found["memory_id"]))["memory"]
    assert (memory["key"], memory["collection"]) == ("task/parser", "tasks")
    assert (memory["content"], memory["memory_tier"]) == ("Write the parser", "medium")
    nameless = world(SaveTask("Write the lexer"))
    assert task(world, nameless["task_id"])["description"] == "Write the lexer"


def test_saving_a_task_again_changes_what_is_given_and_keeps_the_rest(world: World) -> None:
    goal_id = world(StoreGoal("A compiler"))["goal_id"]
    world(SaveTask("Parser", "t", goal_id, "coding", metadata={"a": 1}, tags=["x"]))
    world(UpdateTaskStatus("t", "in_progress", "Half of it works"))
    world(SaveStep("t", 1, "edit"))
    again = world(SaveTask("Parser and lexer", "t", assigned_to="coder", tags=["y"]))
    assert (again["created"], again["version"]) == (False, 3)
    found = task(world)
    assert (found["description"], found["goal_id"]) == ("Parser and lexer", goal_id)
    assert (found["task_type"], found["task_status"]) == ("coding", "in_progress")
    assert (found["summary"], found["steps"]) == ("Half of it works", 1)
    assert (found["metadata"], found["tags"]) == ({"a": 1}, ["y"])
    content = world(GetMemory(found["memory_id"]))["memory"]["content"]
    assert content == "Parser and lexer\n\nHalf of it works"
    assert world(SemanticSearch(content))["results"][0]["score"] > 0.99
    with pytest.raises(errors.VersionConflict):
        world(SaveTask("Late", "t", expected_version=1))
    with pytest.raises(errors.NotFound, match="expected_version"):
        world(SaveTask("New", "new", expected_version=1))


def test_a_task_starts_ends_and_may_be_taken_up_again(world: World) -> None:
    world(SaveTask("Parser", "t"))
    world(UpdateTaskStatus("t", "in_progress"))
    started = task(world)["started_at"]
    assert started is not None and task(world)["ended_at"] is None
    world(UpdateTaskStatus("t", "completed", "It parses."))
    ended = task(world)
    assert ended["ended_at"] is not None and ended["summary"] == "It parses."
    same = world(UpdateTaskStatus("t", "completed"))
    assert same["version"] == ended["version"]
    assert world(UpdateTaskStatus("t", "completed", "It parses."))["version"] == same["version"]
    worded = world(UpdateTaskStatus("t", "completed", "It parses all of it."))
    assert worded["version"] == same["version"] + 1
    assert task(world)["ended_at"] == ended["ended_at"]
    world(UpdateTaskStatus("t", "in_progress"))
    reopened = task(world)
    assert (reopened["ended_at"], reopened["started_at"]) == (None, started)
    assert reopened["summary"] == "It parses all of it."
    with pytest.raises(errors.VersionConflict):
        world(UpdateTaskStatus("t", "failed", expected_version=1))
    with pytest.raises(errors.NotFound, match="save_task"):
        world(UpdateTaskStatus("nothing", "failed"))


def test_a_task_that_ends_is_active_no_more(world: World) -> None:
    for task_id in ("ended", "open"):
        world(SaveTask("Parser", task_id))
        world(SetActiveTask(task_id, {"at": "line 7"}))
    world(UpdateTaskStatus("open", "blocked"))
    world(UpdateTaskStatus("ended", "cancelled"))
    assert [active["task_id"] for active in world(ActiveTasks())["tasks"]] == ["open"]


def test_a_task_goes_from_phase_to_phase_as_the_workflow_allows(world: World) -> None:
    world(SaveTask("Parser", "t"))
    assert task(world)["next_phases"] == ["requirements", "blocked"]
    with pytest.raises(errors.TransitionRefused, match="requirements or blocked") as refused:
        world(SetTaskPhase("t", "testing"))
    assert refused.value.details["possible"] == ["requirements", "blocked"]
    with pytest.raises(errors.TransitionRefused):
        world(SaveTask("Parser", "t", phase="done"))
    with pytest.raises(errors.InvalidArgument, match="backlog"):
        world(SetTaskPhase("t", "lunch"))
    assert task(world)["version"] == 1
    for phase in ("requirements", "design", "implementation", "testing", "deployment", "done"):
        assert world(SetTaskPhase("t", phase))["phase"] == phase
    assert task(world)["next_phases"] == ["backlog"]
    with pytest.raises(errors.TransitionRefused):
        world(SetTaskPhase("t", "blocked"))
    world(SetTaskPhase("t", "backlog", "It broke"))
    blocked = world(SetTaskPhase("t", "blocked", "No key yet"))
    assert world(SetTaskPhase("t", "blocked"))["version"] == blocked["version"]
    assert task(world)["phase_reason"] == "No key yet"
    with pytest.raises(errors.VersionConflict):
        world(SetTaskPhase("t", "backlog", expected_version=1))
    versions = world(History(task(world)["memory_id"]))["versions"]
    told = [version["memory"]["value"].get("phase_reason") for version in versions[:3]]
    assert told == ["No key yet", "It broke", None]
    world(SaveTask("Ready", "ready", phase="testing"))
    assert task(world, "ready")["phase"] == "testing"


def test_phases_may_be_others(storage_url: str, tmp_path: Any) -> None:
    phases = ("todo > doing", "doing > todo, finished", "finished")
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), workflow=WorkflowSettings(phases)
    )
    world = World(storage_url, tmp_path / "data", settings)
    try:
        world(SaveTask("Parser", "t"))
        assert (task(world)["phase"], task(world)["next_phases"]) == ("todo", ["doing"])
        world(SetTaskPhase("t", "doing"))
        world(SetTaskPhase("t", "finished"))
        with pytest.raises(errors.TransitionRefused, match="stays there"):
            world(SetTaskPhase("t", "todo"))
        # When others are configured, a task in one that is gone may go anywhere.
        world.settings = msgspec.structs.replace(
            world.settings, workflow=WorkflowSettings(("open > closed", "closed > open"))
        )
        world.restart()
        assert task(world)["next_phases"] == ["open", "closed"]
        assert world(SetTaskPhase("t", "closed"))["phase"] == "closed"
    finally:
        world.close()


def test_steps_are_kept_in_their_order_with_the_task(world: World) -> None:
    world(SaveTask("Find the tide", "t"))
    first = world(SaveStep("t", 1, "search", {"query": "tides"}, "High at noon", True, 12.5))
    world(SaveStep("t", 2, "fetch", {"url": "x"}, {"error": ["gone", 404]}, False))
    world(SaveStep("t", 2, "think"))
    listed = world(ListSteps("t"))
    steps = listed["steps"]
    assert [step["tool_name"] for step in steps] == ["search", "fetch", "think"]
    assert steps[0]["parameters"] == {"query": "tides"}
    assert (steps[0]["output"], steps[0]["duration_ms"]) == ("High at noon", 12.5)
    assert (steps[1]["output"], steps[1]["success"]) == ('{"error":["gone",404]}', False)
    assert (steps[2]["output"], steps[2]["parameters"]) == ("", {})
    page = world(ListSteps("t", 2))
    rest = world(ListSteps("t", 2, cursor=page["cursor"]))
    assert page["steps"] + rest["steps"] == steps
    assert rest["cursor"] is None
    fetched = world(GetTask("t", steps=2))
    assert fetched["recent_steps"] == steps[1:]
    assert (fetched["task"]["steps"], world(GetTask("t", steps=0))["recent_steps"]) == (3, [])
    memory = world(GetMemory(first["step_id"]))["memory"]
    assert memory["content"] == "search with query: tides\nHigh at noon"
    assert (memory["collection"], memory["memory_tier"]) == ("steps", "short")
    assert memory["parent_id"] == fetched["task"]["memory_id"]
    failed = world(GetMemory(steps[1]["id"]))["memory"]["content"]
    assert failed.startswith("fetch with url: x failed\n")


def test_a_long_output_is_cut_with_a_mark(world: World) -> None:
    world(SaveTask("Read", "t"))
    outputs: list[Any] = ["é" * 53_120, ["long " * 20] * 1_000, "x" * 20_000, "x" * 20_001]
    for output in outputs:
        saved = world(SaveStep("t", 1, "read", output=output))
        whole = output if isinstance(output, str) else msgspec.json.encode(output).decode()
        step = world(GetTask("t", steps=1))["recent_steps"][0]
        assert saved["truncated"] == step["truncated"] == (len(whole) > OUTPUT_CHARS_MAX)
        assert len(step["output"]) == OUTPUT_CHARS_MAX
        if step["truncated"]:
            kept, mark = step["output"].split("…")
            assert whole.startswith(kept)
            assert mark == f" [truncated, {len(whole):,} characters in all]"
        assert len(world(GetMemory(saved["step_id"]))["memory"]["content"]) <= 1_500


def test_json_larger_than_a_value_may_be_is_cut_too(storage_url: str, tmp_path: Any) -> None:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"),
        limits=LimitsSettings(value_bytes_max=30_000),
    )
    world = World(storage_url, tmp_path / "data", settings)
    try:
        world(SaveTask("Read", "t"))
        output = {"lines": ["x" * 100] * 1_000}
        assert world(SaveStep("t", 1, "read", output=output))["truncated"]
        [step] = world(ListSteps("t"))["steps"]
        assert step["output"].startswith('{"lines":["xxx')
    finally:
        world.close()


def test_a_step_needs_its_task_and_good_json(world: World) -> None:
    with pytest.raises(errors.NotFound, match="save_task"):
        world(SaveStep("t", 1, "search"))
    world(SaveTask("Read", "t"))
    before = world.storage.committed_seq
    for bad in (
        {"output": {"a": float("nan")}},
        {"output": "a\x00b"},
        {"parameters": {"a": "\x00"}},
    ):
        with pytest.raises(errors.InvalidArgument):
            world(SaveStep("t", 1, "search", **bad))
    with pytest.raises(errors.InvalidArgument):
        world(SaveStep("t", 1, "search", duration_ms=float("nan")))
    for operation in (GetTask("nothing"), ListSteps("nothing"), SaveStep("a\x00b", 1, "x")):
        with pytest.raises((errors.NotFound, errors.InvalidArgument)):
            world(operation)
    assert world.storage.committed_seq == before
    assert task(world)["steps"] == 0


def test_deleting_a_task_takes_its_steps_and_restoring_brings_it_back(world: World) -> None:
    memory_id = world(SaveTask("Read", "t"))["memory_id"]
    step_id = world(SaveStep("t", 1, "search", output="found"))["step_id"]
    world(DeleteMemory(memory_id))
    for operation in (GetTask("t"), ListSteps("t"), GetMemory(step_id)):
        with pytest.raises(errors.NotFound):
            world(operation)
    world(Restore(memory_id))
    assert task(world)["description"] == "Read"
    world(DeleteMemory(memory_id))
    anew = world(SaveTask("Read anew", "t"))
    assert (anew["created"], task(world)["steps"]) == (True, 0)
    world(Purge(anew["memory_id"]))
    with pytest.raises(errors.NotFound):
        world(GetTask("t"))


def test_a_task_goes_back_to_an_earlier_version_whole(world: World) -> None:
    memory_id = world(SaveTask("Read", "t"))["memory_id"]
    world(SaveStep("t", 1, "search"))
    world(UpdateTaskStatus("t", "completed", "It was read."))
    world(SetTaskPhase("t", "blocked", "No more to read"))
    world(Restore(memory_id, 1))
    found = task(world)
    assert (found["task_status"], found["phase"], found["phase_reason"]) == (
        "pending",
        "backlog",
        "",
    )
    assert (found["summary"], found["ended_at"], found["version"]) == ("", None, 4)
    assert found["steps"] == 1
    assert world(RecentSummaries())["count"] == 0


def test_how_a_task_stands_is_told_by_its_own_operations_alone(world: World) -> None:
    memory_id = world(SaveTask("Read", "t"))["memory_id"]
    for asked in (
        UpdateMemory(memory_id, {"value": {"task_status": "completed"}}),
        Put("app:default", "task/t", {"task_status": "completed"}, content="Read"),
    ):
        with pytest.raises(errors.InvalidArgument, match="value follows"):
            world(asked)
    assert world(GetMemory(memory_id))["memory"]["value"]["task_status"] == "pending"


def test_the_key_of_something_else_is_not_taken(world: World) -> None:
    world(AddMemory("Mine", key="task/t"))
    with pytest.raises(errors.AlreadyExists):
        world(SaveTask("Read", "t"))
    with pytest.raises(errors.NotFound):
        world(GetTask("t"))


def test_a_foreign_task_is_as_absent_and_a_reader_changes_nothing(world: World) -> None:
    world(SaveTask("Read", "t", namespace="user:alice"))
    for operation in (
        GetTask("t", namespace="user:alice"),
        ListSteps("t", namespace="user:alice"),
    ):
        with pytest.raises(errors.NotFound):
            world(operation, BOB)
    world(SaveTask("Read", "t"))
    for change in (
        SaveTask("Mine", "t"),
        UpdateTaskStatus("t", "failed"),
        SetTaskPhase("t", "blocked"),
        SaveStep("t", 1, "search"),
    ):
        with pytest.raises(errors.Forbidden):
            world(change, READER)
    assert (task(world)["version"], world(GetTask("t"), READER)["task"]["steps"]) == (1, 0)


def test_summaries_come_newest_first_within_a_budget(world: World) -> None:
    for number in range(5):
        world(SaveTask(f"Task {number}", f"t{number}", namespace="project:x:y"))
        world(
            UpdateTaskStatus(f"t{number}", "completed", f"Done {number}", namespace="project:x:y")
        )
    world(SaveTask("Silent", "silent", status="completed"))
    world(SaveTask("Open", "open", namespace="project:x"))
    world(UpdateTaskStatus("open", "in_progress", "So far", namespace="project:x"))
    found = world(RecentSummaries())
    assert [summary["summary"] for summary in found["summaries"]] == ["Done 4", "Done 3", "Done 2"]
    assert found["tokens"] == sum(summary["tokens"] for summary in found["summaries"])
    assert world(RecentSummaries(10, namespace="project:x"))["count"] == 5
    assert world(RecentSummaries(10, namespace="project:y"))["count"] == 0
    assert world(RecentSummaries(10), BOB)["count"] == 0
    first = found["summaries"][0]
    few = world(RecentSummaries(10, first["tokens"]))
    assert (few["summaries"], few["tokens"]) == ([first], first["tokens"])
    world(SaveTask("Long", "long"))
    world(UpdateTaskStatus("long", "failed", "It was never to be. " * 200))
    cut = world(RecentSummaries(3, 50))
    assert cut["tokens"] <= 50
    assert [summary["truncated"] for summary in cut["summaries"]] == [True]
    # One that was taken up again has not come to anything yet.
    world(UpdateTaskStatus("long", "in_progress"))
    assert world(RecentSummaries(1))["summaries"][0]["task_id"] == "t4"


def test_a_repeated_request_is_answered_as_the_first(world: World) -> None:
    for name, operation in (("named", SaveTask("Read", "t")), ("nameless", SaveTask("Read"))):
        first = world(operation, key=name)
        assert world(operation, key=name) == first
        assert first["created"]
    step = world(SaveStep("t", 1, "search"), key="step")
    assert world(SaveStep("t", 1, "search"), key="step") == step
    assert (step["task_id"], task(world)["steps"]) == ("t", 1)
