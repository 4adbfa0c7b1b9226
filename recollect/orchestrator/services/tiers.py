"""Migration between tiers, as a run that is gone on with when it was broken off."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from recollect.orchestrator.calls import Call, Refusal, reads
from recollect.orchestrator.consolidation import runs
from recollect.orchestrator.consolidation.performing import Progress
from recollect.orchestrator.consolidation.running import Running
from recollect.orchestrator.consolidation.runs import Run
from recollect.orchestrator.memories.rows import SELECT_BY_ID, MemoryRow, encode_json
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.tiers.due import home_of
from recollect.orchestrator.tiers.moving import (
    ROWS_AT_ONCE,
    SUMMARISED,
    TO_LONGTERM,
    TO_WORKING,
    Moving,
)
from recollect.orchestrator.tiers.planning import Asked, Plan, Planning
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import ShuttingDown
from recollect.protocol.operations import Migrate

COUNTED = (TO_WORKING, TO_LONGTERM, SUMMARISED)
EMPTY = Plan([], [], [], 0, more=False)

WRITTEN = """
SELECT m.num, m.id FROM run_items i JOIN memories m ON m.num = i.num
WHERE i.run_id = ? AND i.action = 'created' ORDER BY i.position
"""
SOURCES = """
SELECT m.id FROM relationships r JOIN memories m ON m.num = r.target_num
WHERE r.source_num = ? AND r.relationship_type = 'derived_from' ORDER BY r.target_num
"""


class TierService:
    """Moves memories on from tier to tier."""

    def __init__(
        self,
        storage: Storage,
        planning: Planning,
        moving: Moving,
        running: Running,
        validator: Validator,
        draining: Callable[[], bool],
    ) -> None:
        self._storage = storage
        self._planning = planning
        self._moving = moving
        self._running = running
        self._validator = validator
        self._draining = draining

    @reads(Migrate)
    async def migrate(self, call: Call, operation: Migrate) -> records.TiersMigrated:
        limit = operation.limit
        if operation.namespace is not None:
            self._validator.namespace(operation.namespace)
        elif call.grants.within(None, "write") == ():
            call.refusals.append(Refusal("", None, "needs write"))
            return _shown(operation, EMPTY)
        scope = _scope(operation)
        begun, done = None, 0
        if not operation.dry_run:
            earlier = await self._running.earlier(call, operation)
            if earlier is not None:
                return await self._told(operation, earlier)
            begun, done = await self._storage.read(partial(_broken_off, call, scope))
        # What a run that is gone on with did before counts, too: a run is bounded as a whole.
        plan = EMPTY
        if done < limit:
            home = home_of(call, operation.namespace)
            asked = Asked(home, operation.from_tier, operation.older_than_days, limit - done)
            plan = await self._planning.plan(call, asked)
        if operation.dry_run or (begun is None and not plan.places):
            return _shown(operation, plan)
        run = await self._running.carry_out(
            call,
            operation,
            namespace=operation.namespace,
            places=plan.places or (begun.places if begun is not None else []),
            work=partial(self._work, call, plan, done, done < limit and not plan.more),
            scope=scope,
        )
        return await self._told(operation, run)

    async def _work(
        self, call: Call, plan: Plan, before: int, complete: bool, progress: Progress
    ) -> dict[str, Any]:
        for rows, action in ((plan.to_working, TO_WORKING), (plan.to_longterm, TO_LONGTERM)):
            for start in range(0, len(rows), ROWS_AT_ONCE):
                self._check_draining()
                part = rows[start : start + ROWS_AT_ONCE]
                await self._moving.move_on(call, progress, part, action)
        for summary in plan.summaries:
            self._check_draining()
            # What is left because one of them was changed is still due.
            complete &= await self._moving.sum_up(call, progress, summary)
        done = await self._storage.read(partial(_done, progress.run_id))
        return done | {
            "examined": before + plan.examined,
            "complete": complete,
            "resumed": progress.resumed > 0,
        }

    def _check_draining(self) -> None:
        if self._draining():
            raise ShuttingDown(
                "The orchestrator is shutting down; the same again goes on with the run."
            )

    async def _told(self, operation: Migrate, run: Run) -> records.TiersMigrated:
        """What a run did; what the summaries say is read anew."""
        told = run.told
        summaries = await self._storage.read(partial(_with_texts, told.get("summaries", [])))
        return {
            "status": "success",
            "run_id": run.id,
            "dry_run": False,
            "to_working": told.get(TO_WORKING, 0),
            "to_longterm": told.get(TO_LONGTERM, 0),
            "summarised": told.get(SUMMARISED, 0),
            "summaries": summaries,
            "examined": told.get("examined", 0),
            "complete": told.get("complete", False),
            "resumed": told.get("resumed", False),
        }


def _scope(operation: Migrate) -> str:
    """By which the next migration of the same is known."""
    about = [operation.namespace, operation.from_tier, operation.older_than_days]
    return encode_json(about).decode()


def _broken_off(call: Call, scope: str, session: Session) -> tuple[Run | None, int]:
    """The run that is to be gone on with, and how many memories it has moved."""
    run = runs.broken_off(session, call, scope)
    if run is None:
        return None, 0
    counts = runs.counted(session, run.id)
    return run, sum(counts.get(action, 0) for action in COUNTED)


def _done(run_id: str, session: Session) -> dict[str, Any]:
    """What a run has done so far: counts and ids, nothing of what memories say."""
    summaries = [
        {"summary_id": memory_id, "source_ids": [i for (i,) in session.execute(SOURCES, (num,))]}
        for num, memory_id in session.execute(WRITTEN, (run_id,))
    ]
    return {**runs.counted(session, run_id), "summaries": summaries}


def _with_texts(told: list[dict[str, Any]], session: Session) -> list[records.SummaryMade]:
    made: list[records.SummaryMade] = []
    for one in told:
        found = session.execute(SELECT_BY_ID, (one["summary_id"],))
        row = MemoryRow(*found[0]) if found else None
        made.append(
            {
                "summary_id": one["summary_id"],
                "source_ids": one["source_ids"],
                "text": row.content if row is not None and row.deleted_us is None else "",
            }
        )
    return made


def _shown(operation: Migrate, plan: Plan) -> records.TiersMigrated:
    """What would be done; or that there is nothing to do, and so no run to undo."""
    return {
        "status": "success",
        "run_id": None,
        "dry_run": operation.dry_run,
        "to_working": len(plan.to_working),
        "to_longterm": len(plan.to_longterm),
        "summarised": sum(len(summary.group) for summary in plan.summaries),
        "summaries": [
            {
                "summary_id": None,
                "source_ids": [row.id for row in summary.group],
                "text": summary.row.content,
            }
            for summary in plan.summaries
        ],
        "examined": plan.examined,
        "complete": not plan.more,
        "resumed": False,
    }
