"""The reference agents, run as somebody who reads them would, and what each of them shows."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

from recollect import MemoryClient
from tests.harness.forks import ROOT
from tests.harness.processes import LIGHT, OrchestratorProcess

EXAMPLES = ROOT / "examples"
ENDS_WITHIN_S = 90
CLASSES = {
    "knowledge_base_agent": "KnowledgeBaseAgent",
    "session_memory_agent": "SessionMemoryAgent",
    "context_manager_agent": "ContextManagerAgent",
    "agent_loop": "LearningAgent",
    "langgraph_agent": "NotingAgent",
}


def shown(name: str, *args: str) -> str:
    """What an example prints; it must end well."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("RECOLLECT_")}
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *args],
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        env={**inherited, **LIGHT, "PYTHONPATH": str(ROOT)},
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return ended.stdout


def test_a_knowledge_base_finds_by_meaning_and_notices_contradictions(
    orchestrator: OrchestratorProcess,
) -> None:
    out = shown("knowledge_base_agent", "--endpoint", orchestrator.endpoint)
    assert "answer     The staging cluster is hosted in Frankfurt (from runbook" in out
    assert "answer     Mara leads the platform team" in out
    assert "contradicts: Dublin against Frankfurt" in out
    assert "settled    The staging cluster is hosted in Frankfurt" in out
    assert "undone     1 fact is there again" in out


def test_a_conversation_survives_a_restart_of_agent_and_server() -> None:
    before, after = shown("session_memory_agent").split("the agent and the server were started")
    assert "(the conversation has 0 turns)" in before
    assert "agent  I will remember that, Ines." in before
    assert "(the conversation has 4 turns)" in after
    assert "agent  You are Ines." in after
    assert "my train to Lisbon leaves at 7:40" in after


def test_a_context_is_kept_at_hand_until_something_changes(
    orchestrator: OrchestratorProcess,
) -> None:
    out = shown("context_manager_agent", "--endpoint", orchestrator.endpoint)
    for text in ("goals", "decisions", "refuses amounts below one euro"):
        assert text in out
    assert "asked twice, assembled 1 time" in out
    assert "assembled 2 times; the news is in it: True" in out
    assert "the first one is the same as then: True" in out


def test_an_agent_gets_better_by_what_it_learned(orchestrator: OrchestratorProcess) -> None:
    out = shown("agent_loop", "--endpoint", orchestrator.endpoint)
    assert "First attempt: failure, second: success, third: success" in out
    first, second, third = out.split("Deploy version")[1:4]
    assert "nothing is known of tasks like this one" in first
    assert "'restart at once' failed: column orders.currency does not exist" in second
    assert "it went well before" in third
    assert "fit the next task: 2" in out
    assert "migrate the schema" in out.split("Learned")[1]


def test_a_graph_knows_in_a_new_life_what_it_was_told_before(
    orchestrator: OrchestratorProcess,
) -> None:
    out = shown("langgraph_agent", "--endpoint", orchestrator.endpoint)
    before, after = out.split("(a new agent)")
    assert before.count("agent  Noted.") == 2
    assert "omar   When does my train leave?\nagent  You have not told me." in before
    assert "agent  My train to Lisbon leaves at 7:40" in after
    assert "agent  I am allergic to peanuts" in after


@pytest.mark.parametrize("name", CLASSES)
def test_an_example_can_be_used_as_a_class(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    module = importlib.import_module(name)
    assert CLASSES[name] in vars(module)
    # What it says of itself is what its help says.
    assert f"python examples/{name}.py" in (module.__doc__ or "")


def test_an_agent_of_ones_own_stands_on_such_a_class(
    orchestrator: OrchestratorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    kind = importlib.import_module("knowledge_base_agent").KnowledgeBaseAgent
    with MemoryClient(orchestrator.endpoint, agent_id="mine") as memory:
        agent = kind(memory, "project:own")
        assert agent.ask("what is the port of the gateway?") == "I do not know."
        assert agent.learn("The port of the gateway is 7331", "me") == []
        assert len(agent.learn("The port of the gateway is 7332", "me")) == 1
