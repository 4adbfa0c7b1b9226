"""What finished tasks came to, within a number of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.namespaces import Span
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.working import rows
from recollect.orchestrator.working.rows import Task
from recollect.protocol import records
from recollect.tokens import TokenCounter

DESCRIPTION_TOKENS_MAX = 64
"""A description tells which task it was; what is left is for what came of it."""
# Of the tasks of all, those that ended last are looked at first; only who has few among them has
# all their own gone through.
LATELY = 2_000
_SUMMED_UP = "t.ended_us IS NOT NULL AND t.summary <> ''"
_NEWEST_FIRST = "ORDER BY t.ended_us DESC, t.num DESC LIMIT"
SUMMED_UP_LATELY = f"""
{rows.TASKS} WHERE t.num IN (
    SELECT t.num FROM tasks t WHERE {_SUMMED_UP} {_NEWEST_FIRST} {LATELY}
) AND {rows.ALIVE} AND ({{readable}}) {_NEWEST_FIRST} ?
"""
SUMMED_UP = f"""
{rows.TASKS} WHERE m.collection <> 'memories' AND m.collection = 'tasks'
    AND m.namespace >= ? AND m.namespace < ?
    AND {_SUMMED_UP} AND {rows.ALIVE} {_NEWEST_FIRST} ?
"""
WITHIN = "(m.namespace >= ? AND m.namespace < ?)"


def newest(call: Call, session: Session, spans: Sequence[Span], limit: int) -> list[Task]:
    """The tasks in some namespaces that ended last and were summed up, the newest first."""
    readable = " OR ".join(WITHIN for _ in spans) or "FALSE"
    ends = [end for span in spans for end in span]
    lately = SUMMED_UP_LATELY.format(readable=readable)
    found = session.execute(lately, (call.now_us, *ends, limit))
    if len(found) < limit:
        found = [
            row for span in spans for row in session.execute(SUMMED_UP, (*span, call.now_us, limit))
        ]
    tasks = map(rows.task_in, found)
    by_end = sorted(tasks, key=lambda task: (task.columns.ended_us, task.columns.num), reverse=True)
    return by_end[:limit]


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
