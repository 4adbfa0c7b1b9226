"""Taking back all that a source wrote, as one run that can be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from recollect.orchestrator.calls import Call, Refusal, reads
from recollect.orchestrator.consolidation.forgetting import Fate, fates_of
from recollect.orchestrator.consolidation.performing import Progress
from recollect.orchestrator.consolidation.running import Running
from recollect.orchestrator.consolidation.runs import Run
from recollect.orchestrator.consolidation.taking_back import TakingBack
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.operations import ForgetSource

PASSES_MAX = 5
"""Somebody may go on writing meanwhile; after so many looks, the rest is left to the next run."""
IDS_TOLD_MAX = 1_000
COUNTED = ("forgotten", "reverted", "derived", "revived")
COUNTED_AS = {
    "deleted": "forgotten",
    "reverted": "reverted",
    "derived": "derived",
    "revived": "revived",
}
IDS = "SELECT id FROM memories WHERE num IN ({marks}) ORDER BY num"


class ForgettingService:
    """Forgets sources."""

    def __init__(
        self, storage: Storage, taking_back: TakingBack, running: Running, validator: Validator
    ) -> None:
        self._storage = storage
        self._taking_back = taking_back
        self._running = running
        self._validator = validator

    @reads(ForgetSource)
    async def forget_source(self, call: Call, operation: ForgetSource) -> records.SourceForgotten:
        self._validator.asked("source", operation.source, "key_chars_max")
        if operation.namespace is not None:
            self._validator.namespace(operation.namespace)
        elif call.grants.within(None, "write") == ():
            call.refusals.append(Refusal(operation.source, None, "needs write"))
            return _answer(operation, None, {}, [])
        if not operation.dry_run:
            earlier = await self._running.earlier(call, operation)
            if earlier is not None:
                return _told_again(operation, earlier)
        fates = await self._storage.read(partial(self._fates, call, operation))
        if operation.dry_run:
            ids = await self._storage.read(partial(_ids, fates))
            return _answer(operation, None, _counts(fates), ids)
        if not fates:
            # There is nothing to undo, and so no run.
            return _answer(operation, None, {}, [])
        run = await self._running.carry_out(
            call,
            operation,
            namespace=operation.namespace,
            places=sorted({fate.namespace for fate in fates}),
            work=partial(self._work, call, operation, fates),
        )
        return _told_again(operation, run)

    def _fates(self, call: Call, operation: ForgetSource, session: Session) -> list[Fate]:
        return fates_of(session, call, operation.source, operation.namespace)

    async def _work(
        self, call: Call, operation: ForgetSource, fates: list[Fate], progress: Progress
    ) -> dict[str, Any]:
        places = {fate.namespace for fate in fates}
        done: list[tuple[Fate, str]] = []
        for _ in range(PASSES_MAX):
            if not fates:
                break
            done += await self._taking_back.carry_out(call, progress, fates)
            again = await self._storage.read(partial(self._fates, call, operation))
            # The run is known by where it was begun; elsewhere another one is for.
            fates = [fate for fate in again if fate.namespace in places]
        await self._taking_back.detach(call, progress)
        ids = list(dict.fromkeys(memory_id for fate, memory_id in done if _counts([fate])))
        return {
            "source": operation.source,
            **_counts([fate for fate, _ in done]),
            "memory_ids": ids[:IDS_TOLD_MAX],
        }


def _counts(fates: Sequence[Fate]) -> dict[str, int]:
    counted = Counter(COUNTED_AS[fate.action] for fate in fates if fate.action in COUNTED_AS)
    return dict(counted)


def _ids(fates: Sequence[Fate], session: Session) -> list[str]:
    nums = [fate.num for fate in fates if fate.action in COUNTED_AS][:IDS_TOLD_MAX]
    ids: list[str] = []
    for start in range(0, len(nums), 500):
        part = nums[start : start + 500]
        marks = ", ".join("?" for _ in part)
        ids += [memory_id for (memory_id,) in session.execute(IDS.format(marks=marks), part)]
    return ids


def _told_again(operation: ForgetSource, run: Run) -> records.SourceForgotten:
    told = run.told
    counts = {name: told.get(name, 0) for name in COUNTED}
    return _answer(operation, run.id, counts, told.get("memory_ids", []))


def _answer(
    operation: ForgetSource, run_id: str | None, counts: dict[str, int], ids: list[str]
) -> records.SourceForgotten:
    return {
        "status": "success",
        "run_id": run_id,
        "source": operation.source,
        "dry_run": operation.dry_run,
        "forgotten": counts.get("forgotten", 0),
        "reverted": counts.get("reverted", 0),
        "derived": counts.get("derived", 0),
        "revived": counts.get("revived", 0),
        "memory_ids": ids,
    }
