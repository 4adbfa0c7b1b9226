"""Settings of what agents work with: operational memory, workflow, context, learning, tiers.

Declared like all others, see settings.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from recollect.config.phases import PHASES

# fmt: off


class OperationalSettings(Struct, frozen=True):
    """What happens right now: events, metrics, active tasks. In Redis if there is one."""

    events_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Events that are kept; the oldest make room."))] = 10_000
    event_bytes_max: Annotated[int, Meta(ge=2, le=16_777_216, description=(
        "Bytes of one event's data, as JSON."))] = 65_536
    metrics_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Metrics that are kept; the one set longest ago makes room."))] = 10_000
    active_tasks_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Active tasks that are kept; the one set longest ago makes room."))] = 10_000
    bytes_max: Annotated[int, Meta(ge=1_048_576, le=1 << 36, description=(
        "Bytes of JSON that all events together may have, and all active tasks likewise; the "
        "oldest make room."))] = 67_108_864
    keys_max: Annotated[int, Meta(ge=1, le=10_000_000, description=(
        "Idempotency keys of events, metrics and active tasks that are remembered, so that a "
        "retry has no second effect; the oldest make room."))] = 100_000


class WorkflowSettings(Struct, frozen=True):
    """How a task goes from phase to phase."""

    phases: Annotated[tuple[str, ...], Meta(description=(
        "A text for each phase: its name, then those that may follow it, such as "
        "`design > implementation, blocked`. A task begins in the first one."))] = PHASES


class ContextSettings(Struct, frozen=True):
    """Assembling what an agent should have in view."""

    tokenizer: Annotated[str, Meta(min_length=1, description=(
        "How tokens are counted: by a vocabulary of tiktoken that is on disk (tiktoken:o200k_base, "
        "tiktoken:cl100k_base), by the tokenizer.json at a path, or by an estimate that is "
        "rather too high; auto takes what tiktoken has on disk, else the estimate."))] = "auto"
    receipts_kept_days: Annotated[float, Meta(gt=0, le=36_500, description=(
        "How long it is known which context was given."))] = 90.0
    receipts_max: Annotated[int, Meta(ge=1, le=100_000_000, description=(
        "Contexts that were given to one identity of which that is known; the oldest make room."
        ))] = 20_000


class LearningSettings(Struct, frozen=True):
    """How patterns are learned from executions, and when one fits."""

    cluster_similarity: Annotated[float, Meta(gt=0, le=1, description=(
        "Nearness of their descriptions from which two executions are of like tasks."))] = 0.45
    pattern_similarity: Annotated[float, Meta(ge=-1, le=1, description=(
        "Nearness from which a pattern fits a task, unless `threshold` says otherwise."))] = 0.4
    examined_max: Annotated[int, Meta(ge=2, le=100_000, description=(
        "Executions that one extraction looks at, the newest first."))] = 1_000
    neighbours_max: Annotated[int, Meta(ge=2, le=1_000, description=(
        "Executions nearest to a new one that it is compared with when it is stored."))] = 100
    llm_wording: Annotated[bool, Meta(description=(
        "Let the chat model of `consolidation.llm_url` word the summary of what `extract_pattern` "
        "learns. What is learned stays the same, and without an answer so do its words."
        ))] = False


class TiersSettings(Struct, frozen=True):
    """When memories move on to the next tier."""

    operational_days: Annotated[float, Meta(gt=0, le=36_500, description=(
        "Days after which a memory of the tier `short` moves on to `medium`."))] = 1.0
    operational_max: Annotated[int, Meta(ge=1, le=100_000_000, description=(
        "Memories of the tier `short` in a namespace; of more, the oldest move on."))] = 10_000
    working_days: Annotated[float, Meta(gt=0, le=36_500, description=(
        "Days after which a memory of the tier `medium` moves on to `long`, summed up with those "
        "that belong to it."))] = 30.0
    group_similarity: Annotated[float, Meta(gt=0, le=1, description=(
        "Similarity in meaning from which on memories belong together, if neither a task nor a "
        "session nor a parent binds them."))] = 0.7
    shrink_max: Annotated[float, Meta(gt=0, le=1, description=(
        "Part of the memories of a namespace by which one migration may make them fewer; what is "
        "left is for the next."))] = 0.9
