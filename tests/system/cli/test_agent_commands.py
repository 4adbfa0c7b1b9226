"""What agents do, at the command line: context, goals, tasks, decisions, patterns and events."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine

HOME = "project:shop"
WENT = (("Took a backup first.", True), ("Skipped the backup.", False)) * 2


@pytest.fixture(scope="module")
def recollect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line over a shop that was deployed a few times, shared by all tests."""
    folder = tmp_path_factory.mktemp("agents")
    with OrchestratorProcess(folder / "data") as process:
        with process.client(agent_id="deployer") as client:
            goal = client.store_goal("Open the web shop", 0.9, namespace=HOME)["goal_id"]
            client.save_task("Deploy the web shop", "D-1", goal, "deploy", namespace=HOME)
            client.save_step("D-1", 1, "shell", {"cmd": "deploy"}, "done", True, 12, namespace=HOME)
            client.save_step("D-1", 2, "shell", {"cmd": "check"}, "red", False, 8, namespace=HOME)
            for summary, success in WENT:
                client.store_execution("D-1", summary, success, namespace=HOME)
            choices = ["a file", "SQLite"]
            why = ("SQLite", "It is one file", 0.8, goal, "D-1")
            decided = client.log_decision("Which database?", choices, *why, namespace=HOME)
            client.record_outcome(decided["decision_id"], "No order was lost", True)
            client.push_event("deploy", {"version": 3}, namespace=HOME)
            client.push_event("outage", {"disk": "full"}, True, namespace=HOME)
            client.update_metric("orders", 7, namespace=HOME)
        yield CommandLine(folder, process.endpoint)


def test_a_context_is_printed_and_replayed_to_the_letter(recollect: CommandLine) -> None:
    given = recollect("context", "Deploy the web shop", "--tokens", "900", "--task", "D-1")
    assert given.code == 0 and given.out.startswith("Between <data-")
    assert "Deploy the web shop" in given.out and " of 900 tokens" in given.err
    receipt = given.err.split("`recollect replay ")[1].split("`")[0]
    again = recollect("replay", receipt)
    assert (again.code, again.out) == (0, given.out)
    assert "for: Deploy the web shop" in again.err
    pieces = recollect("replay", receipt, "--pieces")
    assert pieces.out.split()[:6] == ["n", "id", "tier", "piece", "trust", "tokens"]
    assert recollect("replay", receipt, "--json").json()["receipt_id"] == receipt


def test_a_context_of_one_tier_for_programs(recollect: CommandLine) -> None:
    answer = recollect("context", "Deploy", "--tier", "operational", "-n", HOME, "--json").json()
    assert {chunk["tier"] for chunk in answer["chunks"]} == {"operational"}
    narrow = recollect("context", "Deploy", "--tokens", "1")
    assert (narrow.code, narrow.out) == (0, "") and "fits" in narrow.err


def test_what_is_asked_wrongly_is_told(recollect: CommandLine) -> None:
    tier = recollect("context", "Deploy", "--tier", "long-term")
    assert tier.code == 1 and "operational, working, longterm, knowledge" in tier.err
    receipt = recollect("replay", "nothing", "--json")
    assert (receipt.code, receipt.json()["error"]["code"]) == (1, "not_found")
    task = recollect("tasks", "show", "D-1")
    assert task.code == 1 and "no task 'D-1' in app:default" in task.err
    assert recollect("decisions", "--with-outcome").code == 2
    assert recollect("patterns", "--find", "x", "--of", "success").code == 2
    kind = recollect("patterns", "--of", "good")
    assert kind.code == 1 and "success, failure, mixed" in kind.err


def test_goals_lead_to_their_tasks_and_these_to_their_steps(recollect: CommandLine) -> None:
    goals = recollect("goals", COLUMNS="80")
    assert goals.code == 0 and "Open the web shop" in goals.out
    end = goals.out.splitlines()[1].split()[0]
    tasks = recollect("tasks", "list", end)
    assert tasks.code == 0 and tasks.out.splitlines()[1].startswith("D-1 ")
    shown = recollect("tasks", "show", "D-1", "-n", HOME, "--steps", "1")
    assert "phase" in shown.out and '{"cmd":"check"}' in shown.out
    assert '{"cmd":"deploy"}' not in shown.out and "1 earlier step;" in shown.err


def test_decisions_are_listed_and_found_by_their_situation(recollect: CommandLine) -> None:
    for options in ((), ("--similar", "Which database now?", "--with-outcome")):
        told = recollect("decisions", *options)
        assert told.code == 0 and told.out.splitlines()[0] == "Which database?"
        assert "→ SQLite  rather than a file" in told.out and "✓ No order was lost" in told.out
    assert recollect("decisions", "--task", "other").out == ""


def test_patterns_are_listed_and_found_for_a_task(recollect: CommandLine) -> None:
    for options in (("--type", "^dep"), ("--find", "Deploy the web shop")):
        told = recollect("patterns", *options)
        assert told.code == 0 and told.out.splitlines()[0] == "Deploy the web shop"
        assert "2 for, 2 against" in told.out
    assert "Nothing" in recollect("patterns", "--type", "bake").err


def test_events_and_how_things_stand(recollect: CommandLine) -> None:
    last = recollect("events", "--count", "1")
    assert last.code == 0 and "outage critical" in last.out and "version" not in last.out
    [event] = recollect("events", "--category", "deploy", "--json").json()["events"]
    assert event["data"] == {"version": 3}
    stands = recollect("snapshot", "-n", HOME)
    for told in ("Open the web shop", "orders", "outage critical"):
        assert told in stands.out
    assert recollect("snapshot", "--json").json()["events"]["kept"] == 2
