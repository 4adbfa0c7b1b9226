"""Every declared operation, used once through each client against a real orchestrator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect import MemoryClient
from recollect.protocol import errors
from recollect.protocol.operations import REGISTRY
from tests.harness.clients import KINDS, Recording, client_of
from tests.harness.processes import OrchestratorProcess


@pytest.fixture(params=KINDS)
def client(
    request: pytest.FixtureRequest, orchestrator: OrchestratorProcess
) -> Iterator[Recording]:
    with client_of(request.param, orchestrator.endpoint) as client:
        yield client


def test_every_operation_works_through_the_client(client: Recording, tmp_path: Path) -> None:
    client.set_agent_id("planner")
    session_id = client.create_session("alice", "conversation", {"channel": "cli"})["session_id"]
    client.set_session_id(session_id)
    assert client.ping()["ready"] is True

    tea = client.add_memory(
        "Anna prefers green tea", "semantic", "long", 0.9, {"by": "Anna"}, ["tea"]
    )
    tea_id = tea["memory_id"]
    batch = client.batch_add_memories(
        [
            {"content": "Tea is in the left cupboard", "parent_id": tea_id, "tags": ["kitchen"]},
            {"content": "Coffee is in the right cupboard", "tags": ["kitchen"]},
        ]
    )
    cupboard_id, coffee_id = batch["memory_ids"]

    memory = client.get_memory(tea_id, min_seq=tea["seq"])["memory"]
    assert memory["created_by"] == "planner"
    assert memory["session_id"] == session_id
    fetched = client.batch_get_memories([cupboard_id, coffee_id])["memories"]
    assert [m["id"] for m in fetched] == [cupboard_id, coffee_id]

    assert client.search_memory("cupboard", limit=1)["count"] == 1
    hits = client.search_memory("cupboard", None, 10, tea_id)["results"]
    assert [hit["id"] for hit in hits] == [cupboard_id]
    near = client.semantic_search("Where is the coffee cupboard?", 1, {"tags": "kitchen"})
    assert near["results"][0]["id"] == coffee_id
    recalled = client.recall("Where is the coffee cupboard?", 1, {"tags": "kitchen"}, explain=True)
    assert recalled["results"][0]["id"] == coffee_id
    assert recalled["results"][0]["explanation"]["semantic"] > 0

    assert client.update_memory(tea_id, {"content": "Anna prefers black tea"})["version"] == 2
    assert client.history(tea_id)["count"] == 2
    assert [m["id"] for m in client.get_children(tea_id)["memories"]] == [cupboard_id]
    assert client.list_memories(namespace="app:default")["count"] == 3
    assert client.count(filters={"importance": {"gte": 0.8}})["count"] == 1
    assert client.reinforce_memory(tea_id)["strength"] == pytest.approx(1.0)

    client.add_relationship(coffee_id, tea_id, "alternative_to", 0.5)
    related = client.get_related_memories(tea_id, "alternative_to")["related"]
    assert [(r["memory"]["id"], r["direction"]) for r in related] == [(coffee_id, "in")]
    group_id = client.create_context_group("kitchen", "where things are")["group_id"]
    client.add_to_group(coffee_id, group_id)
    assert client.get_memories_by_group(group_id)["count"] == 1

    assert set(client.delete_memory(tea_id)["deleted_ids"]) == {tea_id, cupboard_id}
    with pytest.raises(errors.NotFound):
        client.get_memory(tea_id)
    assert client.restore(tea_id)["version"] == 4
    assert client.purge(coffee_id)["purged"] == 1

    client.report_errors("planner", [{"code": "timeout", "message": "slow", "count": 2}])
    assert client.recent_errors(source="planner")["errors"][0]["count"] == 2
    assert client.stats()["memories"]["total"] == 1
    assert client.reembed("hashed", "hashed", 64)["state"] == "running"
    backup = client.backup(str(tmp_path / "backup"))
    assert (Path(backup["path"]) / "recollect.db").stat().st_size == backup["bytes"]
    assert client.get_circuit_breaker_status()["state"] == "closed"
    assert client.reset_circuit_breaker()["status"] == "success"

    assert REGISTRY.keys() <= client.called, REGISTRY.keys() - client.called


def test_the_short_names_mean_the_same(client: Recording) -> None:
    memory_id = client.add("a short note")["memory_id"]
    other_id = client.remember("another short note")["memory_id"]
    assert client.get(memory_id)["memory"]["content"] == "a short note"
    assert client.search("short note")["count"] == 2
    assert client.recall("short note", k=1)["count"] == 1
    assert client.update(memory_id, {"content": "a longer note"})["version"] == 2
    assert client.delete(memory_id)["deleted_ids"] == [memory_id]
    assert client.forget(other_id)["deleted_ids"] == [other_id]


BAD_CALLS: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    ("invalid_argument", "add_memory", ("",), {}),
    ("invalid_argument", "add_memory", ("   ",), {}),
    ("invalid_argument", "add_memory", (42,), {}),
    ("limit_exceeded", "add_memory", ("x" * 200_001,), {}),
    ("invalid_argument", "add_memory", ("x",), {"memory_tier": "eternal"}),
    ("invalid_argument", "add_memory", ("x",), {"importance": 1.5}),
    ("invalid_argument", "add_memory", ("x",), {"importance": -0.1}),
    ("invalid_argument", "add_memory", ("x",), {"importance": float("nan")}),
    ("invalid_argument", "add_memory", ("x",), {"metadata": {"a": float("nan")}}),
    ("invalid_argument", "add_memory", ("x",), {"metadata": {"a": float("inf")}}),
    ("invalid_argument", "add_memory", ("x",), {"metadata": {"a": b"bytes"}}),
    ("invalid_argument", "add_memory", ("x",), {"metadata": {"a": object()}}),
    ("invalid_argument", "add_memory", ("x",), {"metadata": {"a": {1, 2}}}),
    ("invalid_argument", "add_memory", ("x",), {"metadata": {1: "a"}}),
    ("invalid_argument", "add_memory", ("x",), {"metadata": "text"}),
    ("invalid_argument", "add_memory", ("nul\x00",), {}),
    ("not_found", "add_memory", ("x",), {"parent_id": "nobody"}),
    ("not_found", "get_memory", ("nobody",), {}),
    ("not_found", "update_memory", ("nobody", {"content": "x"}), {}),
    ("invalid_argument", "update_memory", ("nobody", {}), {}),
    ("invalid_argument", "update_memory", ("nobody", {"colour": "x"}), {}),
    ("not_found", "delete_memory", ("nobody",), {}),
    ("not_found", "get_children", ("nobody",), {}),
    ("invalid_argument", "add_relationship", ("a", "a", "x"), {}),
    ("not_found", "add_relationship", ("a", "b", "x"), {}),
    ("not_found", "add_to_group", ("nobody", "no group"), {}),
    ("not_found", "get_memories_by_group", ("no group",), {}),
    ("limit_exceeded", "batch_add_memories", ([{"content": "x"}] * 10_001,), {}),
    ("invalid_argument", "search_memory", ("",), {}),
    ("invalid_argument", "semantic_search", ("x", 0), {}),
    ("limit_exceeded", "semantic_search", ("x", 1_000_000), {}),
    ("invalid_argument", "semantic_search", ("x", 5, {"colour": "red"}), {}),
    ("invalid_argument", "semantic_search", ("x", 5, {"importance": {"near": 1}}), {}),
    ("invalid_argument", "get_memory", ("x",), {"as_of": "yesterday-ish"}),
    ("invalid_argument", "reinforce_memory", ("x", 0), {}),
    ("invalid_argument", "reinforce_memory", ("x", float("nan")), {}),
]


def deep(levels: int) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for _ in range(levels):
        nested = {"a": nested}
    return nested


def test_bad_input_gets_a_typed_error_and_nothing_is_written(client: Recording) -> None:
    cases = [
        *BAD_CALLS,
        ("limit_exceeded", "add_memory", ("x",), {"metadata": deep(40)}),
        ("limit_exceeded", "add_memory", ("x",), {"metadata": {"a": "x" * 100_000}}),
    ]
    for code, method, args, kwargs in cases:
        with pytest.raises(errors.RecollectError) as caught:
            getattr(client, method)(*args, **kwargs)
        label = f"{method}{str(args)[:60]} {str(kwargs)[:60]}"
        assert caught.value.code == code, f"{label}: {caught.value}"
        assert len(caught.value.message) > 15, label
    assert client.count(include_deleted=True)["count"] == 0
    assert client.add_memory("the line is still good")["status"] == "success"


def test_errors_can_be_returned_instead_of_raised(orchestrator: OrchestratorProcess) -> None:
    with MemoryClient(orchestrator.endpoint, raise_errors=False) as client:
        answer: Any = client.get_memory("nobody")
        assert answer["status"] == "error"
        assert answer["error"]["code"] == "not_found"
