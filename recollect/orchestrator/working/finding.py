"""Tasks by their name, for callers who may see them and do what the operation does."""

from __future__ import annotations

from recollect.orchestrator.calls import Call
from recollect.orchestrator.said import key_asked
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working.reading import find_task
from recollect.orchestrator.working.rows import Task
from recollect.protocol.errors import NotFound


class Tasks:
    """Finds tasks, or refuses."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    def place(self, namespace: str, task_id: str) -> tuple[str, str]:
        """A namespace and the name of a task in it, as they may be."""
        self._validator.namespace(namespace)
        key_asked(self._validator, "task", "task_id", task_id)
        return namespace, task_id

    def require(self, call: Call, session: Session, namespace: str, task_id: str) -> Task:
        """A living task."""
        task = find_task(call, session, namespace, task_id)
        if task is None:
            raise self.absent(namespace, task_id, "save_task makes it")
        call.require(namespace, task.memory.id)
        return task

    def absent(self, namespace: str, task_id: str, advice: str) -> NotFound:
        """The same for what never was, what is gone and what is not yours to see."""
        return NotFound(
            f"There is no task {task_id!r} in {namespace}: {advice}.",
            namespace=namespace,
            task_id=task_id,
        )
