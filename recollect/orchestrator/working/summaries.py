"""What finished tasks came to, within a number of tokens."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.tokens import TokenCounter
from recollect.orchestrator.working.rows import Task
from recollect.protocol import records

DESCRIPTION_TOKENS_MAX = 64
"""A description tells which task it was; what is left is for what came of it."""


def within(
    counter: TokenCounter, tasks: Iterable[Task], tokens_max: int
) -> list[records.SummaryRecord]:
    """The summaries of some tasks, in their order, as far as they fit.

    The first that does not fit whole is cut, or left out if nothing would remain, and is the last.
    """
    fitting: list[records.SummaryRecord] = []
    left = tokens_max
    for task in tasks:
        told = _told(counter, task, left)
        if told is None:
            break
        fitting.append(told)
        left -= told["tokens"]
        if told["summary"] != task.columns.summary:
            break
    return fitting


def _told(counter: TokenCounter, task: Task, tokens_max: int) -> records.SummaryRecord | None:
    columns = task.columns
    # Half of what is left at most: a summary says more than a description.
    description = counter.cut(
        columns.description, min(DESCRIPTION_TOKENS_MAX, tokens_max // 2)
    ).rstrip()
    spent = counter.count(description)
    summary = counter.cut(columns.summary, max(0, tokens_max - spent))
    tokens = spent + counter.count(summary)
    if not summary.strip() or tokens > tokens_max:
        return None
    assert columns.ended_us is not None
    return {
        "task_id": task.task_id,
        "namespace": task.memory.namespace,
        "description": description,
        "task_status": columns.status,
        "summary": summary,
        "truncated": (description, summary) != (columns.description, columns.summary),
        "tokens": tokens,
        "ended_at": to_iso(columns.ended_us),
    }
