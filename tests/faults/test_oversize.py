"""P11: oversize is refused by name of the limit: every field, batch and queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from recollect.config import LimitsSettings
from recollect.protocol.envelope import IDEMPOTENCY_KEY_CHARS_MAX, NAME_CHARS_MAX
from recollect.protocol.operation import Operation, fields_of
from recollect.protocol.operations import REGISTRY
from recollect.protocol.reference import description
from tests.faults import wire
from tests.faults.ledger import Trial
from tests.faults.polling import wait_for
from tests.faults.tools import database
from tests.harness.processes import OrchestratorProcess

NAMESPACE = "temp:oversize"

# Small, so that twice as much is quickly made.
LIMITS: dict[str, int] = {
    "content_chars_max": 1_000,
    "metadata_bytes_max": 1_000,
    "value_bytes_max": 1_000,
    "depth_max": 4,
    "tags_max": 4,
    "tag_chars_max": 16,
    "key_chars_max": 30,
    "namespace_chars_max": 40,
    "batch_items_max": 1_000,
    "page_items_max": 1_000,
    "payload_bytes_max": 200_000,
    "query_chars_max": 100,
    "tree_nodes_max": 10,
    "walk_depth_max": 3,
    "relationship_results_max": 1_000,
    "decision_options_max": 4,
    "error_patterns_max": 4,
    "procedure_steps_max": 4,
    "item_chars_max": 50,
}


EVENT_BYTES_MAX = 500


class Target:
    """A running orchestrator with small limits, and what the cases refer to."""

    def __init__(self, process: OrchestratorProcess) -> None:
        self.process = process
        self.line = wire.Wire(process.endpoint)
        self.memory_id = self.add("a memory to refer to")
        self.other_id = self.add("another one")
        self.session_id: str = self.line.ask("create_session", {"user_id": "u"})["session_id"]
        self.goal_id: str = self.line.ask("store_goal", {"description": "x"})["goal_id"]
        assert self.line.ask("save_task", {"description": "x", "task_id": "t"})["created"]
        self.group_id: str = self.line.ask("create_context_group", {"name": "group"})["group_id"]

    def add(self, content: str, **fields: Any) -> str:
        answer = self.line.ask("add_memory", {"content": content, **fields})
        assert answer["status"] == "success", answer
        return str(answer["memory_id"])

    def seq(self) -> int:
        return int(self.line.ask("ping")["seq"])


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    env = {f"RECOLLECT_LIMITS_{name.upper()}": str(size) for name, size in LIMITS.items()}
    env["RECOLLECT_OPERATIONAL_EVENT_BYTES_MAX"] = str(EVENT_BYTES_MAX)
    data = tmp_path_factory.mktemp("oversize") / "data"
    with OrchestratorProcess(data, env=env) as process:
        target = Target(process)
        yield target
        target.line.close()


Request = tuple[str, dict[str, Any]]
Case = Callable[[Target, int], Request]


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


def add(**fields: Any) -> Request:
    return "add_memory", {"content": "oversize in another field", "namespace": NAMESPACE, **fields}


def update(target: Target, **fields: Any) -> Request:
    return "update_memory", {"memory_id": target.memory_id, "update_payload": fields}


def payload(target: Target, size: int) -> Request:
    """A request whose frame has this many bytes, give or take a byte of its headers."""
    body = {"memory_id": "x" * size}
    while (beyond := len(wire.request(1, "get_memory", body)) - size) > 0:
        body = {"memory_id": body["memory_id"][beyond:]}
    return "get_memory", body


def put(target: Target, **fields: Any) -> Request:
    return "put", {"namespace": NAMESPACE, "key": "k", "value": 1, **fields}


def decide(**fields: Any) -> Request:
    body = {"context": "x", "options": [], "choice": "c", "namespace": NAMESPACE, **fields}
    return "log_decision", body


def tried(**fields: Any) -> Request:
    body = {"task_id": "t", "execution_summary": "s", "success": True, "task_description": "d"}
    return "store_execution", {**body, "namespace": NAMESPACE, **fields}


def store(what: str, **fields: Any) -> Request:
    return f"store_{what}", {"namespace": NAMESPACE, **fields}


def change(**fields: Any) -> Request:
    body = {"component": "c", "parameter": "p", "namespace": NAMESPACE, **fields}
    return "record_config_change", body


def push(**fields: Any) -> Request:
    return "push_event", {"category": "oversize", "namespace": NAMESPACE, **fields}


def task(**fields: Any) -> Request:
    body = {"description": "x", "task_id": "oversize", "namespace": NAMESPACE, **fields}
    return "save_task", body


def of_task(operation: str, **fields: Any) -> Request:
    """A request about the task that the target has."""
    return operation, {"task_id": "t", **fields}


def step(**fields: Any) -> Request:
    return of_task("save_step", iteration=1, tool_name="x", **fields)


def tree(target: Target, size: int) -> Request:
    """The deletion of a tree of this many memories."""
    root = target.add("root", namespace=NAMESPACE)
    for number in range(size - 1):
        target.add(f"leaf {number}", parent_id=root, namespace=NAMESPACE)
    return "delete_memory", {"memory_id": root, "cascade": True}


# For each limit, every field that it bounds, filled to a given size.
CASES: dict[str, list[Case]] = {
    "content_chars_max": [
        lambda t, n: add(content="x" * n),
        lambda t, n: update(t, content="x" * n),
        lambda t, n: put(t, content="x" * n),
        lambda t, n: ("store_goal", {"description": "x" * n}),
        lambda t, n: ("update_goal", {"goal_id": t.goal_id, "description": "x" * n}),
        lambda t, n: task(description="x" * n),
        lambda t, n: of_task("update_task_status", status="completed", summary="x" * n),
        lambda t, n: of_task("set_task_phase", phase="blocked", reason="x" * n),
        # With the words around it, the text of a decision is as long as is given.
        lambda t, n: decide(context="x" * (n - len("Decision: \nChosen: c"))),
        lambda t, n: decide(reasoning="x" * (n - len("Decision: x\nChosen: c\nBecause: "))),
        lambda t, n: store("incident", title="x" * (n - len("Incident (medium): "))),
        lambda t, n: store("knowledge", title="x", content="x" * (n - len("x\n"))),
        lambda t, n: tried(execution_summary="x" * (n - len("d\n\nOutcome: it went well.\n"))),
        lambda t, n: tried(task_description="x" * (n - len("\n\nOutcome: it went well.\ns"))),
    ],
    "metadata_bytes_max": [
        lambda t, n: add(metadata={"k": "x" * (n - 8)}),
        lambda t, n: update(t, metadata={"k": "x" * (n - 8)}),
        lambda t, n: ("store_goal", {"description": "x", "metadata": {"k": "x" * (n - 8)}}),
        lambda t, n: task(metadata={"k": "x" * (n - 8)}),
        lambda t, n: put(t, metadata={"k": "x" * (n - 8)}),
        lambda t, n: update(t, metadata_patch={"k": "x" * (n - 8)}),
        lambda t, n: ("create_session", {"user_id": "u", "session_metadata": {"k": "x" * (n - 8)}}),
        lambda t, n: (
            "report_errors",
            {
                "source": "s",
                "errors": [{"code": "c", "message": "m", "context": {"k": "x" * (n - 8)}}],
            },
        ),
    ],
    "value_bytes_max": [
        lambda t, n: add(value="x" * (n - 2)),
        lambda t, n: update(t, value="x" * (n - 2)),
        lambda t, n: put(t, value="x" * (n - 2)),
        lambda t, n: (
            "update_by_key",
            {"namespace": NAMESPACE, "key": "k", "value": "x" * (n - 2)},
        ),
        lambda t, n: step(parameters={"k": "x" * (n - 8)}),
        lambda t, n: ("save_preference", {"key": "k", "value": "x" * (n - 2)}),
        lambda t, n: ("save_agent_state", {"agent_id": "a", "state": {"k": "x" * (n - 8)}}),
        lambda t, n: ("save_persona", {"persona": "p", "state": {"k": "x" * (n - 8)}}),
        lambda t, n: change(old_value="x" * (n - 2)),
        lambda t, n: change(new_value="x" * (n - 2)),
    ],
    "depth_max": [
        lambda t, n: add(metadata={"a": nested(n - 1)}),
        lambda t, n: add(value=nested(n)),
        lambda t, n: update(t, metadata={"a": nested(n - 1)}),
        lambda t, n: put(t, value=nested(n)),
        lambda t, n: change(new_value=nested(n)),
        lambda t, n: step(output=nested(n)),
        lambda t, n: ("save_preference", {"key": "k", "value": nested(n)}),
        lambda t, n: push(data=nested(n)),
        lambda t, n: ("set_active_task", {"task_id": "t", "state": nested(n)}),
        lambda t, n: ("append_event", {"session_id": t.session_id, "event": nested(n)}),
        lambda t, n: ("set_state", {"session_id": t.session_id, "state_delta": {"a": nested(n)}}),
    ],
    "tags_max": [
        lambda t, n: add(tags=[f"t{i}" for i in range(n)]),
        lambda t, n: update(t, tags=[f"t{i}" for i in range(n)]),
    ],
    "tag_chars_max": [lambda t, n: add(tags=["x" * n]), lambda t, n: update(t, tags=["x" * n])],
    "key_chars_max": [
        lambda t, n: add(key=f"{t.seq()}".ljust(n, "x")),
        lambda t, n: add(source="x" * n),
        lambda t, n: put(t, key="x" * n),
        lambda t, n: put(t, source="x" * n),
        lambda t, n: ("set_state", {"session_id": t.session_id, "state_delta": {"x" * n: 1}}),
        lambda t, n: update(t, source="x" * n),
        lambda t, n: ("create_context_group", {"name": "x" * n}),
        lambda t, n: task(task_id="x" * (n - len("task/"))),
        lambda t, n: task(assigned_to="x" * n),
        lambda t, n: of_task("save_step", iteration=1, tool_name="x" * n),
        lambda t, n: ("save_preference", {"key": "x" * (n - len("preference/")), "value": 1}),
        lambda t, n: ("save_agent_state", {"agent_id": "x" * (n - 12), "state": {}}),
        lambda t, n: ("save_persona", {"persona": "x" * (n - len("persona/")), "state": {}}),
        lambda t, n: ("get_task", {"task_id": "x" * (n - len("task/")), "steps": 5}),
        lambda t, n: ("list_preferences", {"prefix": "x" * n, "limit": 5}),
        lambda t, n: decide(task_id="x" * n),
        lambda t, n: ("assemble_context", {"task_description": "x", "task_id": "x" * n}),
        lambda t, n: ("replay_context", {"receipt_id": "x" * n}),
        lambda t, n: change(component="x" * n),
        lambda t, n: change(parameter="x" * n),
        lambda t, n: ("config_history", {"component": "x" * n, "limit": 5}),
        lambda t, n: ("list_decisions", {"task_id": "x" * n, "limit": 5}),
        lambda t, n: tried(task_id="x" * (n - len("task/"))),
        lambda t, n: ("search_patterns", {"task_type": "x" * n}),
        lambda t, n: ("search_similar", {"task_description": "d", "task_type": "x" * n}),
        lambda t, n: store("procedure", name="x" * (n - len("procedure/")), steps=["s"]),
        lambda t, n: store("knowledge", title="x" * (n - len("knowledge/")), content="c"),
        lambda t, n: ("update_metric", {"key": "x" * n, "value": 1}),
        lambda t, n: ("update_metric", {"key": "k", "value": "x" * n}),
        lambda t, n: ("get_metrics", {"keys": ["x" * n]}),
        lambda t, n: ("set_active_task", {"task_id": "x" * n}),
        lambda t, n: ("recent_events", {"count": 1, "category": "x" * n}),
        lambda t, n: ("create_session", {"user_id": "x" * n}),
        lambda t, n: ("create_session", {"user_id": "u", "session_type": "x" * n}),
        lambda t, n: (
            "add_relationship",
            {"source_id": t.memory_id, "target_id": t.other_id, "relationship_type": "x" * n},
        ),
    ],
    "namespace_chars_max": [
        lambda t, n: add(namespace="temp:".ljust(n, "x")),
        lambda t, n: ("list_memories", {"limit": 5, "namespace": "temp:".ljust(n, "x")}),
        lambda t, n: ("count", {"namespace": "temp:".ljust(n, "x")}),
        lambda t, n: ("search_memory", {"query": "q", "namespace": "temp:".ljust(n, "x")}),
        lambda t, n: ("semantic_search", {"query": "q", "namespace": "temp:".ljust(n, "x")}),
        lambda t, n: ("create_context_group", {"name": "g", "namespace": "temp:".ljust(n, "x")}),
        lambda t, n: put(t, namespace="temp:".ljust(n, "x")),
        lambda t, n: ("search_namespace", {"limit": 5, "prefix": "temp:".ljust(n, "x")}),
        lambda t, n: ("list_namespaces", {"limit": 5, "prefix": "temp:".ljust(n, "x")}),
        lambda t, n: ("find_conflicts", {"limit": 5, "namespace": "temp:".ljust(n, "x")}),
        lambda t, n: ("list_documents", {"limit": 5, "namespace": "temp:".ljust(n, "x")}),
        lambda t, n: ("audit_log", {"limit": 5, "namespace": "temp:".ljust(n, "x")}),
        lambda t, n: push(namespace="temp:".ljust(n, "x")),
        lambda t, n: ("system_snapshot", {"namespace": "temp:".ljust(n, "x")}),
        lambda t, n: ("analytics", {"namespace": "temp:".ljust(n, "x")}),
        lambda t, n: ("migrate", {"limit": 5, "namespace": "temp:".ljust(n, "x")}),
        lambda t, n: ("fade_memories", {"limit": 5, "namespace": "temp:".ljust(n, "x")}),
    ],
    "page_items_max": [
        lambda t, n: ("list_memories", {"limit": n}),
        lambda t, n: ("search_memory", {"query": "memory", "limit": n}),
        lambda t, n: ("semantic_search", {"query": "memory", "k": n}),
        lambda t, n: ("history", {"memory_id": t.memory_id, "limit": n}),
        lambda t, n: ("get_children", {"parent_id": t.memory_id, "limit": n}),
        lambda t, n: ("get_memories_by_group", {"group_id": t.group_id, "limit": n}),
        lambda t, n: ("recent_errors", {"limit": n}),
        lambda t, n: ("search_namespace", {"prefix": NAMESPACE, "limit": n}),
        lambda t, n: ("list_namespaces", {"limit": n}),
        lambda t, n: ("history_by_key", {"namespace": NAMESPACE, "key": "k", "limit": n}),
        lambda t, n: ("list_sessions", {"limit": n}),
        lambda t, n: ("list_active_sessions", {"limit": n}),
        lambda t, n: ("list_events", {"session_id": t.session_id, "limit": n}),
        lambda t, n: ("get_session", {"session_id": t.session_id, "events": n}),
        lambda t, n: ("list_documents", {"limit": n}),
        lambda t, n: ("search_documents", {"query": "memory", "k": n}),
        lambda t, n: ("audit_log", {"limit": n}),
        lambda t, n: ("recent_events", {"count": n}),
        lambda t, n: ("get_metrics", {"keys": ["k"] * n}),
        lambda t, n: ("active_tasks", {"limit": n}),
        lambda t, n: ("system_snapshot", {"events": n}),
        lambda t, n: ("list_runs", {"limit": n}),
        lambda t, n: ("list_decisions", {"limit": n}),
        lambda t, n: ("active_goals", {"limit": n}),
        lambda t, n: ("tasks_for_goal", {"goal_id": t.goal_id, "limit": n}),
        lambda t, n: of_task("get_task", steps=n),
        lambda t, n: of_task("list_steps", limit=n),
        lambda t, n: ("list_preferences", {"limit": n}),
        lambda t, n: ("recent_summaries", {"limit": n}),
        lambda t, n: ("find_similar_decisions", {"context": "c", "k": n}),
        lambda t, n: ("search_similar", {"task_description": "d", "top_k": n}),
        lambda t, n: ("search_patterns", {"limit": n}),
        lambda t, n: ("task_context", {"task_id": "t", "limit": n}),
        lambda t, n: ("config_history", {"component": "c", "limit": n}),
        lambda t, n: ("find_conflicts", {"namespace": NAMESPACE, "limit": n}),
    ],
    "payload_bytes_max": [payload],
    "query_chars_max": [
        lambda t, n: ("search_memory", {"query": "x" * n}),
        lambda t, n: ("semantic_search", {"query": "x" * n}),
        lambda t, n: ("search_documents", {"query": "x" * n}),
        lambda t, n: ("find_similar_decisions", {"context": "x" * n}),
        lambda t, n: ("assemble_context", {"task_description": "x" * n}),
        lambda t, n: ("search_similar", {"task_description": "x" * n}),
        lambda t, n: ("find_pattern", {"trigger": "x" * n}),
    ],
    "tree_nodes_max": [tree],
    "walk_depth_max": [
        lambda t, n: ("get_related_memories", {"memory_id": t.memory_id, "depth": n, "limit": 5})
    ],
    "relationship_results_max": [
        lambda t, n: ("get_related_memories", {"memory_id": t.memory_id, "limit": n})
    ],
    "decision_options_max": [lambda t, n: decide(options=["o"] * n)],
    "procedure_steps_max": [lambda t, n: store("procedure", name="p", steps=["s"] * n)],
    "error_patterns_max": [lambda t, n: tried(error_patterns=["e"] * n)],
    "item_chars_max": [
        lambda t, n: decide(options=["o" * n]),
        lambda t, n: tried(error_patterns=["e" * n]),
        lambda t, n: store("procedure", name="p", steps=["s" * n]),
    ],
    # Last, for it leaves a thousand memories behind, which the pages above would show.
    "batch_items_max": [
        lambda t, n: ("batch_add_memories", {"memories": [{"content": "x"}] * n}),
        lambda t, n: ("batch_get_memories", {"memory_ids": ["none"] * n}),
        lambda t, n: ("extract_pattern", {"execution_ids": ["none"] * n, "dry_run": True}),
    ],
}


def test_every_limit_of_the_configuration_is_tried() -> None:
    declared = set(LimitsSettings.__struct_fields__)
    assert declared == CASES.keys() == LIMITS.keys()


@pytest.mark.parametrize("name", CASES)
def test_twice_a_limit_is_refused_by_its_name_and_changes_nothing(
    name: str, target: Target
) -> None:
    with Trial("P11") as trial:
        for number, case in enumerate(CASES[name]):
            what = f"{name}, case {number}"
            # At the limit it is accepted, so it is the size alone that is refused beyond it.
            op, body = case(target, LIMITS[name])
            answer = target.line.ask(op, body)
            told = wire.code_of(answer)
            trial.check(
                told in ("success", "partial", "not_found"), f"{what}: at the limit {answer}"
            )
            for size in (LIMITS[name] + 1, 2 * LIMITS[name]):
                trial.case()
                op, body = case(target, size)
                before = target.seq()
                answer = target.line.ask(op, body)
                check_refused(trial, f"{what}: {size}", answer, f"limits.{name}")
                trial.check(target.seq() == before, f"{what}: {size} was written")


def test_an_event_beyond_its_own_limit_is_refused(target: Target) -> None:
    def state(text: str) -> Request:
        return "set_active_task", {"task_id": "t", "state": {"a": text}}

    makes: list[tuple[int, Callable[[str], Request]]] = [
        (2, lambda text: push(data=text)),
        (2, lambda text: push(data=text, critical=True)),
        (8, state),
    ]
    with Trial("P11") as trial:
        for around, make in makes:
            room = EVENT_BYTES_MAX - around
            answer = target.line.ask(*make("x" * room))
            trial.check(wire.code_of(answer) == "success", f"at the limit {answer}")
            before = target.seq()
            for text in ("x" * (room + 1), "x" * (2 * EVENT_BYTES_MAX - around), "é" * room):
                trial.case()
                answer = target.line.ask(*make(text))
                check_refused(trial, f"{text[:1]}", answer, "operational.event_bytes_max")
            trial.check(target.seq() == before, "something was written")


def check_refused(trial: Trial, what: str, answer: dict[str, Any], limit: str) -> None:
    if wire.code_of(answer) != "limit_exceeded":
        trial.violated(f"{what}: was told {answer}")
        return
    error = answer["error"]
    trial.check(error["details"].get("limit") == limit, f"{what}: the limit is named {error}")
    named = limit in error["message"] or error["details"].get("field", "") in error["message"]
    trial.check(named, f"{what}: the message is {error['message']!r}")


def test_an_item_of_a_batch_is_refused_by_the_same_limits(target: Target) -> None:
    items: dict[str, dict[str, Any]] = {
        "content_chars_max": {"content": "x" * 2_000},
        "metadata_bytes_max": {"content": "x", "metadata": {"k": "x" * 2_000}},
        "value_bytes_max": {"content": "x", "value": "x" * 2_000},
        "depth_max": {"content": "x", "value": nested(8)},
        "tags_max": {"content": "x", "tags": list("abcdefgh")},
        "tag_chars_max": {"content": "x", "tags": ["x" * 32]},
        "key_chars_max": {"content": "x", "key": "x" * 60},
        "namespace_chars_max": {"content": "x", "namespace": "temp:" + "x" * 80},
    }
    with Trial("P11") as trial:
        answer = target.line.ask("batch_add_memories", {"memories": list(items.values())})
        assert answer["stored"] == 0
        for name, result in zip(items, answer["results"], strict=True):
            trial.case()
            check_refused(trial, f"an item beyond {name}", result, f"limits.{name}")
        before = target.seq()
        for name, item in items.items():
            trial.case()
            good = {"content": "good"}
            body = {"memories": [good, item], "atomic": True}
            answer = target.line.ask("batch_add_memories", body)
            check_refused(trial, f"an atomic batch beyond {name}", answer, f"limits.{name}")
        trial.check(target.seq() == before, "part of a refused batch was written")


ENVELOPE = {
    "key": IDEMPOTENCY_KEY_CHARS_MAX,
    "agent": NAME_CHARS_MAX,
    "session": NAME_CHARS_MAX,
    "trace": NAME_CHARS_MAX,
    "task": NAME_CHARS_MAX,
}


@pytest.mark.parametrize("field", ENVELOPE)
def test_a_name_in_the_envelope_is_bounded(field: str, target: Target) -> None:
    size = ENVELOPE[field]
    with Trial("P11") as trial:
        op, body = add()
        assert target.line.ask(op, body, **{field: "x" * size})["status"] == "success"
        for length in (size + 1, 2 * size):
            trial.case()
            before = target.seq()
            answer = target.line.ask(op, body, **{field: "y" * length})
            details = answer.get("error", {}).get("details", {})
            named = details.get("limit") if field in str(details.get("limit")) else field
            check_refused(trial, f"{field} of {length}", answer, str(named))
            trial.check(target.seq() == before, f"{field} of {length} was written")


def bounded_fields() -> Iterator[tuple[type[Operation[Any]], str, int]]:
    """Every field whose length is bounded by its declaration rather than by the configuration."""
    for operation in REGISTRY.values():
        for field in fields_of(operation):
            bound = _longest(msgspec.inspect.type_info(field.type))
            if bound is not None:
                yield operation, field.name, bound


def _longest(info: msgspec.inspect.Type) -> int | None:
    for part in info.types if isinstance(info, msgspec.inspect.UnionType) else [info]:
        if isinstance(part, msgspec.inspect.StrType | msgspec.inspect.ListType):
            if part.max_length is not None:
                return part.max_length
        elif isinstance(part, msgspec.inspect.Metadata):
            return _longest(part.type)
    return None


def test_a_bound_in_the_declaration_is_refused_by_the_name_of_its_field(target: Target) -> None:
    found = list(bounded_fields())
    assert len(found) >= 6, found
    with Trial("P11") as trial:
        for operation, name, bound in found:
            trial.case()
            required: dict[str, Any] = {
                field.name: "x" for field in fields_of(operation) if field.required
            }
            text: Any = "x" * (2 * bound)
            if name == "errors":
                text = [{"code": "c", "message": "m"}] * (2 * bound)
            elif name == "operations":
                text = ["put"] * (2 * bound)
            before = target.seq()
            answer = target.line.ask(operation.spec.name, {**required, name: text})
            code = wire.code_of(answer)
            what = f"{operation.spec.name}.{name}"
            trial.check(code in ("invalid_argument", "limit_exceeded"), f"{what}: {answer}")
            message = str(answer.get("error", {}).get("message", ""))
            trial.check(
                name in message and str(bound) in message,
                f"{what}: neither field nor bound in {message!r} ({description(operation)})",
            )
            trial.check(target.seq() == before, f"{what} was written")


def test_a_filter_beyond_its_bounds_is_refused(target: Target) -> None:
    deep: dict[str, Any] = {"importance": 1}
    for _ in range(32):
        deep = {"NOT": deep}
    filters = {
        "conditions": {"OR": [{"importance": 1}] * 512},
        "levels": deep,
        "values": {"AND": [{"importance": {"in": list(range(1_000))}}] * 32},
        "tags": {"tags": {"in": ["t"] * 512}},
    }
    with Trial("P11") as trial:
        for name, filter_ in filters.items():
            for op, body in (
                ("list_memories", {}),
                ("count", {}),
                ("search_memory", {"query": "q"}),
                ("semantic_search", {"query": "q"}),
            ):
                trial.case()
                answer = target.line.ask(op, {**body, "filters": filter_})
                told = wire.code_of(answer)
                trial.check(told == "limit_exceeded", f"{op} by many {name}: {answer}")


def test_an_answer_beyond_the_limit_of_a_message_is_refused(target: Target) -> None:
    """The limit of a message bounds replies as well: a client could not take a larger one."""
    with Trial("P11") as trial:
        trial.case()
        for number in range(60):
            target.add("ö" * 900, metadata={"k": "x" * 900}, value="x" * 900, key=f"large {number}")
        answer = target.line.ask("list_memories", {"limit": 60})
        check_refused(trial, "60 large memories", answer, "limits.payload_bytes_max")
        assert target.line.ask("list_memories", {"limit": 5})["status"] == "success"


def test_a_message_far_beyond_the_limit_harms_only_its_sender(target: Target) -> None:
    with Trial("P11") as trial, wire.Wire(target.process.endpoint) as sender:
        trial.case()
        before = target.seq()
        sender.send(wire.request(1, *add(content="x" * 20 * LIMITS["payload_bytes_max"])))
        trial.check(not sender.waiting(0.5), "a message that is not read was answered")
        trial.check(target.seq() == before, "it was written")
        # The line is made anew by ZeroMQ itself.
        sender.send(wire.request(2, "ping"))
        trial.check(sender.receive()[0] == 2, "its sender cannot go on")


@pytest.mark.timeout(60)
def test_a_batch_beyond_the_default_limit_is_refused(orchestrator: OrchestratorProcess) -> None:
    with Trial("P11") as trial, wire.Wire(orchestrator.endpoint) as line:
        for size in (10_001, 20_000):
            trial.case()
            body = {"memories": [{"content": "one of too many"}] * size}
            check_refused(
                trial, f"{size}", line.ask("batch_add_memories", body), "limits.batch_items_max"
            )
        assert line.ask("ping")["seq"] == 0
        body = {"memories": [{"content": f"one of many {n}"} for n in range(10_000)]}
        line.send(wire.request(1, "batch_add_memories", body))
        assert line.receive(within_s=50.0)[1]["stored"] == 10_000


def test_more_requests_in_flight_than_allowed_are_refused(tmp_path: Path) -> None:
    """Each waits for a change that does not come, and so stays in flight until its deadline."""
    room = 8
    env = {"RECOLLECT_NETWORK_IN_FLIGHT_MAX": str(room)}
    with (
        Trial("P11") as trial,
        OrchestratorProcess(tmp_path / "data", env=env) as process,
        wire.Wire(process.endpoint) as line,
    ):
        deadline_ms = wire.in_ms(2.0)
        for number in range(2 * room):
            trial.case()
            body = {"min_seq": 1_000_000}
            line.send(wire.request(number, "count", body, deadline_ms=deadline_ms))
        for _ in range(room):
            refused, answer = line.receive()
            check_overloaded(trial, answer, "network.in_flight_max")
            trial.check(int(str(refused)) >= room, "one that had room was refused")
        for _ in range(room):
            _, answer = line.receive()
            trial.check(wire.code_of(answer) == "not_yet_visible", f"{answer}")
        assert line.ask("ping")["ready"]


def test_more_waiting_writes_than_allowed_are_refused(tmp_path: Path) -> None:
    """The writer is held up from outside, by a lock on the database."""
    room, together = 8, 4
    env = {
        "RECOLLECT_STORAGE_WRITE_QUEUE_MAX": str(room),
        "RECOLLECT_STORAGE_GROUP_COMMIT_MAX": str(together),
    }
    sent = 2 * (room + together)
    with (
        Trial("P11") as trial,
        OrchestratorProcess(tmp_path / "data", env=env) as process,
        wire.Wire(process.endpoint) as line,
    ):
        holder = apsw.Connection(str(process.data / "recollect.db"))
        holder.set_busy_timeout(5_000)
        holder.execute("BEGIN IMMEDIATE")
        try:
            for number in range(sent):
                trial.case()
                line.send(wire.request(number, *add(content=f"waiting {number}")))
            for _ in range(sent - room - together):
                check_overloaded(trial, line.receive()[1], "storage.write_queue_max")
        finally:
            holder.execute("ROLLBACK")
            holder.close()
        told = [line.receive()[1] for _ in range(room + together)]
        stored = sum(answer["status"] == "success" for answer in told)
        for answer in told:
            if answer["status"] != "success":
                check_overloaded(trial, answer, "storage.write_queue_max")
        rows = database.rows(process.data / "recollect.db", "SELECT count(*) FROM memories")
        trial.check(rows == [(stored,)], f"{stored} were acknowledged, {rows} are stored")
        trial.check(stored >= room, f"only {stored} of {room} had room")
        wait_for(
            lambda: line.ask(*add(content="after"))["status"] == "success",
            within_s=10.0,
            what="writing to go on",
        )


def check_overloaded(trial: Trial, answer: dict[str, Any], limit: str) -> None:
    if wire.code_of(answer) != "overloaded":
        trial.violated(f"beyond {limit} it was told {answer}")
        return
    details = answer["error"]["details"]
    trial.check(details.get("limit") == limit, f"the limit is named {details}")
    trial.check(details.get("retry_after_ms", 0) > 0, "it is not told when to come back")
    trial.check(answer["error"]["retryable"], "it is told not to come back")
