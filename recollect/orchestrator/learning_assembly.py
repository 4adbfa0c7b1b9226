"""The services of learning, put together."""

from __future__ import annotations

from collections.abc import Callable

from recollect.config.settings import Settings
from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.learning.chat_wording import ChatWording
from recollect.orchestrator.learning.extraction import Extraction
from recollect.orchestrator.learning.lessons import Lessons
from recollect.orchestrator.learning.reuse import ReuseLog
from recollect.orchestrator.search.similar import Similar
from recollect.orchestrator.services.learning import LearningService
from recollect.orchestrator.services.patterns import PatternService
from recollect.orchestrator.services.task_context import TaskContextService
from recollect.orchestrator.storage.interface import Storage
from recollect.orchestrator.typed_memories import TypedMemories
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working.workflow import Workflow


def learning_services(
    storage: Storage,
    writes: RecheckedWrites,
    typed: TypedMemories,
    similar: Similar,
    reuse: ReuseLog,
    workflow: Workflow,
    validator: Validator,
    settings: Settings,
    clock: Clock,
    draining: Callable[[], bool],
) -> tuple[object, ...]:
    """Executions, patterns, and the context of a task."""
    chosen = settings.learning
    lessons = Lessons(typed, validator)
    extraction = Extraction(storage, typed.store, similar, lessons, chosen)
    wording = ChatWording(chosen.llm_wording, settings.consolidation, clock, draining)
    executions = LearningService(
        storage, writes, typed, similar, extraction, lessons, reuse, validator
    )
    return (
        executions,
        PatternService(storage, typed, similar, extraction, lessons, wording, validator, chosen),
        TaskContextService(storage, similar, executions, workflow, validator, chosen),
    )
