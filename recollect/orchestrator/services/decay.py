"""Decay: a run that moves what has faded, and is gone on with when it was broken off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.consolidation import runs
from recollect.orchestrator.consolidation.performing import Progress
from recollect.orchestrator.consolidation.running import Running
from recollect.orchestrator.consolidation.runs import Run
from recollect.orchestrator.decay.faded import put_off
from recollect.orchestrator.decay.planning import DAY_US, NOTHING, FadePlan, FadePlanning
from recollect.orchestrator.memories.drafts import Drafting
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import MemoryRow, encode_json
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.tiers.due import home_of
from recollect.orchestrator.tiers.moving import (
    ARCHIVED,
    ROWS_AT_ONCE,
    SUMMARISED,
    TO_LONGTERM,
    TO_WORKING,
    Moving,
)
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import ShuttingDown
from recollect.protocol.operations import FadeMemories

COUNTED = (TO_WORKING, TO_LONGTERM, SUMMARISED, ARCHIVED)
PUT_OFF_AT_ONCE = 200


class DecayService:
    """Lets go of what has faded, tier by tier."""

    def __init__(
        self,
        storage: Storage,
        writes: RecheckedWrites,
        store: MemoryStore,
        planning: FadePlanning,
        moving: Moving,
        running: Running,
        drafting: Drafting,
        validator: Validator,
        draining: Callable[[], bool],
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._store = store
        self._planning = planning
        self._moving = moving
        self._running = running
        self._drafting = drafting
        self._validator = validator
        self._draining = draining

    @reads(FadeMemories)
    async def fade_memories(self, call: Call, operation: FadeMemories) -> records.MemoriesFaded:
        limit = operation.limit
        if operation.namespace is not None:
            self._validator.namespace(operation.namespace)
        scope = encode_json([operation.namespace]).decode()
        begun, done = None, 0
        if not operation.dry_run:
            earlier = await self._running.earlier(call, operation)
            if earlier is not None:
                return _told(earlier)
            begun, done = await self._storage.read(partial(_broken_off, call, scope))
        # What a run that is gone on with did before counts, too: a run is bounded as a whole.
        plan = NOTHING
        if done < limit:
            plan = await self._planning.plan(call, home_of(call, operation.namespace), limit - done)
        if operation.dry_run:
            return _shown(operation, plan)
        await self._put_off(call, plan)
        if begun is None and not plan.places:
            return _shown(operation, plan)
        run = await self._running.carry_out(
            call,
            operation,
            namespace=operation.namespace,
            places=plan.places or (begun.places if begun is not None else []),
            work=partial(self._work, call, plan, done, done >= limit),
            scope=scope,
        )
        return _told(run)

    async def _put_off(self, call: Call, plan: FadePlan) -> None:
        """What stays, and what waits, is not read again by every run."""
        left = self._drafting.with_time_left
        kept = [(row, left(row, call.now_us).fades_us) for row in plan.kept]
        waiting = [(row, call.now_us + DAY_US) for row in plan.waiting]
        both = kept + waiting
        for start in range(0, len(both), PUT_OFF_AT_ONCE):
            self._check_draining()
            part = both[start : start + PUT_OFF_AT_ONCE]
            rows, moments_us = [row for row, _ in part], [moment for _, moment in part]
            await self._writes.write(call, partial(put_off, self._store, rows, moments_us))

    async def _work(
        self, call: Call, plan: FadePlan, before: int, full: bool, progress: Progress
    ) -> dict[str, Any]:
        def still(row: MemoryRow) -> bool:
            return row.fades_us <= call.now_us  # used meanwhile, it has not faded

        moves: Sequence[tuple[list[MemoryRow], str]] = (
            (plan.to_medium, TO_WORKING),
            (plan.to_long, TO_LONGTERM),
            (plan.archived, ARCHIVED),
        )
        for rows, action in moves:
            for start in range(0, len(rows), ROWS_AT_ONCE):
                self._check_draining()
                part = rows[start : start + ROWS_AT_ONCE]
                await self._moving.move_on(call, progress, part, action, still)
        reason = "more has faded than the limit; the same again goes on" if full else plan.reason
        for summary in plan.summaries:
            self._check_draining()
            if not await self._moving.sum_up(call, progress, summary, still):
                reason = reason or "something was changed or used meanwhile; the same again goes on"
        done = await self._storage.read(lambda session: runs.counted(session, progress.run_id))
        return done | {
            "kept": len(plan.kept),
            "examined": before + plan.examined,
            "complete": reason is None,
            "reason": reason,
            "resumed": progress.resumed > 0,
        }

    def _check_draining(self) -> None:
        if self._draining():
            raise ShuttingDown(
                "The orchestrator is shutting down; the same again goes on with the run."
            )


def _broken_off(call: Call, scope: str, session: Session) -> tuple[Run | None, int]:
    """The run that is to be gone on with, and how many memories it has moved."""
    run = runs.broken_off(session, call, scope)
    if run is None:
        return None, 0
    counts = runs.counted(session, run.id)
    return run, sum(counts.get(action, 0) for action in COUNTED)


def _told(run: Run) -> records.MemoriesFaded:
    told = run.told
    return {
        "status": "success",
        "run_id": run.id,
        "dry_run": False,
        "to_medium": told.get(TO_WORKING, 0),
        "to_long": told.get(TO_LONGTERM, 0),
        "summarised": told.get(SUMMARISED, 0),
        "archived": told.get(ARCHIVED, 0),
        "kept": told.get("kept", 0),
        "examined": told.get("examined", 0),
        "complete": told.get("complete", False),
        "reason": told.get("reason"),
        "resumed": told.get("resumed", False),
    }


def _shown(operation: FadeMemories, plan: FadePlan) -> records.MemoriesFaded:
    """What would be done; or that nothing is to be moved, and so there is no run to undo."""
    return {
        "status": "success",
        "run_id": None,
        "dry_run": operation.dry_run,
        "to_medium": len(plan.to_medium),
        "to_long": len(plan.to_long),
        "summarised": sum(len(summary.group) for summary in plan.summaries),
        "archived": len(plan.archived),
        "kept": len(plan.kept),
        "examined": plan.examined,
        "complete": plan.reason is None,
        "reason": plan.reason,
        "resumed": False,
    }
