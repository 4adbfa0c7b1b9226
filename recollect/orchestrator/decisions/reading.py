"""Lists of decisions, the newest first: all, those of a task, or those of a goal."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.decisions.rows import LIST, PAST_ALL, Decision, read_joined
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.storage.interface import Session


def newest(
    session: Session,
    now_us: int,
    home: Condition,
    limit: int,
    *,
    below: int = PAST_ALL,
    task_id: str | None = None,
    goal_num: int | None = None,
) -> list[Decision]:
    """Living decisions in falling order of their number; `home` is where m may be."""
    readable, within = home
    of: list[str] = []
    params: list[Any] = []
    for column, value in (("task_id", task_id), ("goal_num", goal_num)):
        if value is not None:
            of.append(f"d.{column} = ?")
            params.append(value)
    sql = LIST.format(of=" AND ".join(of) or "TRUE", readable=readable)
    asked = (*params, below, now_us, *within, limit)
    return [read_joined(row) for row in session.execute(sql, asked)]
