"""P14: namespaces are walls, for every operation that is declared.

A test fails for any operation that the table of aims lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect.orchestrator.access.grants import NOTHING
from recollect.orchestrator.access.identities import LOCAL, Identity
from recollect.protocol import operations as ops
from recollect.protocol.bearer_keys import hash_of, new_bearer_key
from recollect.protocol.operations import REGISTRY
from tests.faults.ledger import Trial
from tests.faults.walls import ABSENT, AIMED, MARKER, Aim, answer, furnish, identity, without_names
from tests.harness.postgres import new_database
from tests.harness.worlds import World

ALICE = identity("alice", ("user:alice", "admin"), ("app:default", "write"))
READER = identity("reader", ("user:alice", "read"))
STRANGERS = (
    identity("bob", ("user:bob", "admin")),
    identity("alice2", ("user:alice2", "admin"), ("project:alice", "admin")),
    identity("below", ("user:alice:notes", "admin")),
    Identity("nobody", NOTHING),
)

# All that lies behind the wall, without what reading it may change.
BEHIND = (
    "SELECT id, version, content, value, metadata, tags, importance, parent_id, deleted_us, "
    "archived_us, key, session_id FROM memories WHERE namespace = 'user:alice' ORDER BY num",
    "SELECT v.num, v.version, v.snapshot FROM versions v JOIN memories m ON m.num = v.num "
    "WHERE m.namespace = 'user:alice' ORDER BY v.num, v.version",
    "SELECT id, status, version, events FROM sessions WHERE user_id = 'alice' ORDER BY id",
    "SELECT session_id, position, event FROM session_events ORDER BY session_id, position",
    "SELECT scope, owner, key, value FROM session_state ORDER BY scope, owner, key",
    "SELECT id, name FROM context_groups WHERE namespace = 'user:alice' ORDER BY id",
    "SELECT group_id, num FROM group_members ORDER BY group_id, num",
    "SELECT source_num, relationship_type, target_num FROM relationships "
    "ORDER BY source_num, relationship_type, target_num",
    "SELECT id, status, content_hash FROM documents WHERE namespace = 'user:alice' ORDER BY id",
    "SELECT id, status FROM runs WHERE namespace = 'user:alice' ORDER BY id",
    "SELECT d.num, d.outcome FROM decisions d JOIN memories m ON m.num = d.num "
    "WHERE m.namespace = 'user:alice' ORDER BY d.num",
    "SELECT i.num, i.resolution FROM incidents i JOIN memories m ON m.num = i.num "
    "WHERE m.namespace = 'user:alice' ORDER BY i.num",
    "SELECT g.num, g.status, g.parent_num FROM goals g JOIN memories m ON m.num = g.num "
    "WHERE m.namespace = 'user:alice' ORDER BY g.num",
    "SELECT t.num, t.status, t.phase, t.summary, t.steps FROM tasks t "
    "JOIN memories m ON m.num = t.num WHERE m.namespace = 'user:alice' ORDER BY t.num",
    "SELECT s.num, s.task_num, s.output FROM steps s ORDER BY s.num",
    "SELECT identity, pattern, access FROM grants ORDER BY identity, pattern",
)
DENIED = "SELECT count(*) FROM journal WHERE outcome = 'denied' AND identity = ?"


@pytest.fixture(params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    url = "sqlite" if request.param == "sqlite" else new_database()
    world = World(url, tmp_path / "data")
    yield world
    world.close()


@pytest.fixture
def aim(world: World) -> Aim:
    aim = furnish(world, "user:alice", "alice", ALICE)
    # What the owner has just read is at hand, in the caches.
    assert MARKER in world(ops.GetMemory(aim.memory_id), ALICE)["memory"]["content"]
    assert world(ops.SemanticSearch(MARKER), ALICE)["count"]
    return aim


def read(world: World, sql: str, *params: Any) -> list[tuple[Any, ...]]:
    async def run() -> list[tuple[Any, ...]]:
        # Behind whatever is still to be written.
        await world.storage.write(lambda transaction: None)
        return await world.storage.read(lambda session: session.execute(sql, params))

    return world.run(run())


def behind(world: World) -> list[list[tuple[Any, ...]]]:
    return [read(world, sql) for sql in BEHIND]


def test_every_operation_is_aimed() -> None:
    assert AIMED.keys() == REGISTRY.keys()


@pytest.mark.parametrize("who", STRANGERS, ids=lambda who: who.name)
def test_a_stranger_gets_nothing_and_cannot_tell_it_from_absence(
    world: World, aim: Aim, who: Identity
) -> None:
    check_wall(world, aim, who, who)


def test_a_stranger_with_a_bearer_key_gets_no_more_by_who_carries_it(
    world: World, aim: Aim
) -> None:
    bob, key = STRANGERS[0], new_bearer_key()
    world(ops.CreateIdentity(bob.name))
    for grant in bob.grants.grants:
        world(ops.GrantAccess(bob.name, grant.pattern, grant.access))  # type: ignore[arg-type]
    world(ops.CreateBearerKey(bob.name, hash_of(key)))
    for carrier in (LOCAL, ALICE):
        assert answer(world, ops.WhoAmI(), carrier, bearer=key)["identity"] == bob.name
    check_wall(world, aim, bob, LOCAL, bearer=key)


def check_wall(world: World, aim: Aim, who: Identity, carrier: Identity, **envelope: Any) -> None:
    """Have somebody try every operation, by themselves or carried by somebody else."""
    before = behind(world)
    with Trial("P14") as trial:
        for name, makes in AIMED.items():
            for place, make in enumerate(makes):
                trial.case()
                case = f"{who.name}: {name} #{place}"
                denied = read(world, DENIED, who.name)[0][0]
                given = answer(world, make(aim), carrier, **envelope)
                seen = without_names(given, aim)
                if MARKER in seen:
                    trial.violated(f"{case} was sent the marker: {seen[:300]}")
                missed = answer(world, make(ABSENT), carrier, **envelope)
                absent = without_names(missed, ABSENT)
                if seen != absent:
                    trial.violated(f"{case} differs from absence: {seen[:300]} / {absent[:300]}")
                code = given.get("error", {}).get("code")
                lines = read(world, DENIED, who.name)[0][0] - denied
                if code in ("not_found", "forbidden") and not lines:
                    trial.violated(f"{case} was refused ({code}) without a line in the audit")
        if behind(world) != before:
            trial.violated(f"{who.name} changed what is not theirs")


def test_one_who_may_read_changes_nothing_and_is_told_so(world: World, aim: Aim) -> None:
    before = behind(world)
    with Trial("P14") as trial:
        for name, makes in AIMED.items():
            access = REGISTRY[name].spec.access
            for place, make in enumerate(makes):
                trial.case()
                given = answer(world, make(aim), READER)
                if access in ("write", "admin") and given["status"] == "success":
                    if given.get("dry_run") or name in ("forget_source", "migrate"):
                        continue  # it may look, and finds nothing that it may change
                    trial.violated(f"{name} #{place} was done by a reader: {given}")
        if behind(world) != before:
            trial.violated("a reader changed something")
    # The table would prove nothing if its aims missed.
    assert MARKER in str(answer(world, ops.GetMemory(aim.memory_id), READER))
    assert MARKER in str(answer(world, ops.GetSession(aim.session_id), READER))
    assert MARKER in str(answer(world, ops.SearchDocuments(MARKER), READER))
    assert MARKER in str(answer(world, ops.GetByKey(aim.namespace, aim.key), READER))
    assert MARKER in str(answer(world, ops.GetDecision(aim.decision_id), READER))
    assert MARKER in str(answer(world, ops.FindSimilarDecisions(MARKER), READER))
    assert MARKER in str(answer(world, ops.ListDecisions("stable"), READER))
    assert MARKER in str(answer(world, ops.ConfigHistory("stable"), READER))
    procedure = ops.GetProcedure("saddling", namespace=aim.namespace)
    assert MARKER in str(answer(world, procedure, READER))
    for seen in (
        ops.GetGoal(aim.goal_id),
        ops.TasksForGoal(aim.goal_id),
        ops.ActiveGoals(),
        ops.GetTask(aim.task_id, namespace=aim.namespace),
        ops.ListSteps(aim.task_id, namespace=aim.namespace),
        ops.GetPreference("hay", namespace=aim.namespace),
        ops.ListPreferences(),
        ops.GetAgentState("rider", namespace=aim.namespace),
        ops.GetPersona("jockey", namespace=aim.namespace),
        ops.RecentSummaries(),
    ):
        assert MARKER in str(answer(world, seen, READER)), seen
    assert aim.memory_id in str(answer(world, ops.ReadChanges(0, 1000), READER))
    forbidden = answer(world, ops.UpdateMemory(aim.memory_id, {"importance": 1.0}), READER)
    assert forbidden["error"]["code"] == "forbidden"


def test_the_answer_to_a_write_is_repeated_only_to_who_made_it(world: World) -> None:
    operation = ops.AddMemory(f"A {MARKER}", namespace="user:alice")
    with Trial("P14") as trial:
        first = answer(world, operation, ALICE, key="the-same-key")
        assert first["status"] == "success"
        for who in STRANGERS:
            trial.case()
            again = answer(world, operation, who, key="the-same-key")
            if again.get("error", {}).get("code") != "forbidden":
                trial.violated(f"{who.name} was answered {again}")
        trial.case()
        outcast = msgspec.structs.replace(ALICE, grants=NOTHING)
        if answer(world, operation, outcast, key="the-same-key")["status"] != "error":
            trial.violated("one whose grants were taken back was told again what they did")
        assert answer(world, operation, ALICE, key="the-same-key") == first


def test_what_changed_nothing_is_not_told_again_to_who_may_no_longer_see_it(
    world: World, aim: Aim
) -> None:
    outcast = msgspec.structs.replace(ALICE, grants=NOTHING)
    with Trial("P14") as trial:
        for operation in (
            ops.SetState(aim.session_id, {}),
            ops.UpdateStatus(aim.session_id, "active"),
        ):
            trial.case()
            name = operation.spec.name
            assert answer(world, operation, ALICE, key=name)["status"] == "success"
            again = answer(world, operation, outcast, key=name)
            if again.get("error", {}).get("code") != "not_found":
                trial.violated(f"{name} again was answered {again}")


def test_the_answer_to_a_write_is_repeated_though_it_reached_behind_a_wall(world: World) -> None:
    both = identity("both", ("user:alice", "admin"), ("user:bob", "admin"))
    bob = STRANGERS[0]
    with Trial("P14") as trial:
        for operation in (ops.DeleteMemory, ops.Purge):
            trial.case()
            root = world(ops.AddMemory("Root", namespace="user:bob"), both)["memory_id"]
            world(ops.AddMemory(f"A {MARKER}", namespace="user:alice", parent_id=root), both)
            name = operation.spec.name
            first = answer(world, operation(root), bob, key=name)
            assert first["status"] == "success"
            again = answer(world, operation(root), bob, key=name)
            if "alice" in str(again) or again != first:
                trial.violated(f"{name} again was answered {again}")


def test_a_tree_across_a_wall_is_cut_at_the_wall(world: World) -> None:
    both = identity("both", ("user:alice", "write"), ("user:bob", "write"))
    bob = identity("bob", ("user:bob", "write"))
    root = world(ops.AddMemory("Root", namespace="user:bob"), both)["memory_id"]
    child = world(ops.AddMemory(f"A {MARKER}", namespace="user:alice", parent_id=root), both)[
        "memory_id"
    ]
    with Trial("P14") as trial:
        trial.case()
        listed = answer(world, ops.GetChildren(root), bob)
        deleted = answer(world, ops.DeleteMemory(root), bob)
        for given in (listed, deleted):
            if child in str(given) or MARKER in str(given):
                trial.violated(f"the child was shown: {given}")
        present = world(ops.GetMemory(child), ALICE)["memory"]
        if present["parent_id"] is not None:
            trial.violated("the child was not set free")
