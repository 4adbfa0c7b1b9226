"""Goals through the services: set, changed, listed by urgency, served by tasks."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from recollect.protocol import errors
from recollect.protocol.operations import (
    ActiveGoals,
    DeleteMemory,
    GetGoal,
    GetTask,
    History,
    Purge,
    Restore,
    SaveTask,
    SemanticSearch,
    StoreGoal,
    TasksForGoal,
    UpdateGoal,
    UpdateMemory,
    UpdateTaskStatus,
)
from tests.faults.walls import identity
from tests.harness.worlds import World

Status = Literal["active", "paused", "completed", "failed", "abandoned"]
BOB = identity("bob", ("user:bob", "admin"))
READER = identity("reader", ("app:default", "read"), ("user:reader", "write"))


def goal(world: World, description: str = "Ship the release", *args: Any, **options: Any) -> str:
    goal_id: str = world(StoreGoal(description, *args, **options))["goal_id"]
    return goal_id


def names(world: World, **options: Any) -> list[str]:
    return [found["description"] for found in world(ActiveGoals(**options))["goals"]]


def test_a_goal_is_a_memory_with_columns_of_its_own(world: World) -> None:
    stored = world(
        StoreGoal("Ship the release", 0.9, "2027-06-01", metadata={"quarter": 2}, tags=["q2"])
    )
    assert (stored["goal_status"], stored["version"]) == ("active", 1)
    fetched = world(GetGoal(stored["goal_id"]))
    found = fetched["goal"]
    assert found["due_at"] == "2027-06-01T00:00:00.000000Z"
    assert (found["priority"], found["progress"], found["ended_at"]) == (0.9, 0.0, None)
    assert (found["metadata"], found["tags"]) == ({"quarter": 2}, ["q2"])
    assert fetched["tasks"] == {}
    [hit] = world(SemanticSearch("ship the release", collections=["goals"]))["results"]
    assert (hit["id"], hit["memory_tier"], hit["importance"]) == (found["id"], "medium", 0.9)


def test_what_is_not_given_of_a_goal_stays(world: World) -> None:
    goal_id = goal(world, "Ship it", 0.7, "2027-06-01")
    changed = world(UpdateGoal(goal_id, progress=1.0))
    assert (changed["version"], changed["goal_status"]) == (2, "active")
    world(UpdateGoal(goal_id, description="Ship it twice", due_at=None))
    found = world(GetGoal(goal_id))["goal"]
    assert (found["description"], found["due_at"]) == ("Ship it twice", None)
    assert (found["progress"], found["priority"], found["version"]) == (1.0, 0.7, 3)
    again = world(UpdateGoal(goal_id, progress=1.0, description="Ship it twice"))
    assert again["version"] == 3
    assert world(SemanticSearch("Ship it twice"))["results"][0]["id"] == goal_id


def test_a_goal_ends_and_may_be_taken_up_again(world: World) -> None:
    goal_id = goal(world)
    ended: tuple[Status, ...] = ("completed", "failed", "abandoned")
    for status in ended:
        assert world(UpdateGoal(goal_id, status))["goal_status"] == status
        assert world(GetGoal(goal_id))["goal"]["ended_at"] is not None
        assert names(world) == []
    taken_up: tuple[Status, ...] = ("paused", "active")
    for status in taken_up:
        world(UpdateGoal(goal_id, status))
        assert world(GetGoal(goal_id))["goal"]["ended_at"] is None
    assert names(world) == ["Ship the release"]
    versions = world(History(goal_id))["versions"]
    statuses = [version["memory"]["value"]["goal_status"] for version in versions]
    assert statuses == ["active", "paused", "abandoned", "failed", "completed", "active"]


def test_active_goals_come_by_priority_then_by_date_then_by_age(world: World) -> None:
    goal(world, "old", 0.5)
    goal(world, "undated", 0.9)
    goal(world, "late", 0.9, "2028-01-01")
    goal(world, "soon", 0.9, "2027-01-01")
    goal(world, "young", 0.5)
    below = goal(world, "elsewhere", 1.0, namespace="user:bob:work")
    assert names(world) == ["elsewhere", "soon", "late", "undated", "old", "young"]
    assert names(world, limit=2) == ["elsewhere", "soon"]
    assert names(world, namespace="user:bob") == ["elsewhere"]
    assert [found["id"] for found in world(ActiveGoals(), BOB)["goals"]] == [below]
    world(DeleteMemory(below))
    assert names(world, namespace="user:bob") == []


def test_goals_serve_goals_without_going_round(world: World) -> None:
    top = goal(world, "top")
    middle = goal(world, "middle", parent_goal_id=top)
    bottom = goal(world, "bottom", parent_goal_id=middle)
    assert world(GetGoal(bottom))["goal"]["parent_goal_id"] == middle
    for child, parent in ((top, bottom), (top, top)):
        with pytest.raises(errors.CycleRefused):
            world(UpdateGoal(child, parent_goal_id=parent))
    world(UpdateGoal(bottom, parent_goal_id=None))
    assert world(GetGoal(bottom))["goal"]["parent_goal_id"] is None
    assert world(UpdateGoal(top, parent_goal_id=bottom))["version"] == 2
    world(Purge(bottom))
    assert world(GetGoal(top))["goal"]["parent_goal_id"] is None


def test_a_goal_knows_its_tasks_and_leaves_them_behind(world: World) -> None:
    goal_id = goal(world)
    for number in range(5):
        world(SaveTask(f"Part {number}", f"t{number}", goal_id))
    for task_id in ("t0", "t1"):
        world(UpdateTaskStatus(task_id, "completed"))
    world(SaveTask("Another", "other"))
    assert world(GetGoal(goal_id))["tasks"] == {"completed": 2, "pending": 3}
    seen: list[str] = []
    cursor = None
    while True:
        page = world(TasksForGoal(goal_id, 2, cursor=cursor))
        seen += [task["task_id"] for task in page["tasks"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == [f"t{number}" for number in range(5)]
    world(DeleteMemory(world(GetTask("t1"))["task"]["memory_id"]))
    assert world(GetGoal(goal_id))["tasks"] == {"completed": 1, "pending": 3}
    world(DeleteMemory(goal_id))
    with pytest.raises(errors.NotFound, match="goal"):
        world(TasksForGoal(goal_id))
    task = world(GetTask("t0"))["task"]
    assert (task["description"], task["goal_id"]) == ("Part 0", None)


def test_a_foreign_goal_is_as_absent(world: World) -> None:
    goal_id = goal(world)
    for operation in (
        GetGoal(goal_id),
        TasksForGoal(goal_id),
        UpdateGoal(goal_id, "completed"),
        StoreGoal("Mine", parent_goal_id=goal_id, namespace="user:bob"),
        SaveTask("Mine", goal_id=goal_id, namespace="user:bob"),
    ):
        with pytest.raises(errors.NotFound) as refused:
            world(operation, BOB)
        assert refused.value.message == f"There is no goal '{goal_id}'."
    with pytest.raises(errors.NotFound):
        world(SaveTask("Mine", goal_id="nothing"))
    assert names(world, namespace="user:bob") == []


def test_who_may_read_a_goal_may_serve_it_and_not_change_it(world: World) -> None:
    goal_id = goal(world)
    world(SaveTask("Mine", "mine", goal_id, namespace="user:reader"), READER)
    assert world(TasksForGoal(goal_id), READER)["count"] == 1
    with pytest.raises(errors.Forbidden):
        world(UpdateGoal(goal_id, "completed"), READER)
    # What others do for it is theirs: neither shown nor counted.
    default = identity("default", ("app:default", "admin"))
    assert world(TasksForGoal(goal_id), default)["tasks"] == []
    assert world(GetGoal(goal_id), default)["tasks"] == {}


def test_bad_goals_are_refused_and_write_nothing(world: World) -> None:
    goal_id = goal(world)
    before = world.storage.committed_seq
    nothing = UpdateGoal(goal_id)
    for operation in (StoreGoal("  "), StoreGoal("x", due_at="soon"), nothing):
        with pytest.raises(errors.InvalidArgument):
            world(operation)
    with pytest.raises(errors.InvalidArgument, match="priority"):
        world(StoreGoal("x", float("nan")))
    with pytest.raises(errors.VersionConflict):
        world(UpdateGoal(goal_id, "completed", expected_version=2))
    memory_id = world(SaveTask("A task"))["memory_id"]
    with pytest.raises(errors.NotFound):
        world(UpdateGoal(memory_id, "completed"))
    assert world.storage.committed_seq == before + 1


def test_a_goal_goes_back_to_an_earlier_version_whole(world: World) -> None:
    goal_id = goal(world, "Ship it", 0.9)
    top = goal(world, "Top")
    world(UpdateGoal(goal_id, "completed", 1.0, "Ship it twice", 0.2, parent_goal_id=top))
    world(Restore(goal_id, 1))
    found = world(GetGoal(goal_id))["goal"]
    assert (found["description"], found["goal_status"]) == ("Ship it", "active")
    assert (found["priority"], found["progress"], found["ended_at"]) == (0.9, 0.0, None)
    # What it serves is as it was: by now that one could serve it.
    assert found["parent_goal_id"] == top
    with pytest.raises(errors.InvalidArgument):
        world(UpdateMemory(goal_id, {"content": "Something else"}))
