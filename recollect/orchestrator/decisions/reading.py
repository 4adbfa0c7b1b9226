"""Lists of decisions, the newest first: all that a caller may see, of a task, or of a goal."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.calls import Call
from recollect.orchestrator.decisions.rows import (
    LIST,
    PAST_ALL,
    Decision,
    read_joined,
    record_of,
)
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.scope import readable_condition
from recollect.orchestrator.storage.interface import Session
from recollect.protocol.records import DecisionRecord


def decisions_of_task(
    call: Call, session: Session, task_id: str, limit: int
) -> list[DecisionRecord]:
    """The latest decisions that were made for a task, of those that the caller may see."""
    home = readable_condition(call.grants.within(None))
    found = newest(session, call.now_us, home, limit, task_id=task_id)
    return [record_of(decision) for decision in found]


def newest(
    session: Session,
    now_us: int,
    home: Condition | None,
    limit: int,
    *,
    below: int = PAST_ALL,
    task_id: str | None = None,
    goal_num: int | None = None,
) -> list[Decision]:
    """Living decisions in falling order of their number; `home` is where they may be."""
    readable, within = home or ("TRUE", [])
    of: list[str] = []
    params: list[Any] = []
    for column, value in (("task_id", task_id), ("goal_num", goal_num)):
        if value is not None:
            of.append(f"d.{column} = ?")
            params.append(value)
    sql = LIST.format(of=" AND ".join(of) or "TRUE", readable=readable)
    asked = (*params, below, now_us, *within, limit)
    return [read_joined(row) for row in session.execute(sql, asked)]
