"""The methods of the clients: the published contract, and nothing declared twice or left out."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

import recollect.client
from recollect.client import AsyncMemoryClient, MemoryClient
from recollect.client.examples import EXAMPLES
from recollect.client.methods import Either, Method, Operations
from recollect.protocol.operation import CALL_OPTIONS, REGISTRY, Operation, result_of
from recollect.protocol.operations import (
    AddMemory,
    GetByKey,
    GetMemory,
    HistoryByKey,
    UpdateByKey,
)

CLIENTS = [MemoryClient, AsyncMemoryClient]

# The published API: every argument that may be given by position, in its order, with its default.
REQUIRED = inspect.Parameter.empty
CONTRACT: dict[str, list[tuple[str, Any]]] = {
    "add_memory": [
        ("content", REQUIRED),
        ("memory_type", "general"),
        ("memory_tier", "short"),
        ("importance", 0.5),
        ("metadata", None),
        ("tags", None),
        ("parent_id", None),
    ],
    "get_memory": [("memory_id", REQUIRED)],
    "search_memory": [
        ("query", REQUIRED),
        ("memory_type", None),
        ("limit", 10),
        ("parent_id", None),
    ],
    "semantic_search": [("query", REQUIRED), ("k", 5), ("filters", None)],
    "update_memory": [("memory_id", REQUIRED), ("update_payload", REQUIRED)],
    "delete_memory": [("memory_id", REQUIRED), ("cascade", True)],
    "get_children": [
        ("parent_id", REQUIRED),
        ("limit", 50),
        ("sort_field", "created_at"),
        ("sort_order", "desc"),
    ],
    "add_relationship": [
        ("source_id", REQUIRED),
        ("target_id", REQUIRED),
        ("relationship_type", REQUIRED),
        ("strength", 1.0),
    ],
    "get_related_memories": [("memory_id", REQUIRED), ("relationship_type", None)],
    "reinforce_memory": [("memory_id", REQUIRED), ("reinforcement_factor", 1.2)],
    "batch_add_memories": [("memories", REQUIRED)],
    "batch_get_memories": [("memory_ids", REQUIRED)],
    "create_context_group": [("name", REQUIRED), ("description", None)],
    "add_to_group": [("memory_id", REQUIRED), ("group_id", REQUIRED)],
    "get_memories_by_group": [("group_id", REQUIRED)],
    "create_session": [
        ("user_id", REQUIRED),
        ("session_type", "conversation"),
        ("session_metadata", None),
    ],
    "push_event": [("category", REQUIRED), ("data", None), ("critical", False)],
    "recent_events": [("count", 50), ("category", None)],
    "update_metric": [("key", REQUIRED), ("value", REQUIRED)],
    "update_task_status": [("task_id", REQUIRED), ("status", REQUIRED), ("summary", "")],
    "save_step": [
        ("task_id", REQUIRED),
        ("iteration", REQUIRED),
        ("tool_name", REQUIRED),
        ("parameters", None),
        ("output", None),
        ("success", True),
        ("duration_ms", 0.0),
    ],
    "recent_summaries": [("limit", 3), ("max_tokens", 2000)],
    "log_decision": [
        ("context", REQUIRED),
        ("options", REQUIRED),
        ("choice", REQUIRED),
        ("reasoning", ""),
        ("confidence", 0.5),
        ("goal_id", None),
        ("task_id", None),
    ],
    "store_execution": [
        ("task_id", REQUIRED),
        ("execution_summary", REQUIRED),
        ("success", REQUIRED),
        ("error_patterns", None),
        ("auto_extract_patterns", True),
    ],
    "search_similar": [
        ("task_description", REQUIRED),
        ("top_k", 5),
        ("similarity_threshold", 0.7),
        ("success_only", False),
    ],
    "search_patterns": [("task_type", None), ("pattern_type", None), ("limit", 5)],
    "find_pattern": [("trigger", REQUIRED)],
    "pattern_feedback": [("pattern_id", REQUIRED), ("success", REQUIRED)],
    "task_context": [("task_id", REQUIRED)],
    "assemble_context": [
        ("task_description", REQUIRED),
        ("max_tokens", 4000),
        ("tiers", ["operational", "working", "longterm", "knowledge"]),
    ],
    "replay_context": [("receipt_id", REQUIRED)],
}

SHORT_NAMES = {
    "add": "add_memory",
    "remember": "add_memory",
    "search": "search_memory",
    "get": "get_memory",
    "update": "update_memory",
    "delete": "delete_memory",
    "forget": "delete_memory",
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", CONTRACT)
def test_signatures_are_the_published_ones(client: type, name: str) -> None:
    parameters = list(inspect.signature(getattr(client, name)).parameters.values())[1:]
    positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    assert [(p.name, p.default) for p in positional] == CONTRACT[name]
    assert {p.name for p in parameters} >= CALL_OPTIONS


@pytest.mark.parametrize("client", CLIENTS)
def test_every_operation_is_a_method_of_both_clients(client: type) -> None:
    methods = {
        name: attribute.operation
        for name, attribute in vars(Operations).items()
        if isinstance(attribute, Method | Either) and name not in SHORT_NAMES
    }
    assert methods == REGISTRY
    for name in methods:
        assert getattr(client, name).__name__ == name


@pytest.mark.parametrize(("short", "name"), SHORT_NAMES.items())
def test_short_names_mean_the_same(short: str, name: str) -> None:
    assert vars(Operations)[short].operation is vars(Operations)[name].operation


def test_a_namespace_as_first_argument_means_by_key() -> None:
    calls: list[Any] = []

    class Recorder(MemoryClient):
        def call(self, operation: Any, /) -> Any:
            calls.append(operation)

    with Recorder() as client:
        client.get("0199")
        client.get("user:alice", "editor", 2)
        client.history(namespace="user:alice", key="editor")
        client.update("user:alice", "editor", "vim", expected_version=3)
    assert calls == [
        GetMemory("0199"),
        GetByKey("user:alice", "editor", 2),
        HistoryByKey("user:alice", "editor"),
        UpdateByKey("user:alice", "editor", "vim", expected_version=3),
    ]


def test_a_method_documents_itself_and_its_arguments() -> None:
    with MemoryClient() as client:
        doc = inspect.getdoc(client.add_memory)
        assert doc is not None
        assert doc.startswith("Store one memory and make it searchable.")
        assert "content: What to remember." in doc
        signature = inspect.signature(client.add_memory)
    assert signature.parameters["content"].annotation is str
    assert signature.return_annotation.__name__ == "MemoryAdded"


def test_methods_make_their_operation_and_go_through_the_one_door() -> None:
    calls: list[Any] = []

    class Recorder(MemoryClient):
        def call(self, operation: Any, /) -> Any:
            calls.append(operation)

    with Recorder() as client:
        client.add_memory("text", "semantic", "long", 0.9, {"a": 1}, ["t"], "p", namespace="app:x")
        client.forget("m", False)
    added, deleted = calls
    assert added == AddMemory(
        "text",
        memory_type="semantic",
        memory_tier="long",
        importance=0.9,
        metadata={"a": 1},
        tags=["t"],
        parent_id="p",
        namespace="app:x",
    )
    assert (deleted.memory_id, deleted.cascade) == ("m", False)


def test_a_subclass_can_extend_a_method_by_super() -> None:
    calls: list[Any] = []

    class Loud(MemoryClient):
        def call(self, operation: Any, /) -> Any:
            calls.append(operation.content)

        def add_memory(self, content: str, **options: Any) -> Any:  # type: ignore[override]
            return super().add_memory(content.upper(), **options)

    with Loud() as client:
        client.add_memory("a")
        client.add_memory("b")
    assert calls == ["A", "B"]


@pytest.mark.parametrize("arguments", [{}, {"content": "x", "colour": "red"}])
def test_wrong_arguments_are_a_type_error_as_with_any_function(arguments: dict[str, Any]) -> None:
    with MemoryClient() as client, pytest.raises(TypeError):
        client.add_memory(**arguments)


def test_all_names_what_the_package_exports() -> None:
    tree = ast.parse(Path(recollect.client.__file__).read_text())
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(recollect.client.__all__)
    assert all(hasattr(recollect.client, name) for name in recollect.client.__all__)


class Told(Exception):
    """The operation that a call came to."""

    def __init__(self, operation: Operation[Any]) -> None:
        super().__init__()
        self.operation = operation


class Listener(Operations):
    """Takes calls as a client does, and carries none of them out."""

    def call(self, operation: Operation[Any], /) -> Any:
        raise Told(operation)


# What the examples name without making it.
NAMED = {
    "records": [{"kind": "memory"}],
    "jobs": [{"name": "decay", "description": "Fade", "schedule": "0 3 * * *", "enabled": True}],
    "errors": [{"code": "timeout", "message": "No answer."}],
    "token": 7,
    "public_key": "k" * 40,
    "key_hash": "0" * 64,
    "key_id": "0" * 12,
    **{
        f"{name}_id": "0199"
        for name in (
            *("memory", "other", "group", "session", "document", "run", "goal", "decision"),
            *("incident", "pattern", "receipt", "job_run"),
        )
    },
}


@pytest.mark.parametrize("name", REGISTRY)
def test_the_example_of_a_method_is_a_call_that_it_takes(name: str) -> None:
    example = EXAMPLES[name]
    with pytest.raises(Told) as told:
        eval(example, {"__builtins__": {}, "memory": Listener(), **NAMED})
    operation = told.value.operation
    assert operation.spec.name == name
    # As the orchestrator reads it: a value of the wrong type or out of its range is refused.
    msgspec.convert(msgspec.to_builtins(operation), type(operation))
    _, taken, key = example.partition(')["')
    if taken:
        assert key.partition('"')[0] in get_type_hints(result_of(type(operation)))
    assert f"Example:\n    {example}" in (getattr(MemoryClient, name).__doc__ or "")


def test_a_wrong_call_is_told_by_the_name_of_its_method() -> None:
    memory: Any = Listener()
    with pytest.raises(TypeError, match=r"add_memory\(\) has no argument 'tag': .*'tags'"):
        memory.add_memory("x", tag=["y"])
    with pytest.raises(TypeError, match=r"add_memory\(\): Missing required argument 'content'"):
        memory.add_memory()
