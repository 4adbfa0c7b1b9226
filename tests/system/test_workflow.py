"""One piece of work from its session to its audit, by two identities over keys of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect import MemoryClient
from recollect.protocol import errors
from tests.harness.processes import ASK_FOR_KEYS, OrchestratorProcess
from tests.system.cli.commands import CommandLine, Result, wait_for

PROJECT = "project:apollo"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[OrchestratorProcess]:
    """An orchestrator that asks for keys."""
    with OrchestratorProcess(tmp_path / "data", env={ASK_FOR_KEYS: "true"}) as process:
        yield process


def recollect(process: OrchestratorProcess, *args: str) -> Result:
    """A command of the operator, on the machine of the orchestrator."""
    command_line = CommandLine(process.data.parent, process.endpoint)
    result = command_line(*args, RECOLLECT_DATA=str(process.data))
    assert result.code == 0, result.err
    return result


def new_key(process: OrchestratorProcess, name: str, *grants: str) -> Path:
    """The key file of a new identity."""
    path = process.data.parent / f"{name}.key"
    given = [part for grant in grants for part in ("--grant", grant)]
    recollect(process, "keys", "new", name, "--out", str(path), *given)
    return path


def operations_of(client: MemoryClient, **filters: Any) -> list[str]:
    """What the audit says was done, the earliest first."""
    entries = client.audit_log(limit=200, **filters)["entries"]
    return [entry["operation"] for entry in reversed(entries)]


def denials(client: MemoryClient) -> set[tuple[str, str | None]]:
    """What was refused to the critic, and where."""
    entries = client.audit_log(identity="critic", outcome="denied")["entries"]
    return {(entry["operation"], entry["namespace"]) for entry in entries}


def test_from_session_to_undo_with_two_identities(guarded: OrchestratorProcess) -> None:
    planner_key = new_key(guarded, "planner", f"{PROJECT}=write", "user:anna=write")
    critic_key = new_key(guarded, "critic", f"{PROJECT}=read")
    with (
        MemoryClient(guarded.endpoint, agent_id="planner-1", key_file=planner_key) as planner,
        MemoryClient(guarded.endpoint, agent_id="critic-1", key_file=critic_key) as critic,
        guarded.client() as operator,
    ):
        assert planner.who_am_i()["identity"] == "planner"

        # A session, and a task within it.
        session_id = planner.create_session("anna", "planning")["session_id"]
        planner.set_session_id(session_id)
        planner.set_task_id("task-7")
        planner.append_event(
            session_id, {"task": "task-7", "goal": "choose a database"}, {"step": 1}
        )

        # Two memories that say the same, one that contradicts a third.
        twins = [
            planner.add_memory(text, "semantic", namespace=PROJECT)["memory_id"]
            for text in (
                "The ingest service keeps its retry queue in Redis.",
                "The ingest service keeps its retry queue in Redis",
            )
        ]
        planner.put(PROJECT, "database", "PostgreSQL 15")
        changed = planner.put(PROJECT, "database", "PostgreSQL 17")
        assert changed["version"] == 2
        planner.append_event(session_id, {"task": "task-7", "done": True}, {"step": 2})
        planner.terminate_session(session_id)

        # Whoever may only read finds it all, and changes none of it.
        assert critic.get(PROJECT, "database")["memory"]["value"] == "PostgreSQL 17"
        assert critic.diff(PROJECT, "database", 1)["changes"]["value"]["before"] == "PostgreSQL 15"
        with pytest.raises(errors.Forbidden):
            critic.put(PROJECT, "database", "SQLite")
        with pytest.raises(errors.NotFound):
            critic.get_session(session_id)

        # The audit knows who did what for which task, and who was refused.
        assert operations_of(planner, task_id="task-7") == [
            "append_event",
            "add_memory",
            "add_memory",
            "put",
            "put",
            "append_event",
            "terminate_session",
        ]
        put = planner.audit_log(operation="put", outcome="done")["entries"][0]
        assert (put["identity"], put["agent"]) == ("planner", "planner-1")
        assert (put["version_before"], put["version_after"]) == (1, 2)
        # A refusal is entered beside its answer, so it may come a moment after it.
        wait_for(lambda: len(denials(operator)) == 2)
        assert denials(operator) == {("put", PROJECT), ("get_session", "user:anna")}
        head = operator.verify_audit()
        assert head["valid"]

        # Consolidation settles the twins; only who may write may ask for it.
        with pytest.raises(errors.Forbidden):
            critic.consolidate(PROJECT, "keep_latest")
        assert critic.find_conflicts(PROJECT)["count"] == 1
        planner.set_task_id(None)
        run_id = planner.consolidate(PROJECT, "keep_latest")["run_id"]
        assert run_id is not None
        found = critic.search_memory("retry queue", namespace=PROJECT)["results"]
        assert [hit["id"] for hit in found] == [twins[1]]
        assert critic.get_run(run_id)["run"]["run_status"] == "done"

        # And undoing it brings everything back, through a crash too.
        guarded.kill()
        guarded.start()
        undone = planner.undo(run_id)
        assert (undone["restored"], undone["skipped"]) == (1, [])
        found = critic.search_memory("retry queue", namespace=PROJECT)["results"]
        assert {hit["id"] for hit in found} == set(twins)
        assert planner.get_run(run_id)["run"]["run_status"] == "undone"

        # Nothing of the log was rewritten meanwhile.
        later = operator.verify_audit(expected_seq=head["seq"], expected_head=head["head"])
        assert later["valid"]
        assert later["seq"] > head["seq"]

    listed = recollect(guarded, "audit", "--json").json()
    assert "undo" in {entry["operation"] for entry in listed["entries"]}


def test_a_revoked_identity_is_out_at_once(guarded: OrchestratorProcess) -> None:
    key = new_key(guarded, "temp-worker", f"{PROJECT}=write")
    with MemoryClient(guarded.endpoint, key_file=key) as worker:
        worker.add_memory("The canary is green", namespace=PROJECT)
        recollect(guarded, "keys", "revoke", "temp-worker")
        with pytest.raises(errors.Unauthenticated):
            worker.count(namespace=PROJECT)
