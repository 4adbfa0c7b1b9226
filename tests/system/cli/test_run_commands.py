"""conflicts, consolidate, runs, undo and forget-source, for people and for programs."""

from __future__ import annotations

from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine

HOME = "user:anna"


def fill(orchestrator: OrchestratorProcess) -> None:
    with orchestrator.client(agent_id="planner") as client:
        for text in ("Anna lives in Paris", "Anna lives in Berlin", "The lamp was painted"):
            client.add_memory(text, namespace=HOME, source="a letter")


def test_conflicts_are_shown_settled_and_undone(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    assert "Nothing repeats" in recollect("conflicts", HOME).err
    assert "nothing to settle" in recollect("consolidate", HOME).err
    fill(orchestrator)
    shown = recollect("conflicts", HOME)
    assert shown.code == 0, shown
    for text in ("contradiction", "Berlin against Paris", "Anna lives in Paris"):
        assert text in shown.out
    dry = recollect("consolidate", HOME, "--strategy", "keep_latest", "--dry-run")
    assert "Anna lives in Berlin" in dry.out
    assert "1 memory would be archived" in dry.err
    done = recollect("consolidate", HOME, "-s", "keep_latest")
    assert "1 memory archived" in done.err
    [run] = recollect("runs", "--kind", "consolidate", "-l", "1", "--json").json()["runs"]
    assert f"recollect undo {run['run_id']}" in done.err
    listed = recollect("runs").out
    for text in (run["run_id"], "consolidate", HOME, "done", "1 archived", "cli"):
        assert text in listed
    # The end of an id will do.
    undone = recollect("undo", run["run_id"][-8:])
    assert "1 memory as before, 0 memories removed." in undone.out
    assert "undone" in recollect("runs", "-n", HOME).out
    answer = recollect("undo", run["run_id"], "--json").json()
    assert (answer["restored"], answer["skipped"]) == (1, [])


def test_memories_move_on_and_are_summed_up(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    assert "Nothing is due" in recollect("migrate").err
    with orchestrator.client() as client:
        parent = client.add_memory("The tour", memory_tier="long", namespace=HOME)["memory_id"]
        for city in ("Graz", "Linz", "Wels"):
            client.add_memory(
                f"The tour was in {city}", "general", "medium", parent_id=parent, namespace=HOME
            )
        client.add_memory("The lamp is on", namespace=HOME)
    dry = recollect("migrate", "-n", HOME, "--older-than", "0", "--dry-run")
    for text in ("3 memories: The tour was in", "1 memory  of the moment would be in working"):
        assert text in dry.out, dry
    done = recollect("migrate", "-n", HOME, "--older-than", "0", "--from", "working")
    assert "3 memories  are archived behind a summary" in done.out
    [run] = recollect("runs", "--kind", "migrate", "--json").json()["runs"]
    assert f"recollect undo {run['run_id']}" in done.err
    assert "1 created, 3 summed up" in recollect("runs").out
    assert recollect("undo", run["run_id"]).out.startswith("3 memories as before, 1 memory removed")
    wrong = recollect("migrate", "--from", "attic", "--json")
    assert "operational" in wrong.json()["error"]["message"]


def test_a_source_is_forgotten(recollect: CommandLine, orchestrator: OrchestratorProcess) -> None:
    fill(orchestrator)
    dry = recollect("forget-source", "a letter", "--dry-run")
    assert "3 memories  that it wrote would be deleted" in dry.out
    answer = recollect("forget-source", "planner", "-n", HOME, "--json").json()
    assert answer["forgotten"] == 3
    assert recollect("undo", answer["run_id"]).out.startswith("3 memories as before")


def test_what_cannot_be_done_is_said(recollect: CommandLine) -> None:
    failed = recollect("undo", "no-such-run")
    assert failed.code != 0
    assert "There is no run" in failed.err
    wrong = recollect("consolidate", HOME, "--strategy", "throw_dice")
    assert wrong.code != 0
    assert "keep_latest" in wrong.err
    unset = recollect("consolidate", HOME, "-s", "llm_based", "--json")
    assert unset.code != 0
    assert "consolidation.llm_url" in unset.json()["error"]["message"]
