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


class WorkflowSettings(Struct, frozen=True):
    """How a task goes from phase to phase."""

    phases: Annotated[tuple[str, ...], Meta(description=(
        "A text for each phase: its name, then those that may follow it, such as "
        "`design > implementation, blocked`. A task begins in the first one."))] = PHASES


class ContextSettings(Struct, frozen=True):
    """Assembling what an agent should have in view."""

    receipts_kept_days: Annotated[float, Meta(gt=0, le=36_500, description=(
        "How long it is known which context was given."))] = 90.0


class TiersSettings(Struct, frozen=True):
    """When memories move on to the next tier."""

    operational_days: Annotated[float, Meta(gt=0, le=36_500, description=(
        "Days after which a memory of the tier `short` moves on to `medium`."))] = 1.0
    operational_max: Annotated[int, Meta(ge=1, le=100_000_000, description=(
        "Memories of the tier `short` in a namespace; of more, the oldest move on."))] = 10_000
    working_days: Annotated[float, Meta(gt=0, le=36_500, description=(
        "Days after which a memory of the tier `medium` moves on to `long`, summed up with those "
        "that belong to it."))] = 30.0
