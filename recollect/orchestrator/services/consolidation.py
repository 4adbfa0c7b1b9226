"""Finding conflicts among memories, and settling them as one run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog

from recollect.config.sharing import ConsolidationSettings
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.consolidation.chat import ChatModel, Invalid, aside
from recollect.orchestrator.consolidation.conflicts import Conflict
from recollect.orchestrator.consolidation.looking import Found, Looking
from recollect.orchestrator.consolidation.merging import merged_row, merged_text
from recollect.orchestrator.consolidation.performing import Outcome, Performing, Progress
from recollect.orchestrator.consolidation.running import Running
from recollect.orchestrator.consolidation.runs import Run
from recollect.orchestrator.consolidation.settling import (
    SECRET,
    TOO_LONG,
    Settlement,
    Strategy,
    settle,
    sides_of,
)
from recollect.orchestrator.memories.rows import SELECT_BY_ID, MemoryRow, decode_json
from recollect.orchestrator.memories.strength import Fading
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import (
    ChatUnavailable,
    LimitExceeded,
    SecretRefused,
    ShuttingDown,
)
from recollect.protocol.operations import Consolidate, FindConflicts

log = structlog.get_logger()

SHOWN_CHARS_MAX = 1_000
"""Of a text or a value in an answer; `get_memory` shows it whole."""
CONFLICTS_AT_ONCE = 100
"""That are looked into at a time for what can be settled."""
DRAINING_LOOK_S = 0.2
DIFFERENT = "the model finds that they are about different things"
UNSERVED = "the chat server did not serve"


class ConsolidationService:
    """Conflicts: found by a read, settled by a run."""

    def __init__(
        self,
        storage: Storage,
        looking: Looking,
        performing: Performing,
        running: Running,
        fading: Fading,
        validator: Validator,
        settings: ConsolidationSettings,
        draining: Callable[[], bool],
    ) -> None:
        self._storage = storage
        self._looking = looking
        self._performing = performing
        self._running = running
        self._fading = fading
        self._validator = validator
        self._settings = settings
        self._draining = draining

    @reads(FindConflicts)
    async def find_conflicts(self, call: Call, operation: FindConflicts) -> records.ConflictsFound:
        limit = self._validator.page(operation.limit)
        found = await self._looking.find(call, operation.namespace)
        conflicts = found.conflicts[:limit]
        shown = await self._storage.read(partial(_shown_conflicts, conflicts))
        return {
            "status": "success",
            "namespace": operation.namespace,
            "conflicts": shown,
            "count": len(shown),
            "examined": found.examined,
            "complete": found.examined == found.total,
        }

    @reads(Consolidate)
    async def consolidate(self, call: Call, operation: Consolidate) -> records.Consolidated:
        self._validator.namespace(operation.namespace)
        if not operation.dry_run:
            earlier = await self._running.earlier(call, operation)
            if earlier is not None:
                return await self._told_again(operation, earlier)
        found = await self._looking.find(call, operation.namespace)
        settlements = await self._plan(operation, found.conflicts)
        refusal = self._too_much(operation, settlements, found)
        if refusal is not None and not operation.dry_run:
            raise refusal
        # Where nothing is to be done there is nothing to undo, and so no run.
        if operation.dry_run or all(settlement.skipped for settlement in settlements):
            outcomes = [_expected(settlement) for settlement in settlements]
            answer = _answer(operation, None, found.examined, outcomes)
            answer["refusal"] = refusal.message if refusal is not None else None
            return answer
        outcomes = []

        async def work(progress: Progress) -> dict[str, Any]:
            for settlement in settlements:
                self._check_draining()
                draft = self._draft(call, settlement)
                outcomes.append(await self._performing.settle(call, progress, settlement, draft))
            return _report(_answer(operation, progress.run_id, found.examined, outcomes))

        namespace = operation.namespace
        run = await self._running.carry_out(
            call, operation, namespace=namespace, places=[namespace], work=work
        )
        if not outcomes:
            return await self._told_again(operation, run)
        return _answer(operation, run.id, found.examined, outcomes)

    async def _plan(
        self, operation: Consolidate, conflicts: Sequence[Conflict]
    ) -> list[Settlement]:
        """What is to be done about as many conflicts as are asked for; nothing is written yet.

        What cannot be settled is told of, up to as many again, and takes no other's place: it may
        be the newest for ever.
        """
        asking = operation.strategy == "llm_based"
        possible: list[Settlement] = []
        skipped: list[Settlement] = []
        conflicts = sorted(conflicts, key=lambda conflict: not conflict.settleable)
        for start in range(0, len(conflicts), CONFLICTS_AT_ONCE):
            part = conflicts[start : start + CONFLICTS_AT_ONCE]
            settlements = await self._storage.read(partial(_settled, operation.strategy, part))
            if not asking:
                settlements = await asyncio.to_thread(self._all_merged, settlements)
            for settlement in settlements:
                (skipped if settlement.skipped is not None else possible).append(settlement)
            if len(possible) >= operation.limit:
                break
        planned = possible[: operation.limit] + skipped[: operation.limit]
        return await self._ask_model(planned) if asking else planned

    def _all_merged(self, settlements: Sequence[Settlement]) -> list[Settlement]:
        return [self._merged(settlement) for settlement in settlements]

    def _merged(self, settlement: Settlement) -> Settlement:
        if not settlement.writes:
            return settlement
        return self._with_text(settlement, merged_text(settlement.sources))

    def _with_text(self, settlement: Settlement, content: str) -> Settlement:
        try:
            content = self._validator.content(content)
        except LimitExceeded:
            return Settlement(settlement.conflict, skipped=TOO_LONG)
        except SecretRefused:
            return Settlement(settlement.conflict, skipped=SECRET)
        return Settlement(
            settlement.conflict,
            sources=settlement.sources,
            archived=settlement.archived,
            content=content,
        )

    async def _ask_model(self, settlements: Sequence[Settlement]) -> list[Settlement]:
        """The same with what the chat model makes of each; one that has no good answer is left."""
        model = await asyncio.to_thread(ChatModel.of, self._settings)
        chars_max = self._validator.limits.content_chars_max
        planned: list[Settlement] = []
        served, failure = False, None
        try:
            for settlement in settlements:
                if not settlement.writes:
                    planned.append(settlement)
                    continue
                try:
                    text = await self._asked(model, settlement, chars_max)
                    served = True
                except Invalid as error:
                    served = True
                    why = f"the model's answer cannot be used: {error}"
                    planned.append(Settlement(settlement.conflict, skipped=why))
                except ChatUnavailable as error:
                    if "http_status" in error.details:
                        raise  # it would refuse the others, too
                    failure = error
                    planned.append(Settlement(settlement.conflict, skipped=UNSERVED))
                else:
                    planned.append(
                        Settlement(settlement.conflict, skipped=DIFFERENT)
                        if text is None
                        else self._with_text(settlement, text)
                    )
        finally:
            await asyncio.to_thread(model.close)
        if failure is not None and not served:
            raise failure
        return planned

    async def _asked(self, model: ChatModel, settlement: Settlement, chars_max: int) -> str | None:
        """What the model makes of a conflict; given up when the orchestrator is to stop."""
        asking = aside(partial(model.settle, settlement.sources, chars_max))
        while not asking.done():
            self._check_draining()
            await asyncio.wait([asking], timeout=DRAINING_LOOK_S)
        return asking.result()

    def _check_draining(self) -> None:
        if self._draining():
            raise ShuttingDown("The orchestrator is shutting down; begin the run anew later.")

    def _too_much(
        self, operation: Consolidate, settlements: Sequence[Settlement], found: Found
    ) -> LimitExceeded | None:
        """Why the whole of it is not done, if it would leave too little."""
        fewer = sum(settlement.shrinks_by for settlement in settlements)
        most = self._settings.shrink_max * found.total
        if fewer <= most:
            return None
        return LimitExceeded(
            f"{operation.namespace} would have {fewer:,} memories less of {found.total:,}, "
            f"more than the part of {self._settings.shrink_max:g} that "
            "consolidation.shrink_max allows: nothing is done. Look at it with dry_run; then "
            "settle fewer with a smaller limit, or raise consolidation.shrink_max.",
            limit="consolidation.shrink_max",
            maximum=int(most),
            actual=fewer,
        )

    def _draft(self, call: Call, settlement: Settlement) -> MemoryRow | None:
        if not settlement.writes:
            return None
        limits = self._validator.limits
        return merged_row(
            settlement.sources,
            settlement.content,
            author=call.author,
            operation=call.operation,
            now_us=call.now_us,
            fading=self._fading,
            tags_max=limits.tags_max,
            metadata_bytes_max=limits.metadata_bytes_max,
        )

    async def _told_again(self, operation: Consolidate, run: Run) -> records.Consolidated:
        """The answer of a run that was done before; what memories say is read anew."""
        told = run.told

        def read(session: Session) -> list[records.GroupConsolidated]:
            return [_told_group(session, group) for group in told.get("groups", [])]

        groups = await self._storage.read(read)
        return {
            "status": "success",
            "run_id": run.id,
            "namespace": operation.namespace,
            "strategy": operation.strategy,
            "dry_run": False,
            "groups": groups,
            "created": told.get("created", 0),
            "archived": told.get("archived", 0),
            "skipped": told.get("skipped", 0),
            "examined": told.get("examined", 0),
            "refusal": None,
        }


def _settled(
    strategy: Strategy, conflicts: Sequence[Conflict], session: Session
) -> list[Settlement]:
    return [settle(conflict, sides_of(session, conflict), strategy) for conflict in conflicts]


def _expected(settlement: Settlement) -> Outcome:
    """What settling would come to, if nothing comes in between."""
    if settlement.skipped is not None:
        return Outcome(settlement, skipped=settlement.skipped)
    return Outcome(settlement, settlement.kept, settlement.archived)


def _answer(
    operation: Consolidate, run_id: str | None, examined: int, outcomes: Sequence[Outcome]
) -> records.Consolidated:
    groups = [_group(outcome) for outcome in outcomes]
    return {
        "status": "success",
        "run_id": run_id,
        "namespace": operation.namespace,
        "strategy": operation.strategy,
        "dry_run": operation.dry_run,
        "groups": groups,
        "created": sum(group["created"] for group in groups),
        "archived": sum(len(group["archived_ids"]) for group in groups),
        "skipped": sum(group["skipped"] is not None for group in groups),
        "examined": examined,
        "refusal": None,
    }


def _group(outcome: Outcome) -> records.GroupConsolidated:
    settlement = outcome.settlement
    return {
        "kind": settlement.conflict.kind,
        "subject": settlement.conflict.subject,
        "kept_id": outcome.kept.id if outcome.kept is not None else None,
        "content": "" if outcome.skipped else settlement.content[:SHOWN_CHARS_MAX],
        "created": settlement.writes and outcome.skipped is None,
        "archived_ids": [row.id for row in outcome.archived],
        "skipped": outcome.skipped,
    }


def _report(answer: records.Consolidated) -> dict[str, Any]:
    """What is kept of a run: nothing that a memory says."""
    return {
        "strategy": answer["strategy"],
        "examined": answer["examined"],
        "created": answer["created"],
        "archived": answer["archived"],
        "skipped": answer["skipped"],
        "groups": [
            {
                "kind": group["kind"],
                "kept_id": group["kept_id"],
                "created": group["created"],
                "archived_ids": group["archived_ids"],
                "skipped": group["skipped"],
            }
            for group in answer["groups"]
        ],
    }


def _told_group(session: Session, group: dict[str, Any]) -> records.GroupConsolidated:
    found = session.execute(SELECT_BY_ID, (group["kept_id"],)) if group["kept_id"] else []
    content = MemoryRow(*found[0]).content if found else ""
    return {
        "kind": group["kind"],
        "subject": content[:80],
        "kept_id": group["kept_id"],
        "content": content[:SHOWN_CHARS_MAX],
        "created": group["created"],
        "archived_ids": group["archived_ids"],
        "skipped": group["skipped"],
    }


def _shown_conflicts(
    conflicts: Sequence[Conflict], session: Session
) -> list[records.ConflictFound]:
    shown: list[records.ConflictFound] = []
    for conflict in conflicts:
        sides = sides_of(session, conflict)
        if sides is None:
            continue  # it has changed since, and may be none any more
        shown.append(
            {
                "kind": conflict.kind,
                "subject": conflict.subject,
                "similarity": conflict.similarity,
                "reason": conflict.reason,
                "memories": [_shown(side.row) for side in sides],
            }
        )
    return shown


def _shown(row: MemoryRow) -> records.ConflictSide:
    short = row.value is not None and len(row.value) <= SHOWN_CHARS_MAX
    return {
        "memory_id": row.id,
        "namespace": row.namespace,
        "key": row.key,
        "content": row.content[:SHOWN_CHARS_MAX],
        "value": decode_json(row.value) if row.value is not None and short else None,
        "source": row.source,
        "trust": row.trust,
        "updated_at": to_iso(row.updated_us),
    }
