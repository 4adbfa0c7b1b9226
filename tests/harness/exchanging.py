"""Stores that go from one world to another: filled, given out, taken in, and read in every way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recollect.orchestrator.access.identities import LOCAL, Identity
from recollect.protocol import errors
from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation
from tests.faults.walls import furnish as furnish_everything
from tests.harness.executions import DEPLOYMENTS
from tests.harness.worlds import World

HOME = "user:alice"
Record = dict[str, Any]
# What every store counts for itself, and what is of the moment or of having been read.
ITS_OWN = frozenset({"seq", "strength", "score", "explanation", "degraded"})
BY_READING = frozenset({"access_count", "last_accessed_at", "fades_at", "stability_s"})
SUMMED = ("added", "present", "completed", "conflicts", "refused")
FADING = frozenset({"access_count", "last_access_us", "fades_us", "stability_s"})


def furnish(world: World) -> None:
    """One of everything there can be, in every state, in two namespaces, with a past."""
    furnish_everything(world, HOME, "alice", LOCAL)
    furnish_everything(world, "project:apollo", "bob", LOCAL)
    kept = world(ops.AddMemory("A fact", namespace=HOME, tags=["a", "b"], importance=0.9))
    for n in range(3):
        world.clock.advance(60)
        world(ops.UpdateMemory(kept["memory_id"], {"content": f"Fact {n}", "importance": n / 4}))
    world(ops.ReinforceMemory(kept["memory_id"]))
    world(ops.AddMemory("Was valid once", valid_from="2020-01-01", valid_to="2021-01-01"))
    world(ops.AddMemory("Expires", expires_at=world.clock.now_us() / 1e6 + 3600))
    gone = world(ops.AddMemory("Is deleted", namespace=HOME))["memory_id"]
    world(ops.DeleteMemory(gone))
    back = world(ops.AddMemory("Was deleted and is back", namespace=HOME))["memory_id"]
    world(ops.DeleteMemory(back))
    world(ops.Restore(back))
    world(ops.Put(HOME, "nothing", None))
    world(ops.Put(HOME, "lost", {"a": [1, 2.5, "drei", None, True]}))
    world(ops.DeleteByKey(HOME, "lost"))
    world(ops.Put(HOME, "lost", {"found": "again"}))
    # A goal that serves one made after it, and a task that changed its goal.
    early = world(ops.StoreGoal("Early", namespace=HOME))["goal_id"]
    late = world(ops.StoreGoal("Late", namespace=HOME))["goal_id"]
    world(ops.UpdateGoal(early, parent_goal_id=late))
    world(ops.SaveTask("Do it", "moving", early, namespace=HOME))
    newest = world(ops.StoreGoal("Newest", namespace=HOME))["goal_id"]
    world(ops.SaveTask("Do it", "moving", newest, namespace=HOME))
    world(ops.SaveTask("Do it again", "moving", early, namespace=HOME))
    for place, told in enumerate(DEPLOYMENTS):
        world(
            ops.StoreExecution(
                f"deploy-{place}",
                told.summary,
                told.success,
                list(told.errors),
                task_description=told.description,
                task_type="deploy",
                namespace=HOME,
            )
        )
    session_id = world(ops.CreateSession("alice", app="chess", state={"app:level": 3}))[
        "session_id"
    ]
    for n in range(5):
        world(ops.AppendEvent(session_id, {"move": n}, {"at": n, "user:wins": n, "temp:x": 1}))
    world(ops.AddMemory("Said in a session", namespace=HOME), session=session_id)
    world(ops.UpdateStatus(session_id, "paused"))


def exported(
    world: World, limit: int = 500, namespace: str | None = None, who: Identity = LOCAL
) -> list[Record]:
    """All records of a store."""
    found: list[Record] = []
    cursor = None
    while True:
        page = world(ops.ExportRecords(cursor=cursor, limit=limit, namespace=namespace), who)
        assert len(page["records"]) <= limit
        found += page["records"]
        cursor = page["cursor"]
        if cursor is None:
            return found


def take_in(
    world: World, records: list[Record], size: int = 100, who: Identity = LOCAL
) -> dict[str, Any]:
    """Import records page by page, then again those that waited; counts and problems."""
    sums: dict[str, Any] = {
        "problems": [],
        "waited": 0,
        "unresolved": 0,
        **dict.fromkeys(SUMMED, 0),
    }
    waiting: list[Record] = []
    for start in range(0, len(records), size):
        part = records[start : start + size]
        answer = world(ops.ImportRecords(part), who)
        waiting += [part[place] for place in answer["waiting"]]
        _add(sums, answer)
    sums["waited"] = len(waiting)
    for start in range(0, len(waiting), size):
        answer = world(ops.ImportRecords(waiting[start : start + size]), who)
        sums["unresolved"] += len(answer["waiting"])
        sums["problems"] += answer["problems"]
    return sums


def _add(sums: dict[str, Any], answer: dict[str, Any]) -> None:
    sums["problems"] += answer["problems"]
    for name in SUMMED:
        sums[name] += answer[name]


def same_time(one: World, other: World) -> None:
    """Let it be as late in one world as in the other."""
    behind = one.clock.now_us() - other.clock.now_us()
    other.clock.advance(behind / 1e6)


def lasting(records: list[Record]) -> Any:
    """Records without what changes when somebody's reads are counted, which is done later."""
    return settled(records, FADING)


def settled(given: Any, without: frozenset[str] = ITS_OWN) -> Any:
    """An answer without what may differ."""
    if isinstance(given, dict):
        return {key: settled(value, without) for key, value in given.items() if key not in without}
    return [settled(item, without) for item in given] if isinstance(given, list) else given


def all_reads(world: World, records: list[Record], moments: Iterable[float]) -> dict[str, Any]:
    """What a store answers to every kind of question about some records."""
    return {
        "list": settled(listed(world), BY_READING),
        **answers_to(world, questions_about(records, moments)),
        **answers_to(world, questions_about_all()),
    }


def answers_to(world: World, questions: Iterable[Operation[Any]]) -> dict[str, Any]:
    """What a store answers, by what was asked; errors are answers."""
    return {
        repr(operation): settled(_answer(world, operation), ITS_OWN | BY_READING)
        for operation in questions
    }


def listed(world: World) -> list[Any]:
    """All memories in all states, with how strong they are."""
    found: list[Any] = []
    cursor = None
    while True:
        page = world(
            ops.ListMemories(limit=200, cursor=cursor, include_deleted=True, include_archived=True)
        )
        found += page["memories"]
        cursor = page["cursor"]
        if cursor is None:
            return list(settled(found))


def _answer(world: World, operation: Operation[Any]) -> Any:
    try:
        answer = world(operation)
        answer.pop("cursor", None)
        return answer
    except errors.RecollectError as error:
        return error.body()


def questions_about(records: list[Record], moments: Iterable[float]) -> Iterable[Operation[Any]]:
    """Reads about some records, of now and of the past."""
    moments = list(moments)
    for record in records:
        kind = record["kind"]
        if kind == "memory":
            yield from _about_memory(record, moments)
        elif kind == "group":
            yield ops.GetMemoriesByGroup(record["id"], limit=1000)
        elif kind == "session":
            yield ops.GetSession(record["id"])
            yield ops.ListEvents(record["id"], limit=1000)
            yield ops.GetState(record["id"])
        elif kind == "document":
            yield ops.SearchDocuments(record["title"], namespace=record["namespace"])


def questions_about_all() -> Iterable[Operation[Any]]:
    """Reads about the store that `furnish` has filled."""
    for namespace in ("user:alice", "project:apollo"):
        yield ops.ListPreferences(namespace=namespace)
        yield ops.RecentSummaries(namespace=namespace)
        yield ops.GetPersona("jockey", namespace=namespace)
        yield ops.GetAgentState("rider", namespace=namespace)
        yield ops.ConfigHistory("stable", namespace=namespace)
        yield ops.ListDocuments(namespace=namespace)
        yield ops.SearchPatterns("deploy", namespace=namespace)
    yield ops.ActiveGoals()
    yield ops.ListSessions("alice")
    yield ops.ListNamespaces("user")
    yield ops.Count(include_deleted=True, include_archived=True)


def _about_memory(record: Record, moments: list[float]) -> Iterable[Operation[Any]]:
    memory_id, key, namespace = record["id"], record["key"] or "", record["namespace"]
    yield ops.GetMemory(memory_id)
    yield ops.History(memory_id, limit=1000)
    yield ops.GetChildren(memory_id)
    yield ops.GetRelatedMemories(memory_id, depth=3)
    for moment in moments:
        yield ops.GetMemory(memory_id, as_of=moment)
    if key:
        yield ops.GetByKey(namespace, key)
        yield ops.HistoryByKey(namespace, key)
    match record["collection"]:
        case "goals":
            yield ops.GetGoal(memory_id)
            yield ops.TasksForGoal(memory_id)
        case "tasks":
            yield ops.GetTask(key.removeprefix("task/"), namespace=namespace)
            yield ops.ListSteps(key.removeprefix("task/"), namespace=namespace)
        case "decisions":
            yield ops.GetDecision(memory_id)
            yield ops.ListDecisions("stable", namespace=namespace)
        case "procedures":
            yield ops.GetProcedure(key.removeprefix("procedure/"), namespace=namespace)
