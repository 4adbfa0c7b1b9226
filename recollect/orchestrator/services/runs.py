"""Runs: looking at them, and undoing them."""

from __future__ import annotations

import asyncio
from typing import Any

from recollect.orchestrator.access.grants import covers
from recollect.orchestrator.calls import Call, Refusal, reads
from recollect.orchestrator.consolidation import runs
from recollect.orchestrator.consolidation.running import Running
from recollect.orchestrator.consolidation.runs import Run
from recollect.orchestrator.consolidation.undoing import Undoing, undone_of
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.operations import GetRun, ListRuns, Undo

ROWS_AT_ONCE = 200
ROWS_SEEN_MAX = 5_000
"""For one page; a caller who may see few of many runs goes on by the cursor."""
FIRST_PAGE: list[Any] = ["", (1 << 63) - 1, 0]
"""Behind which run, by its id and its time, and how many after that were looked at already: those
are not the caller's to know, so a cursor counts them and names none."""


class RunService:
    """Reads of runs, and their undoing."""

    def __init__(
        self, storage: Storage, running: Running, undoing: Undoing, validator: Validator
    ) -> None:
        self._storage = storage
        self._running = running
        self._undoing = undoing
        self._validator = validator

    @reads(Undo)
    async def undo(self, call: Call, operation: Undo) -> records.RunUndone:
        def find(session: Session) -> Run:
            return runs.find(call, session, operation.run_id, changes=True)

        # Refused before it waits for its turn.
        await self._storage.read(find)
        await self._running.recover()
        async with self._running.lock:
            run = await self._storage.read(find)
            if run.status in (runs.RUNNING, runs.UNDOING):
                raise runs.busy(call, run)
            if run.status in (runs.DONE, runs.INTERRUPTED):
                undone = await self._undoing.take_back(call, run)
            else:
                undone = undone_of(run)
        return {
            "status": "success",
            "run_id": run.id,
            "restored": undone.restored,
            "removed": undone.removed,
            "skipped": undone.skipped,
            "seq": undone.seq,
        }

    @reads(GetRun)
    def get_run(self, call: Call, operation: GetRun) -> asyncio.Future[records.RunFetched]:
        def read(session: Session) -> records.RunFetched:
            run = runs.find(call, session, operation.run_id)
            return {"status": "success", "run": runs.record_of(run)}

        return self._storage.read(read)

    @reads(ListRuns)
    def list_runs(self, call: Call, operation: ListRuns) -> asyncio.Future[records.RunsListed]:
        limit = self._validator.page(operation.limit)
        if operation.namespace is not None:
            self._validator.namespace(operation.namespace)
        if call.grants.within(operation.namespace) == ():
            call.refusals.append(Refusal("", operation.namespace, "not readable"))
        position = read_cursor(operation, operation.cursor, 3, texts=1) or FIRST_PAGE

        def read(session: Session) -> records.RunsListed:
            found, last = self._page(call, session, operation, position, limit)
            return {
                "status": "success",
                "runs": [runs.record_of(run) for run in found],
                "count": len(found),
                "cursor": None if last is None else make_cursor(operation, last),
            }

        return self._storage.read(read)

    def _page(
        self, call: Call, session: Session, operation: ListRuns, position: list[Any], limit: int
    ) -> tuple[list[Run], list[Any] | None]:
        """Runs that the caller may see, and where the page ends if there are more."""
        condition, params = "TRUE", []
        if operation.kind is not None:
            self._validator.asked("kind", operation.kind, "key_chars_max")
            condition, params = "kind = ?", [operation.kind]
        found: list[Run] = []
        last_id, started_us, passed = position
        for _ in range(ROWS_SEEN_MAX // ROWS_AT_ONCE):
            rows = session.execute(
                runs.PAGE.format(condition=condition),
                (started_us, started_us, last_id, *params, ROWS_AT_ONCE, max(0, int(passed))),
            )
            for row in rows:
                run = Run(*row)
                passed += 1
                if not self._wanted(call, run, operation.namespace):
                    continue
                if len(found) == limit:
                    return found, [found[-1].id, found[-1].started_us, 0]
                found.append(run)
                last_id, started_us, passed = run.id, run.started_us, 0
            if len(rows) < ROWS_AT_ONCE:
                return found, None
        return found, [last_id, started_us, passed]

    def _wanted(self, call: Call, run: Run, namespace: str | None) -> bool:
        if not runs.readable(call, run):
            return False
        return namespace is None or any(covers(namespace, place) for place in run.places)
