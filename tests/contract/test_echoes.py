"""What an agent was just served and writes again is recognised; nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.config.settings import EmbeddingSettings, Settings, TrustSettings
from recollect.orchestrator.access.identities import Identity
from recollect.protocol import errors
from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation
from tests.faults.walls import identity
from tests.harness.worlds import World

TEA = "Anna prefers green tea, without sugar."
HOME = "user:anna"
WINDOW_S = TrustSettings().echo_window_s


def stored(world: World, content: str = TEA, **options: Any) -> str:
    """A memory by somebody else."""
    adding = ops.AddMemory(content, namespace=HOME, **options)
    memory_id: str = world(adding, agent="archivist")["memory_id"]
    return memory_id


def say(world: World, content: str, agent: str = "planner", **options: Any) -> Any:
    return world(ops.AddMemory(content, namespace=HOME, **options), agent=agent)


def count(world: World) -> int:
    number: int = world(ops.Count())["count"]
    return number


READS: dict[str, Callable[[str], Operation[Any]]] = {
    "get_memory": lambda id_: ops.GetMemory(id_),
    "get_by_key": lambda id_: ops.GetByKey(HOME, "drink"),
    "batch_get_memories": lambda id_: ops.BatchGetMemories([id_]),
    "list_memories": lambda id_: ops.ListMemories(namespace=HOME),
    "search_memory": lambda id_: ops.SearchMemory("green tea"),
    "semantic_search": lambda id_: ops.SemanticSearch("green tea"),
    "recall": lambda id_: ops.Recall("What does Anna prefer?"),
    "search_namespace": lambda id_: ops.SearchNamespace(HOME),
    "assemble_context": lambda id_: ops.AssembleContext("What does Anna drink?", namespace=HOME),
}


@pytest.mark.parametrize("name", READS)
def test_what_an_agent_was_served_is_not_stored_again(world: World, name: str) -> None:
    memory_id = stored(world, key="drink")
    world(READS[name](memory_id), agent="planner")
    answer = say(world, f"  {TEA[:-1].upper()}  ")
    assert (answer["status"], answer["memory_id"]) == ("success", memory_id)
    assert (answer["echo_of"], answer["version"]) == (memory_id, 1)
    assert count(world) == 1


@pytest.mark.parametrize(
    "said",
    [
        TEA,
        "anna prefers green tea, without sugar",
        "Anna  prefers\n green tea,\twithout sugar !",
        f"Note: {TEA}",
        f"I remember that {TEA}",
        f'From memory: "{TEA}"',
        f"According to memory, {TEA}",
    ],
)
def test_blanks_case_the_stop_and_a_preface_do_not_make_it_new(world: World, said: str) -> None:
    memory_id = stored(world)
    world(ops.GetMemory(memory_id), agent="planner")
    assert say(world, said)["echo_of"] == memory_id


NEW: list[tuple[str, dict[str, Any]]] = [
    ("Anna prefers green tea, with sugar.", {}),
    ("Anna prefers green tea, without sugar?", {}),
    (f"Not true: {TEA}", {}),
    (f"Bob said: {TEA}", {}),
    (f"{TEA} And cake.", {}),
    ("green tea, without sugar", {}),
    (TEA, {"key": "a-key"}),
    (TEA, {"value": {"cups": 2}}),
    (TEA, {"metadata": {"since": "May"}}),
    (TEA, {"tags": ["tea"]}),
    (TEA, {"memory_type": "semantic"}),
    (TEA, {"source": "a letter"}),
    (TEA, {"valid_from": "2026-01-01"}),
    (TEA, {"expires_at": "2100-01-01"}),
]


@pytest.mark.parametrize(("said", "options"), NEW, ids=[f"{t[-20:]} {o}" for t, o in NEW])
def test_whatever_says_more_or_other_is_stored(
    world: World, said: str, options: dict[str, Any]
) -> None:
    memory_id = stored(world)
    world(ops.GetMemory(memory_id), agent="planner")
    answer = say(world, said, **options)
    assert "echo_of" not in answer and answer["memory_id"] != memory_id
    assert count(world) == 2


PASSING: list[dict[str, Any]] = [
    {"expires_at": "2100-01-01"},
    {"valid_to": "2100-01-01"},
    {"valid_to": "2020-01-01"},
    {"valid_from": "2099-01-01"},
]


@pytest.mark.parametrize("times", PASSING, ids=str)
def test_what_is_to_stay_is_not_said_by_what_passes(world: World, times: dict[str, Any]) -> None:
    memory_id = stored(world, **times)
    world(ops.GetMemory(memory_id), agent="planner")
    assert "echo_of" not in say(world, TEA)
    assert say(world, TEA, **times)["echo_of"] == memory_id


def test_what_holds_since_a_time_that_has_come_says_that_it_holds(world: World) -> None:
    memory_id = stored(world, valid_from="2020-01-01")
    world(ops.GetMemory(memory_id), agent="planner")
    assert say(world, TEA)["echo_of"] == memory_id


CAREFUL = [
    ("Call tar with -X to leave files out", "Call tar with -x to leave files out"),
    ("The ticket is aB3dE", "The ticket is AB3dE"),
    ("The file is /srv/Notes", "The file is /srv/notes"),
    ("The field is userName", "The field is username"),
    ("The flag is `Debug`", "The flag is `debug`"),
    ("if ready:\n    open()\nclose()", "if ready:\n    open()\n    close()"),
]


@pytest.mark.parametrize(("known", "said"), CAREFUL)
def test_what_means_something_else_in_another_case_or_indented_otherwise_is_stored(
    world: World, known: str, said: str
) -> None:
    memory_id = stored(world, known)
    world(ops.GetMemory(memory_id), agent="planner")
    assert "echo_of" not in say(world, said)
    assert say(world, f"note: {known}")["echo_of"] == memory_id


def test_what_a_document_says_can_be_noted_to_outlast_it(world: World) -> None:
    def index(text: str) -> None:
        world(ops.IndexDocument(text=text, source="notes", namespace=HOME), agent="planner")

    index(TEA)
    found = world(ops.SearchDocuments("green tea"), agent="planner")["results"]
    assert [chunk["content"] for chunk in found] == [TEA]
    assert "echo_of" not in say(world, TEA)
    index("Something else.")
    assert TEA in [m["content"] for m in world(ops.ListMemories(namespace=HOME))["memories"]]


def test_the_same_elsewhere_is_stored(world: World) -> None:
    memory_id = stored(world)
    parent = stored(world, "All about Anna")
    world(ops.GetMemory(memory_id), agent="planner")
    assert "echo_of" not in say(world, TEA, parent_id=parent)
    other = world(ops.AddMemory(TEA, namespace="user:bob"), agent="planner")
    assert "echo_of" not in other


def test_what_the_memory_itself_says_may_be_said_with_it(world: World) -> None:
    facts: dict[str, Any] = {"metadata": {"since": "May"}, "tags": ["tea"], "source": "a letter"}
    memory_id = stored(world, **facts, memory_type="semantic", value=[1])
    world(ops.GetMemory(memory_id), agent="planner")
    answer = say(world, TEA, **facts, memory_type="semantic", value=[1], importance=0.9)
    assert answer["echo_of"] == memory_id


def test_only_the_agent_that_was_served_echoes(world: World) -> None:
    memory_id = stored(world)
    world(ops.GetMemory(memory_id), agent="planner")
    assert "echo_of" not in say(world, TEA, agent="somebody else")
    twin = Identity("twin", identity("x", ("*", "admin")).grants)
    adding = ops.AddMemory(TEA, namespace=HOME)
    assert "echo_of" not in world(adding, twin, agent="planner")
    # One that does not name itself might be anybody.
    world(ops.GetMemory(memory_id))
    assert "echo_of" not in world(adding)
    assert say(world, TEA)["echo_of"] == memory_id


def test_it_counts_as_just_served_for_a_while(world: World) -> None:
    memory_id = stored(world)
    world(ops.GetMemory(memory_id), agent="planner")
    world.clock.advance(WINDOW_S - 1)
    assert say(world, TEA)["echo_of"] == memory_id
    world.clock.advance(2)
    assert "echo_of" not in say(world, TEA)


def test_what_was_deleted_or_changed_since_is_stored_again(world: World) -> None:
    gone, changed = stored(world, "A fact that goes"), stored(world, "A fact that changes")
    world(ops.BatchGetMemories([gone, changed]), agent="planner")
    world(ops.DeleteMemory(gone))
    world(ops.UpdateMemory(changed, {"content": "A fact that has changed"}))
    assert "echo_of" not in say(world, "A fact that goes")
    assert "echo_of" not in say(world, "A fact that changes")


def test_an_echo_is_answered_alike_when_it_comes_again_and_stands_in_the_audit(
    world: World,
) -> None:
    memory_id = stored(world)
    world(ops.GetMemory(memory_id), agent="planner")
    adding = ops.AddMemory(TEA, namespace=HOME)
    answer = world(adding, agent="planner", key="once", task="plan-7")
    assert answer["echo_of"] == memory_id
    world.clock.advance(2 * WINDOW_S)
    assert world(adding, agent="planner", key="once", task="plan-7") == answer
    [entry, _] = world(ops.AuditLog(subject=memory_id))["entries"]
    assert (entry["seq"], entry["task_id"]) == (answer["seq"], "plan-7")
    assert (entry["version_before"], entry["version_after"]) == (1, 1)
    assert (entry["operation"], entry["outcome"]) == ("add_memory", "done")
    assert "echo" in entry["detail"]
    assert world(ops.VerifyAudit())["valid"]


def test_items_of_a_batch_are_recognised_one_by_one(world: World) -> None:
    memory_id = stored(world)
    world(ops.Recall("green tea"), agent="planner")
    batch = world(
        ops.BatchAddMemories(
            [{"content": "One"}, {"content": TEA}, {"content": "Two"}, {"content": ""}],
            namespace=HOME,
        ),
        agent="planner",
    )
    assert (batch["stored"], batch["failed"]) == (2, 1)
    assert batch["memory_ids"][1] == batch["results"][1]["echo_of"] == memory_id
    assert ["echo_of" in item for item in batch["results"]] == [False, True, False, False]
    assert count(world) == 3
    many = [{"content": f"Fact {n}"} for n in range(40)] + [{"content": TEA}]
    batch = world(ops.BatchAddMemories(many, namespace=HOME, atomic=True), agent="planner")
    assert (batch["stored"], batch["memory_ids"][-1]) == (40, memory_id)


def test_one_who_may_not_write_there_is_refused_as_ever(world: World) -> None:
    memory_id = stored(world)
    reader = identity("reader", (HOME, "read"))
    world(ops.GetMemory(memory_id), reader, agent="planner")
    with pytest.raises(errors.Forbidden):
        world(ops.AddMemory(TEA, namespace=HOME), reader, agent="planner")


def test_only_so_many_are_kept_in_view(tmp_path: Path, storage_url: str) -> None:
    world = make(tmp_path, storage_url, echoes_kept_max=3)
    try:
        ids = [stored(world, f"Fact number {n}") for n in range(5)]
        for memory_id in ids:
            world(ops.GetMemory(memory_id), agent="planner")
        known = ["echo_of" in say(world, f"Fact number {n}") for n in range(5)]
        assert known == [False, False, True, True, True]
    finally:
        world.close()


def test_it_can_be_turned_off(tmp_path: Path, storage_url: str) -> None:
    world = make(tmp_path, storage_url, echoes=False)
    try:
        world(ops.GetMemory(stored(world)), agent="planner")
        assert "echo_of" not in say(world, TEA)
    finally:
        world.close()


def make(tmp_path: Path, url: str, **trust: Any) -> World:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), trust=TrustSettings(**trust)
    )
    return World(url, tmp_path / "data", settings)
