"""What has had its time: what expired is deleted, what was deleted or archived long ago is purged,
and answers and receipts are forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from recollect.config.settings import Settings
from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.context import receipts
from recollect.orchestrator.maintenance.ages import DAY_US, HOUR_US, Ages
from recollect.orchestrator.maintenance.due import Due
from recollect.orchestrator.services.deletion import DeletionService
from recollect.orchestrator.serving import idempotency
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.protocol import records
from recollect.protocol.errors import ShuttingDown
from recollect.protocol.operations import ApplyRetention, TrimAnswers
from recollect.protocol.operations.fields import INTEGER_MAX

ROWS_AT_ONCE = 50
ANSWERS_AT_ONCE = 2_000
"""Of what is small; so that nobody's write waits for long."""

Trim = Callable[[int, int, WriteTransaction], int]


class RetentionService:
    """Takes away what is old enough, a bounded number at a time."""

    def __init__(
        self,
        storage: Storage,
        writes: RecheckedWrites,
        deletion: DeletionService,
        wiped: Callable[[Call], Awaitable[bool]],
        ages: Ages,
        settings: Settings,
        draining: Callable[[], bool],
    ) -> None:
        """`wiped` waits, while a call can, until nothing is left of what was purged."""
        self._storage = storage
        self._writes = writes
        self._deletion = deletion
        self._wiped = wiped
        self._ages = ages
        self._answers_kept_us = settings.storage.idempotency_hours * HOUR_US
        self._receipts_kept_us = int(settings.context.receipts_kept_days * DAY_US)
        self._draining = draining

    @reads(ApplyRetention)
    async def apply_retention(
        self, call: Call, operation: ApplyRetention
    ) -> records.RetentionApplied:
        limit = operation.limit
        before_us = partial(self._ages.before_us, call.now_us)
        wanted = [Due("expired", before_us())]
        if operation.deleted_days is not None:
            wanted.append(Due("deleted", before_us(int(operation.deleted_days * DAY_US))))
        if operation.archived_days is not None:
            wanted.append(Due("archived", before_us(int(operation.archived_days * DAY_US))))
        done = dict.fromkeys(("expired", "deleted", "archived"), 0)
        complete, left = True, limit
        for due in wanted:
            # One more than may be seen to tells whether there are more.
            there = await self._storage.read(partial(due.count, left + 1))
            complete &= there <= left
            if operation.dry_run:
                done[due.kind] = min(there, left)
            elif there:
                done[due.kind] = await self._see_to(call, due, left)
            left -= min(there, left)
        purged = not operation.dry_run and (done["deleted"] or done["archived"])
        return {
            "status": "success",
            "expired": done["expired"],
            "purged_deleted": done["deleted"],
            "purged_archived": done["archived"],
            "complete": complete,
            "wiped": await self._wiped(call) if purged else True,
            "dry_run": operation.dry_run,
        }

    async def _see_to(self, call: Call, due: Due, limit: int) -> int:
        """Delete or purge what is due, the oldest first; how many."""
        done = 0
        for start in range(0, limit, ROWS_AT_ONCE):
            self._check_draining()
            at_once = min(ROWS_AT_ONCE, limit - start)
            nums = await self._storage.read(partial(due.nums, at_once))
            done += await self._writes.write(call, partial(self._take_away, call, due, nums))
            if len(nums) < at_once:
                break
        return done

    def _take_away(
        self, call: Call, due: Due, nums: list[int], transaction: WriteTransaction
    ) -> int:
        found = [due.still(transaction, num) for num in nums]
        rows = [row for row in found if row is not None]
        if due.kind == "expired":
            for row in rows:
                self._deletion.expire(call, transaction, row)
        elif rows:
            self._deletion.erase(call, transaction, rows)
        return len(rows)

    @reads(TrimAnswers)
    async def trim_answers(self, call: Call, operation: TrimAnswers) -> records.AnswersTrimmed:
        answers_us = self._ages.before_us(call.now_us, self._answers_kept_us)
        receipts_us = self._ages.before_us(call.now_us, self._receipts_kept_us)

        def counted(session: Session) -> tuple[int, int]:
            most = min(operation.limit + 1, INTEGER_MAX)
            [(answers,)] = session.execute(idempotency.COUNT_OLD, (answers_us, most))
            [(old,)] = session.execute(receipts.COUNT_OLD, (receipts_us, most))
            return int(answers), int(old)

        answers, old = await self._storage.read(counted)
        complete = answers + old <= operation.limit
        answers = min(answers, operation.limit)
        old = min(old, operation.limit - answers)
        if not operation.dry_run:
            answers = await self._trim(call, idempotency.trim, answers_us, answers)
            old = await self._trim(call, receipts.trim, receipts_us, old)
        return {
            "status": "success",
            "answers": answers,
            "receipts": old,
            "complete": complete,
            "dry_run": operation.dry_run,
        }

    async def _trim(self, call: Call, trim: Trim, before_us: int, limit: int) -> int:
        done = 0
        for start in range(0, limit, ANSWERS_AT_ONCE):
            self._check_draining()
            at_once = min(ANSWERS_AT_ONCE, limit - start)
            done += await self._writes.write(call, partial(trim, before_us, at_once))
        return done

    def _check_draining(self) -> None:
        if self._draining():
            raise ShuttingDown("The orchestrator is shutting down; the same again goes on.")
