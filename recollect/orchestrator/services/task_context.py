"""All that is known of a task, for whoever goes on with it."""

from __future__ import annotations

import msgspec

from recollect.config.agents import LearningSettings
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.decisions.reading import newest
from recollect.orchestrator.decisions.rows import Decision
from recollect.orchestrator.decisions.rows import record_of as decision_record
from recollect.orchestrator.learning import executions
from recollect.orchestrator.learning.executions import Execution
from recollect.orchestrator.learning.patterns import Pattern
from recollect.orchestrator.learning.patterns import record_of as pattern_record
from recollect.orchestrator.learning.suggesting import Suggesting
from recollect.orchestrator.search.similar import Question, Similar
from recollect.orchestrator.services.learning import LearningService
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working import reading
from recollect.orchestrator.working.reading import goal_record, readable_in, step_record
from recollect.orchestrator.working.rows import Goal, Step, Task
from recollect.orchestrator.working.workflow import Workflow
from recollect.protocol import records
from recollect.protocol.errors import EmbedderUnavailable, NotFound, Overloaded
from recollect.protocol.operations import SearchSimilar, TaskContext

SIMILARITY_MIN: float = next(
    field.default
    for field in msgspec.structs.fields(SearchSimilar)
    if field.name == "similarity_threshold"
)


class Known(msgspec.Struct, frozen=True):
    """What is known of the task itself."""

    task: Task | None
    goal: Goal | None
    steps: list[Step]
    decisions: list[Decision]
    executions: list[Execution]

    @property
    def description(self) -> str | None:
        """What was to be done, if that was ever said."""
        if self.task is not None:
            return self.task.columns.description
        return self.executions[0].row.task_description if self.executions else None


class TaskContextService:
    """Puts together what other services keep."""

    def __init__(
        self,
        storage: Storage,
        similar: Similar,
        learning: LearningService,
        workflow: Workflow,
        validator: Validator,
        settings: LearningSettings,
    ) -> None:
        self._storage = storage
        self._similar = similar
        self._suggesting = Suggesting(similar)
        self._learning = learning
        self._workflow = workflow
        self._validator = validator
        self._settings = settings

    @reads(TaskContext)
    async def task_context(self, call: Call, operation: TaskContext) -> records.TaskContextFetched:
        limit = self._validator.page(operation.limit)
        self._validator.namespace(operation.namespace)
        self._validator.asked("task_id", operation.task_id, "key_chars_max")
        known = await self._storage.read(lambda session: self._known(call, session, operation))
        if known is None:
            raise NotFound(
                f"Nothing is known of a task {operation.task_id!r} in {operation.namespace}.",
                namespace=operation.namespace,
                name=operation.task_id,
            )
        task, own = known.task, known.executions
        answer: records.TaskContextFetched = {
            "status": "success",
            "task_id": operation.task_id,
            "task": None if task is None else reading.task_record(call, task, self._workflow),
            "goal": None if known.goal is None else goal_record(call, known.goal),
            "steps": [step_record(step, operation.task_id) for step in known.steps],
            "decisions": [decision_record(call, decision) for decision in known.decisions],
            "executions": [executions.record_of(one, self._learning.pending) for one in own],
            "similar": [],
            "patterns": [],
        }
        if known.description is None:
            return answer
        asked = known.description[: self._validator.limits.query_chars_max]
        try:
            question = await self._similar.question(call, asked)
        except (EmbedderUnavailable, Overloaded) as error:
            return {**answer, "degraded": f"Nothing was looked for by meaning: {error.message}"}
        similar, fitting = await self._storage.read(
            lambda session: self._like(call, session, operation, question, limit)
        )
        answer["similar"] = self._learning.shown(call, similar)
        self._similar.served(call, [(one.memory, score) for one, score in fitting])
        answer["patterns"] = [pattern_record(one, score) for one, score in fitting]
        return answer

    def _known(self, call: Call, session: Session, operation: TaskContext) -> Known | None:
        """What is known of a task in a namespace; None as well if the caller may not see it."""
        namespace, task_id, limit = operation.namespace, operation.task_id, operation.limit
        task = reading.find_task(call, session, namespace, task_id)
        if not call.grants.allows(namespace, "read"):
            return None
        home = readable_in(call, namespace)
        known = Known(
            task,
            None
            if task is None or task.columns.goal_num is None
            else reading.find_goal(call, session, task.columns.goal_num),
            [] if task is None else reading.last_steps(call, session, task, limit),
            newest(session, call.now_us, home, limit, task_id=task_id),
            executions.of_task(session, namespace, task_id, call.now_us, limit),
        )
        return known if task is not None or known.decisions or known.executions else None

    def _like(
        self,
        call: Call,
        session: Session,
        operation: TaskContext,
        question: Question,
        limit: int,
    ) -> tuple[list[tuple[Execution, float]], list[tuple[Pattern, float]]]:
        namespace = operation.namespace
        similar = self._suggesting.executions(
            call,
            session,
            question,
            limit,
            threshold=SIMILARITY_MIN,
            namespace=namespace,
            only=executions.of_other_tasks(operation.task_id),
        )
        fitting = self._suggesting.patterns(
            call,
            session,
            question,
            limit,
            threshold=self._settings.pattern_similarity,
            namespace=namespace,
        )
        return similar, fitting
