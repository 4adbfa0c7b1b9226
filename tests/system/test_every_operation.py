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
from tests.harness.every_call import documents_of, use_everything
from tests.harness.processes import OrchestratorProcess


@pytest.fixture(params=KINDS)
def client(
    request: pytest.FixtureRequest, orchestrator: OrchestratorProcess
) -> Iterator[Recording]:
    with client_of(request.param, orchestrator.endpoint) as client:
        yield client


@pytest.fixture(params=KINDS)
def reading(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Recording]:
    """A client of an orchestrator that may read a folder of documents."""
    env = {"RECOLLECT_DOCUMENTS_ROOTS": str(documents_of(tmp_path))}
    with (
        OrchestratorProcess(tmp_path / "data", env=env) as process,
        client_of(request.param, process.endpoint) as client,
    ):
        yield client


def test_every_operation_works_through_the_client(reading: Recording, tmp_path: Path) -> None:
    use_everything(reading, tmp_path)
    assert REGISTRY.keys() <= reading.called, REGISTRY.keys() - reading.called
    assert reading.get_circuit_breaker_status()["state"] == "closed"
    assert reading.reset_circuit_breaker()["status"] == "success"


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
    ("invalid_argument", "put", ("alice", "k", 1), {}),
    ("invalid_argument", "put", ("user:a", "", 1), {}),
    ("invalid_argument", "put", ("user:a", "k", float("nan")), {}),
    ("invalid_argument", "put", ("user:a", "k", 1, "Not A Type"), {}),
    ("invalid_argument", "put", ("user:a", "k", 1), {"expected_version": -1}),
    ("version_conflict", "put", ("user:a", "k", 1), {"expected_version": 1}),
    ("limit_exceeded", "put", ("user:a", "k" * 513, 1), {}),
    ("not_found", "get_by_key", ("user:a", "k"), {}),
    ("invalid_argument", "get_by_key", ("user:a", "k", 0), {}),
    ("not_found", "update_by_key", ("user:a", "k", 1), {}),
    ("invalid_argument", "update_by_key", ("user:a", "k"), {}),
    ("not_found", "restore_by_key", ("user:a", "k"), {}),
    ("not_found", "diff", ("user:a", "k", 1, 2), {}),
    ("invalid_argument", "search_namespace", ("user:",), {}),
    ("invalid_argument", "list_namespaces", ("alice",), {}),
    ("invalid_argument", "squash_versions", ("user:a", -1), {}),
    ("invalid_argument", "squash_versions", ("user:a", float("nan")), {}),
    ("invalid_argument", "create_session", ("",), {}),
    ("limit_exceeded", "create_session", ("a" * 252,), {}),
    ("invalid_argument", "create_session", ("a",), {"state": {"temp:": 1}}),
    ("not_found", "append_event", ("nobody", 1), {}),
    ("limit_exceeded", "append_event", ("nobody", "x" * 300_000), {}),
    ("invalid_argument", "set_state", ("nobody", {"a": float("inf")}), {}),
    ("invalid_argument", "update_status", ("nobody", "asleep"), {}),
    ("invalid_argument", "list_events", ("nobody", 1, 1 << 63), {}),
    ("not_found", "delete_session", ("nobody",), {}),
    ("invalid_argument", "store_goal", ("x", 1.5), {}),
    ("not_found", "store_goal", ("x",), {"parent_goal_id": "nobody"}),
    ("not_found", "update_goal", ("nobody", "completed"), {}),
    ("invalid_argument", "save_task", ("x",), {"phase": "lunch"}),
    ("not_found", "save_task", ("x",), {"goal_id": "nobody"}),
    ("invalid_argument", "update_task_status", ("t", "asleep"), {}),
    ("not_found", "save_step", ("t", 1, "tool"), {}),
    ("invalid_argument", "save_step", ("t", -1, "tool"), {}),
    ("invalid_argument", "save_preference", ("k", float("nan")), {}),
    ("not_found", "get_persona", ("nobody",), {}),
    ("invalid_argument", "recent_summaries", (3, 0), {}),
    ("invalid_argument", "push_event", ("Not a category",), {"critical": True}),
    ("limit_exceeded", "push_event", ("build", "x" * 70_000, True), {}),
    ("invalid_argument", "update_metric", ("queue", float("inf")), {}),
    ("invalid_argument", "set_active_task", ("",), {}),
    ("invalid_argument", "recent_events", (0,), {}),
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
    assert client.list_sessions()["count"] == 0
    assert client.add_memory("the line is still good")["status"] == "success"


def test_errors_can_be_returned_instead_of_raised(orchestrator: OrchestratorProcess) -> None:
    with MemoryClient(orchestrator.endpoint, raise_errors=False) as client:
        answer: Any = client.get_memory("nobody")
        assert answer["status"] == "error"
        assert answer["error"]["code"] == "not_found"
