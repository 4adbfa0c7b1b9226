"""Examples for the OpenAPI document: arguments that make sense, for every operation.

What a tool shows a model is shown here, too. The rest is put together of values by field name.
"""

from __future__ import annotations

from typing import Any

from recollect.gateway.rest.binding import Binding
from recollect.protocol.operation import Operation, fields_of

ID = "0198f2a3b4c5d6e7"

VALUES: dict[str, Any] = {
    "agent_id": "planner",
    "category": "deploy",
    "choice": "postgres",
    "component": "api",
    "content": "The build runs on Debian 13.",
    "context": "Where should the orders be stored?",
    "decision_id": ID,
    "description": "Move the website to the new host",
    "document_id": ID,
    "errors": [
        {
            "key": "timeout",
            "code": "timeout",
            "message": "No answer in time.",
            "count": 1,
            "age_s": 2.5,
        }
    ],
    "event": {"role": "user", "text": "Which port does the API use?"},
    "execution_summary": "Built with the cached layers; the tests passed.",
    "from_version": 1,
    "goal_id": ID,
    "group_id": ID,
    "holder": "scheduler-1",
    "incident_id": ID,
    "iteration": 1,
    "job": "decay",
    "job_run_id": ID,
    "jobs": [
        {
            "name": "decay",
            "description": "Lets memories fade.",
            "enabled": True,
            "schedule": "17 * * * *",
        }
    ],
    "key": "editor",
    "key_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "key_id": "9f86d081884c",
    "memories": [{"content": "The build runs on Debian 13."}],
    "memory_id": ID,
    "memory_ids": [ID],
    "model": "hashed-256",
    "name": "planner",
    "namespace": "project:website",
    "older_than_days": 90,
    "options": ["postgres", "sqlite"],
    "outcome": "It held through the spring sale.",
    "parameter": "pool_size",
    "parent_id": ID,
    "path": "nightly.backup",
    "pattern": "project:website",
    "pattern_id": ID,
    "persona": "reviewer",
    "phase": "building",
    "prefix": "project:website",
    "progress": {"done": 120, "of": 400},
    "query": "Which system does the build run on?",
    "receipt_id": ID,
    "records": [{"kind": "memory", "id": ID}],
    "relationship_type": "follows",
    "resolution": "The pool was enlarged.",
    "root": "/srv/documents",
    "run_id": ID,
    "run_status": "done",
    "session_id": ID,
    "source": "ci-log",
    "source_id": ID,
    "state": {"tone": "friendly"},
    "state_delta": {"step": 2, "user:language": "en"},
    "status": "active",
    "steps": ["Drain the node", "Upgrade it", "Let it back in"],
    "success": True,
    "target_id": "0198f2a3b4c5d6e8",
    "task_description": "Fix the flaky login test",
    "task_id": "fix-login-test",
    "title": "Orders were slow",
    "token": 7,
    "tool_name": "pytest",
    "trigger": "login test fails",
    "update_payload": {"content": "The build runs on Debian 13.", "tags": ["build"]},
    "user_id": "alice",
    "value": {"name": "vim"},
}
"""A value for every field that some operation needs."""

SPECIAL: dict[str, dict[str, Any]] = {
    "update_metric": {"key": "queue_length", "value": 17},
    "update_task_status": {"status": "in_progress"},
}
"""Where a field of that name means something else."""


def values_of(operation: type[Operation[Any]]) -> dict[str, Any]:
    """Fields of an operation that make a good request of it."""
    for tool in operation.spec.mcp:
        if tool.example:
            return dict(tool.example)
    named = {**VALUES, **SPECIAL.get(operation.spec.name, {})}
    return {field.name: named[field.name] for field in fields_of(operation) if field.required}


def example_of(operation: type[Operation[Any]], binding: Binding) -> Any:
    """The body of such a request."""
    values = values_of(operation)
    whole = operation.spec.http_body
    if whole is not None:
        return values[whole]
    return {name: values[name] for name in binding.body_names if name in values}
