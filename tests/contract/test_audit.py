"""The audit log: what every write leaves in it, who may read it, and how it is paged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.services import audit
from recollect.protocol import errors
from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation
from recollect.protocol.operations import REGISTRY
from tests.faults.walls import identity
from tests.harness.worlds import World

ALICE = identity("alice", ("user:alice", "admin"), ("app:default", "write"))
BOB = identity("bob", ("user:bob", "admin"))
SAID = {"agent": "planner", "session": "s-1", "trace": "t-1", "task": "plan-7"}
HOME = "user:alice"


def entries(world: World, **filters: Any) -> list[dict[str, Any]]:
    """All that fits, the oldest first, once what is being written is there."""

    async def written() -> None:
        await world.storage.write(lambda transaction: None)

    world.run(written())
    found, cursor = [], None
    while True:
        page = world(ops.AuditLog(cursor=cursor, limit=100, **filters))
        found += page["entries"]
        cursor = page["cursor"]
        if cursor is None:
            return found[::-1]


class Aims:
    """What the writes below are about."""

    def __init__(self, world: World) -> None:
        def add(text: str, **options: Any) -> str:
            added = world(ops.AddMemory(text, namespace=HOME, **options), ALICE)
            memory_id: str = added["memory_id"]
            return memory_id

        self.memory = add("A fact")
        self.parent = add("A parent")
        self.child = add("A child", parent_id=self.parent)
        self.gone = add("A fact that is gone")
        world(ops.DeleteMemory(self.gone), ALICE)
        world(ops.Put(HOME, "drink", "tea"), ALICE)
        world(ops.Put(HOME, "drink", "coffee"), ALICE)
        world(ops.Put(HOME, "lost", "x"), ALICE)
        world(ops.DeleteByKey(HOME, "lost"), ALICE)
        self.session = world(ops.CreateSession("alice"), ALICE)["session_id"]
        self.group = world(ops.CreateContextGroup("g", namespace=HOME), ALICE)["group_id"]


Expected = list[tuple[str, str | None, int | None, int | None]]
"""Operation, namespace, version before and version after of each entry, in order."""

WRITES: dict[str, tuple[Callable[[Aims], Operation[Any]], Expected]] = {
    "add_memory": (
        lambda a: ops.AddMemory("New", namespace=HOME),
        [("add_memory", HOME, None, 1)],
    ),
    "batch_add_memories": (
        lambda a: ops.BatchAddMemories([{"content": "One"}, {"content": "Two"}], namespace=HOME),
        [("add_memory", HOME, None, 1), ("add_memory", HOME, None, 1)],
    ),
    "update_memory": (
        lambda a: ops.UpdateMemory(a.memory, {"content": "Changed"}),
        [("update_memory", HOME, 1, 2)],
    ),
    "delete_memory": (
        lambda a: ops.DeleteMemory(a.parent),
        [("delete_memory", HOME, 1, 2), ("delete_memory", HOME, 1, 2)],
    ),
    "restore": (lambda a: ops.Restore(a.gone), [("restore", HOME, 2, 3)]),
    "purge": (lambda a: ops.Purge(a.gone), [("purge", HOME, 2, None)]),
    "reinforce_memory": (
        lambda a: ops.ReinforceMemory(a.memory),
        [("reinforce_memory", HOME, 1, 1)],
    ),
    "add_relationship": (
        lambda a: ops.AddRelationship(a.memory, a.child, "has"),
        [("add_relationship", HOME, 1, 1)],
    ),
    "create_context_group": (
        lambda a: ops.CreateContextGroup("h", namespace=HOME),
        [("create_context_group", HOME, None, None)],
    ),
    "add_to_group": (
        lambda a: ops.AddToGroup(a.memory, a.group),
        [("add_to_group", HOME, None, None)],
    ),
    "put": (lambda a: ops.Put(HOME, "drink", "water"), [("put", HOME, 2, 3)]),
    "update_by_key": (
        lambda a: ops.UpdateByKey(HOME, "drink", "water"),
        [("update_by_key", HOME, 2, 3)],
    ),
    "delete_by_key": (
        lambda a: ops.DeleteByKey(HOME, "drink"),
        [("delete_by_key", HOME, 2, 3)],
    ),
    "restore_by_key": (
        lambda a: ops.RestoreByKey(HOME, "lost"),
        [("restore_by_key", HOME, 2, 3)],
    ),
    "create_session": (
        lambda a: ops.CreateSession("alice"),
        [("create_session", HOME, None, 1)],
    ),
    "append_event": (
        lambda a: ops.AppendEvent(a.session, {"said": "hello"}),
        [("append_event", HOME, 1, 2)],
    ),
    "set_state": (
        lambda a: ops.SetState(a.session, {"topic": "tea", "app:theme": "dark"}),
        [("set_state", "app:default", None, None), ("set_state", HOME, 1, 2)],
    ),
    "update_status": (
        lambda a: ops.UpdateStatus(a.session, "active"),
        [("update_status", HOME, 1, 2)],
    ),
    "terminate_session": (
        lambda a: ops.TerminateSession(a.session),
        [("terminate_session", HOME, 1, 2)],
    ),
    "delete_session": (
        lambda a: ops.DeleteSession(a.session),
        [("delete_session", HOME, 1, None)],
    ),
}


class Records:
    """What the writes of records below are about."""

    def __init__(self, world: World) -> None:
        def made(operation: Operation[Any], name: str) -> str:
            record_id: str = world(operation, ALICE)[name]
            return record_id

        self.goal = made(ops.StoreGoal("Open the shop", namespace=HOME), "goal_id")
        for task in ("paint", "clean", "stock"):
            world(ops.SaveTask("Make it ready", task, namespace=HOME), ALICE)
        asked = ops.LogDecision("Which colour?", ["red"], "red", namespace=HOME)
        self.decision = made(asked, "decision_id")
        self.incident = made(ops.StoreIncident("It rained in", namespace=HOME), "memory_id")
        for success, summary in ((True, "Took a backup first"), (False, "Skipped the backup")):
            done = ops.StoreExecution(
                "deploy", summary, success, namespace=HOME, task_description="Deploy the shop"
            )
            learned = world(done, ALICE)["patterns"]
        [self.pattern] = learned


def new(name: str) -> Expected:
    return [(name, HOME, None, 1)]


def changed(name: str) -> Expected:
    return [(name, HOME, 1, 2)]


# Each is about a record of its own, so that they can come one after the other.
RECORDS: dict[str, tuple[Callable[[Records], Operation[Any]], Callable[[str], Expected]]] = {
    "store_goal": (lambda r: ops.StoreGoal("Earn a living", namespace=HOME), new),
    "update_goal": (lambda r: ops.UpdateGoal(r.goal, description="Open the bakery"), changed),
    "save_task": (lambda r: ops.SaveTask("Bake", "bake", namespace=HOME), new),
    "update_task_status": (
        lambda r: ops.UpdateTaskStatus("paint", "completed", "It is red", namespace=HOME),
        changed,
    ),
    "set_task_phase": (
        lambda r: ops.SetTaskPhase("clean", "blocked", "No soap", namespace=HOME),
        changed,
    ),
    "save_step": (lambda r: ops.SaveStep("stock", 1, "count", namespace=HOME), new),
    "save_agent_state": (lambda r: ops.SaveAgentState("baker", {"at": 1}, namespace=HOME), new),
    "save_preference": (lambda r: ops.SavePreference("flour", "rye", namespace=HOME), new),
    "save_persona": (lambda r: ops.SavePersona("host", {"tone": "warm"}, namespace=HOME), new),
    "log_decision": (lambda r: ops.LogDecision("When?", ["now"], "now", namespace=HOME), new),
    "record_outcome": (lambda r: ops.RecordOutcome(r.decision, "They like it"), changed),
    "store_procedure": (lambda r: ops.StoreProcedure("open", ["unlock"], namespace=HOME), new),
    "store_incident": (lambda r: ops.StoreIncident("The oven broke", namespace=HOME), new),
    "resolve_incident": (lambda r: ops.ResolveIncident(r.incident, "A new roof"), changed),
    "record_config_change": (
        lambda r: ops.RecordConfigChange("oven", "celsius", 200, 220, namespace=HOME),
        new,
    ),
    "store_knowledge": (lambda r: ops.StoreKnowledge("Rye", "It is dark", namespace=HOME), new),
    "store_execution": (lambda r: ops.StoreExecution("bake", "Done", True, namespace=HOME), new),
    "pattern_feedback": (lambda r: ops.PatternFeedback(r.pattern, True), changed),
    "push_event": (lambda r: ops.PushEvent("oven", "it is hot", True, namespace=HOME), new),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_leaves_exactly_its_entries_in_its_own_transaction(world: World, name: str) -> None:
    make, expected = WRITES[name]
    operation = make(Aims(world))
    answer, made = check_entries(world, operation, expected)
    assert answer["seq"] == made[-1]["seq"] if name != "delete_memory" else True


def test_so_does_every_write_of_a_record(world: World) -> None:
    records = Records(world)
    for name, (make, expected) in RECORDS.items():
        answer, made = check_entries(world, make(records), expected(name), name)
        assert answer.get("seq") == (made[-1]["seq"] if name != "push_event" else None)


def check_entries(
    world: World, operation: Operation[Any], expected: Expected, key: str = "k-1"
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The answer to a write, and what it left in the log."""
    before = entries(world)[-1]["seq"]
    answer = world(operation, ALICE, key=key, **SAID)
    made = [entry for entry in entries(world) if entry["seq"] > before]
    assert [
        (e["operation"], e["namespace"], e["version_before"], e["version_after"]) for e in made
    ] == expected
    now_us = world.clock.now_us()
    for entry in made:
        assert (entry["identity"], entry["agent"]) == ("alice", "planner")
        assert (entry["session_id"], entry["trace"]) == ("s-1", "t-1")
        assert (entry["task_id"], entry["request_key"]) == ("plan-7", key)
        assert (entry["outcome"], entry["detail"]) == ("done", None)
        assert to_iso(now_us - 1_000_000) < entry["at"] < to_iso(now_us)
        assert entry["subject"]
    # Said again, it is answered again and not done again.
    assert world(operation, ALICE, key=key, **SAID) == answer
    assert entries(world)[-1]["seq"] == made[-1]["seq"]
    # The row and its entry came together: the sequence has no gap.
    assert [entry["seq"] for entry in made] == list(range(before + 1, before + 1 + len(made)))
    return answer, made


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_is_denied_leaves_one_line_and_nothing_else(world: World, name: str) -> None:
    check_denied(world, WRITES[name][0](Aims(world)), name)


def test_so_does_every_write_of_a_record_that_is_denied(world: World) -> None:
    records = Records(world)
    for name, (make, _) in RECORDS.items():
        check_denied(world, make(records), name)


def check_denied(world: World, operation: Operation[Any], name: str) -> None:
    before = entries(world)[-1]["seq"]
    with pytest.raises((errors.Forbidden, errors.NotFound)):
        world(operation, BOB, key="k-1", **SAID)
    [entry] = [entry for entry in entries(world) if entry["seq"] > before]
    assert (entry["identity"], entry["outcome"]) == ("bob", "denied")
    assert (entry["operation"], entry["task_id"]) == (name, "plan-7")
    assert (entry["namespace"], entry["request_key"]) == (HOME, "k-1")
    assert entry["detail"]


def test_a_write_that_fails_leaves_no_entry(world: World) -> None:
    aims = Aims(world)
    before = entries(world)
    for operation, error in (
        (ops.UpdateMemory(aims.memory, {"importance": 1.0}, expected_version=9), "VersionConflict"),
        (ops.AddMemory("x", namespace=HOME, parent_id="nobody"), "NotFound"),
        (ops.Put(HOME, "drink", "x", expected_version=0), "AlreadyExists"),
        (ops.UpdateStatus(aims.session, "archived"), "TransitionRefused"),
    ):
        with pytest.raises(getattr(errors, error)):
            world(operation, ALICE)
    assert entries(world) == before


def test_the_table_of_writes_has_every_one_of_its_kind() -> None:
    # Those of documents, runs, identities and upkeep change many things; each has tests of its own.
    elsewhere = {
        *("archive_session", "squash_versions", "index_document", "sync_documents"),
        *("delete_document", "consolidate", "undo", "forget_source", "create_identity"),
        *("create_bearer_key", "revoke_bearer_key"),
        *("grant_access", "revoke_access", "backup", "reembed", "report_errors", "verify_audit"),
        *("trim_journal", "trim_answers", "fade_memories", "apply_retention", "keep_backup"),
        *("backfill_embeddings", "check_index", "maintain_index", "optimise_storage"),
        *("acquire_lease", "renew_lease", "release_lease", "announce_jobs", "request_job"),
        *("begin_job", "report_job", "finish_job", "import_records"),
        # These ask for a high access and change nothing.
        *("list_identities", "recent_errors", "stats", "analytics", "metrics", "list_jobs"),
        *("get_job_run", "job_history", "check_integrity", "export_records"),
        # What is of the moment comes into no log, and what is learned or moved into that of a run.
        *("update_metric", "set_active_task", "extract_pattern", "migrate"),
    }
    writing = {name for name, op in REGISTRY.items() if op.spec.access in ("write", "admin")}
    assert writing - elsewhere == WRITES.keys() | RECORDS.keys()


def seqs(page: Any) -> list[int]:
    return [entry["seq"] for entry in page["entries"]]


def furnish(world: World) -> None:
    for number in range(6):
        for who, home in ((ALICE, HOME), (BOB, "user:bob"), (ALICE, f"{HOME}:notes")):
            world(
                ops.AddMemory(f"Fact {number}", namespace=home),
                who,
                agent=f"{who.name}-{number % 2}",
                task=f"task-{number % 3}",
                trace=f"trace-{number}",
            )
        world.clock.advance(60)
    with pytest.raises(errors.Forbidden):
        world(ops.AddMemory("x", namespace=HOME), BOB)
    world(ops.CreateContextGroup("g", namespace="user:alice2"))


FILTERS: list[tuple[dict[str, Any], Callable[[dict[str, Any]], bool]]] = [
    ({}, lambda e: True),
    ({"namespace": HOME}, lambda e: e["namespace"] in (HOME, f"{HOME}:notes")),
    ({"namespace": f"{HOME}:notes"}, lambda e: e["namespace"] == f"{HOME}:notes"),
    ({"identity": "bob"}, lambda e: e["identity"] == "bob"),
    ({"agent": "alice-1"}, lambda e: e["agent"] == "alice-1"),
    ({"operation": "add_memory"}, lambda e: e["operation"] == "add_memory"),
    ({"task_id": "task-2"}, lambda e: e["task_id"] == "task-2"),
    ({"trace": "trace-3"}, lambda e: e["trace"] == "trace-3"),
    ({"outcome": "denied"}, lambda e: e["outcome"] == "denied"),
    ({"outcome": "done"}, lambda e: e["outcome"] == "done"),
    (
        {"task_id": "task-1", "identity": "alice", "namespace": HOME},
        lambda e: e["task_id"] == "task-1" and e["identity"] == "alice",
    ),
    ({"agent": "nobody"}, lambda e: False),
]


@pytest.mark.parametrize("stretch", [audit.STRETCH_ENTRIES, 4])
@pytest.mark.parametrize("who", [None, ALICE, BOB], ids=["all", "alice", "bob"])
def test_every_filter_gives_exactly_what_fits_and_may_be_seen_page_by_page(
    world: World, who: Identity | None, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(world)
    everything = entries(world)[::-1]
    monkeypatch.setattr(audit, "STRETCH_ENTRIES", stretch)
    monkeypatch.setattr(audit, "STRETCHES_MAX", 2)
    first, last = everything[-1]["at"], everything[0]["at"]
    middle = everything[len(everything) // 2]["at"]
    times: list[tuple[dict[str, Any], Callable[[dict[str, Any]], bool]]] = [
        ({"since": middle}, lambda e: e["at"] >= middle),
        ({"until": middle}, lambda e: e["at"] < middle),
        ({"since": first, "until": last}, lambda e: first <= e["at"] < last),
        (
            {"since": middle, "identity": "alice"},
            lambda e: e["at"] >= middle and e["identity"] == "alice",
        ),
        (
            {"since": middle, "task_id": "task-0"},
            lambda e: e["at"] >= middle and e["task_id"] == "task-0",
        ),
        ({"until": "1999-01-01"}, lambda e: False),
    ]
    seen = [e for e in everything if who is None or who.grants.allows(e["namespace"], "read")]
    assert seen and (who is None) == (len(seen) == len(everything))
    for filters, fits in [*FILTERS, *times]:
        wanted = [e["seq"] for e in seen if fits(e)]
        for limit in (1, 4, 100):
            found, cursor, calls = list[int](), None, 0
            while True:
                operation = ops.AuditLog(limit=limit, cursor=cursor, **filters)
                page = world(operation) if who is None else world(operation, who)
                assert page["count"] == len(page["entries"]) <= limit
                found += seqs(page)
                cursor, calls = page["cursor"], calls + 1
                if cursor is None:
                    break
                assert calls < 100
            assert found == wanted, (filters, limit)


def test_what_belongs_to_no_namespace_is_shown_only_to_those_who_may_read_all(
    world: World,
) -> None:
    with pytest.raises(errors.Forbidden):
        world(ops.VerifyAudit(), BOB)
    assert [e["operation"] for e in entries(world, outcome="denied")] == ["verify_audit"]
    reader = identity("reader", ("*", "read"))
    assert world(ops.AuditLog(outcome="denied"), reader)["count"] == 1
    every_user = identity("users", ("user", "admin"), ("app", "admin"), ("project", "admin"))
    assert world(ops.AuditLog(outcome="denied"), every_user)["count"] == 0


def test_an_entry_is_there_as_soon_as_its_write_is_answered(world: World) -> None:
    for number in range(20):
        seq = world(ops.AddMemory(f"Fact {number}"))["seq"]
        assert world(ops.AuditLog(limit=1, min_seq=seq))["entries"][0]["seq"] == seq


def test_the_log_is_verified_against_an_earlier_head_while_it_is_written(world: World) -> None:
    furnish(world)
    noted = world(ops.VerifyAudit())
    assert noted["valid"] and noted["entries"] == noted["seq"] == len(entries(world))
    assert noted["head"] == entries(world)[-1]["hash"]
    world(ops.AddMemory("More"))
    assert world(ops.VerifyAudit(expected_seq=noted["seq"], expected_head=noted["head"]))["valid"]
    assert world(ops.VerifyAudit(expected_head=noted["head"].upper()))["valid"]
    other = world(ops.VerifyAudit(expected_seq=noted["seq"], expected_head="0" * 64))
    assert (other["valid"], other["problem_kind"]) == (False, "rewritten")
    far = world(ops.VerifyAudit(expected_seq=10_000))
    assert (far["valid"], far["problem_kind"]) == (False, "truncated")
    nowhere = world(ops.VerifyAudit(expected_head="f" * 64))
    assert nowhere["problem_kind"] == "rewritten"
    assert world(ops.VerifyAudit(expected_seq=0, expected_head="0" * 64))["valid"]
    for bad in ("", "xyz", "0" * 63):
        with pytest.raises(errors.InvalidArgument, match="expected_head"):
            world(ops.VerifyAudit(expected_head=bad))


def test_a_walk_ends_with_its_deadline(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(world)
    monkeypatch.setattr("recollect.orchestrator.storage.journal_walk.STEP_ROWS", 2)
    deadline_ms = world.clock.now_us() // 1000 + 1
    # The clock moves a microsecond at each look: the request comes in time and outlives it.
    world.clock.advance((deadline_ms * 1000 - world.clock.now_us() - 6) / 1e6)
    with pytest.raises(errors.DeadlineExceeded, match="longer timeout"):
        world(ops.VerifyAudit(), deadline_ms=deadline_ms)
