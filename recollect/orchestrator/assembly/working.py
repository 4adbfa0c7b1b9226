"""The services for agents at work: what they do, decide, learn and are told to prefer."""

from __future__ import annotations

from recollect.orchestrator.assembly.parts import Parts
from recollect.orchestrator.learning.chat_wording import ChatWording
from recollect.orchestrator.learning.extraction import Extraction
from recollect.orchestrator.learning.lessons import Lessons
from recollect.orchestrator.services.decisions import DecisionService
from recollect.orchestrator.services.goals import GoalService
from recollect.orchestrator.services.learning import LearningService
from recollect.orchestrator.services.longterm import LongtermService
from recollect.orchestrator.services.operational import OperationalService
from recollect.orchestrator.services.patterns import PatternService
from recollect.orchestrator.services.preferences import PreferenceService
from recollect.orchestrator.services.steps import StepService
from recollect.orchestrator.services.task_context import TaskContextService
from recollect.orchestrator.services.tasks import TaskService
from recollect.orchestrator.working.finding import Tasks


def working_services(parts: Parts) -> tuple[object, ...]:
    """Goals, tasks and steps, operational and long-term memory, decisions, learning."""
    storage, typed, validator = parts.storage, parts.typed, parts.validator
    tasks = Tasks(validator)
    return (
        GoalService(storage, typed, parts.workflow, validator),
        TaskService(
            storage,
            typed,
            tasks,
            parts.workflow,
            validator,
            parts.ids,
            parts.counter,
            parts.operational.end_task,
        ),
        StepService(storage, typed, tasks, validator),
        OperationalService(
            storage,
            parts.operational,
            parts.operational_reading,
            typed,
            validator,
            parts.event_ids,
            parts.settings.operational,
        ),
        LongtermService(storage, typed, parts.scoping, validator, parts.accesses),
        DecisionService(storage, typed, parts.similar, validator, parts.accesses),
        PreferenceService(storage, typed, validator, parts.accesses),
        *_learning_services(parts),
    )


def _learning_services(parts: Parts) -> tuple[object, ...]:
    """Executions, patterns, and the context of a task."""
    storage, typed, similar = parts.storage, parts.typed, parts.similar
    validator, chosen = parts.validator, parts.settings.learning
    lessons = Lessons(typed, validator)
    extraction = Extraction(storage, parts.store, similar, lessons, chosen)
    wording = ChatWording(
        chosen.llm_wording, parts.settings.consolidation, parts.clock, parts.draining
    )
    executions = LearningService(
        storage, parts.writes, typed, similar, extraction, lessons, parts.reuse, validator
    )
    return (
        executions,
        PatternService(storage, typed, similar, extraction, lessons, wording, validator, chosen),
        TaskContextService(storage, similar, executions, parts.workflow, validator, chosen),
    )
