"""audit over a real orchestrator, for people and for programs."""

from __future__ import annotations

import apsw

from recollect.orchestrator.storage.copies import DATABASE_NAME
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine


def furnish(orchestrator: OrchestratorProcess) -> str:
    with orchestrator.client(agent_id="planner", task_id="plan-7") as client:
        memory_id = client.add_memory("Anna prefers tea", namespace="user:anna")["memory_id"]
        client.update_memory(memory_id, {"content": "Anna prefers green tea"})
        client.set_task_id(None)
        client.put("project:site", "colour", "blue")
        return memory_id


def test_who_did_what_is_shown_and_can_be_narrowed(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    memory_id = furnish(orchestrator)
    shown = recollect("audit")
    assert shown.code == 0, shown
    for text in ("add_memory", "update_memory", "put", memory_id, "planner", "plan-7", "user:anna"):
        assert text in shown.out
    assert "new → 1" in shown.out and "1 → 2" in shown.out

    def operations(*options: str) -> list[str]:
        answer = recollect("audit", *options, "--json")
        assert answer.code == 0, answer
        return [entry["operation"] for entry in answer.json()["entries"]]

    assert operations() == ["put", "update_memory", "add_memory"]
    assert operations("--limit", "1") == ["put"]
    assert operations("--task", "plan-7") == ["update_memory", "add_memory"]
    assert operations("--namespace", "user:anna") == ["update_memory", "add_memory"]
    assert operations("--subject", memory_id, "-o", "add_memory") == ["add_memory"]
    assert operations("--agent", "nobody") == []
    assert operations("--identity", "local", "--since", "2020-01-01") == operations()
    assert operations("--until", "2020-01-01") == operations("--denied") == []
    nothing = recollect("audit", "--denied")
    assert (nothing.code, nothing.out) == (0, "") and "No entry" in nothing.err


def test_an_untouched_log_is_verified_and_a_changed_one_is_not(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    furnish(orchestrator)
    verified = recollect("audit", "--verify")
    assert verified.code == 0, verified
    assert verified.out.startswith("3 entries fit.")
    end = verified.out.splitlines()[-1]
    recollect("add", "One more")
    again = recollect("audit", "--verify", "--expect", end)
    assert again.code == 0 and "4 entries fit" in again.out, again
    assert recollect("audit", "--verify", "--json").json()["valid"] is True

    refused = recollect("audit", "--verify", "--expect", "12:abc")
    assert refused.code == 2 and "SEQ:HASH" in refused.err
    connection = apsw.Connection(str(orchestrator.data / DATABASE_NAME))
    connection.set_busy_timeout(10_000)
    connection.execute("UPDATE journal SET agent = 'somebody else' WHERE seq = 2")
    connection.close()
    changed = recollect("audit", "--verify")
    assert changed.code == 1 and "entry 2 was changed" in changed.err, changed
    answer = recollect("audit", "--verify", "--json")
    assert answer.code == 1
    assert answer.json()["problem_kind"] == "changed" and answer.json()["problem_seq"] == 2
