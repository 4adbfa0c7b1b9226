"""One run at a time: begun, carried out and ended, or taken back as a whole.

A run that was broken off with its process is found when the next one begins, at the next start, or
by a look from time to time, and taken back then. If it has a scope, every step of it is good by
itself: it is left as interrupted, for the next of the same scope to go on with. Where several
orchestrators share a store, one is taken for dead when it has not been seen at work for a while;
should it live after all, it finds that its run was taken back or gone on with, and stops.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import structlog

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call
from recollect.orchestrator.canonical import canonical
from recollect.orchestrator.clock import Clock, IdSource
from recollect.orchestrator.consolidation import runs
from recollect.orchestrator.consolidation.performing import Progress
from recollect.orchestrator.consolidation.runs import Run
from recollect.orchestrator.consolidation.undoing import Undoing
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.protocol.errors import RecollectError
from recollect.protocol.operation import Operation

log = structlog.get_logger()

DEAD_AFTER_S = 120
LOOK_INTERVAL_S = 60
OWN_NAME = "orchestrator"
BROKEN_OFF = "the orchestrator stopped in the midst of it"

Work = Callable[[Progress], Awaitable[dict[str, Any]]]
"""Does the work of a run and returns its report."""


class Running:
    """Sees to it that runs are whole or not at all. Lives on the event loop."""

    def __init__(
        self,
        storage: Storage,
        writes: RecheckedWrites,
        undoing: Undoing,
        ids: IdSource,
        clock: Clock,
        *,
        alone: bool,
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._undoing = undoing
        self._ids = ids
        self._clock = clock
        # Whether nobody else can be at work on this store: then what is unfinished is dead.
        self._alone = alone
        self.lock = asyncio.Lock()

    async def earlier(self, call: Call, operation: Operation[Any]) -> Run | None:
        """The run that the same request began before; what was broken off is taken back first."""
        await self.recover()
        if call.key is None:
            return None
        return await self._storage.read(
            lambda session: runs.found_by_request(session, call, hash_of(operation))
        )

    async def carry_out(
        self,
        call: Call,
        operation: Operation[Any],
        *,
        namespace: str | None,
        places: list[str],
        work: Work,
        scope: str | None = None,
    ) -> Run:
        """Do some work as a run; the run as it is then, or as the same request left it before.

        With a scope, it goes on with the run of that scope that was broken off, if there is one.
        """
        payload_hash = None if call.key is None else hash_of(operation)

        def begin(transaction: WriteTransaction) -> Run:
            earlier = runs.found_by_request(transaction, call, payload_hash)
            if earlier is not None:
                return earlier
            now_us = self._clock.now_us()
            broken = None if scope is None else runs.broken_off(transaction, call, scope)
            if broken is not None:
                runs.resume(
                    call,
                    transaction,
                    broken,
                    places=places,
                    payload_hash=payload_hash,
                    now_us=now_us,
                )
                return _run(transaction, broken.id)
            run_id = self._ids.new()
            runs.begin(
                call,
                transaction,
                run_id,
                namespace=namespace,
                places=places,
                payload_hash=payload_hash,
                now_us=now_us,
                scope=scope,
            )
            return _run(transaction, run_id)

        async with self.lock:
            await self._see_to_dead()
            run = await self._writes.write(call, begin)
            if run.status != runs.RUNNING:
                return run
            try:
                position = await self._storage.read(lambda s: runs.last_position(s, run.id))
                report = await work(Progress(run.id, run.resumed, position))
                return await self._writes.write(call, partial(self._end, call, run, report))
            except Exception as error:
                await self._give_up(call, run, error)
                raise

    def _end(
        self, call: Call, run: Run, report: dict[str, Any], transaction: WriteTransaction
    ) -> Run:
        now_us = self._clock.now_us()
        moved = runs.move(call, transaction, run, runs.DONE, report, now_us=now_us, ended_us=now_us)
        if moved is None:
            raise runs.busy(call, run)
        return _run(transaction, run.id)

    async def _give_up(self, call: Call, run: Run, error: Exception) -> None:
        """Take back or leave a run that failed; if that fails too, the next look will."""
        # Of the message only the kind is kept: it might quote a memory.
        reason = error.code if isinstance(error, RecollectError) else type(error).__name__
        try:
            if run.scope is None:
                await self._undoing.take_back(call, run, failed=reason)
            else:
                await self._storage.write(partial(self._interrupt, call, run, reason))
        except RecollectError as second:
            log.warning(
                "A run that failed is not taken back yet.",
                action=call.operation,
                run=run.id,
                reason=second.message,
            )

    def _interrupt(
        self, call: Call, run: Run, reason: str, transaction: WriteTransaction
    ) -> int | None:
        """Leave a run as far as it came; None if somebody else has seen to it."""
        now_us = self._clock.now_us()
        report = run.told | runs.counted(transaction, run.id) | {"interrupted": reason}
        return runs.move(
            call, transaction, run, runs.INTERRUPTED, report, now_us=now_us, ended_us=now_us
        )

    async def recover(self) -> None:
        """Take back what was broken off, or leave it to be gone on with."""
        async with self.lock:
            await self._see_to_dead()

    async def recover_if_possible(self) -> None:
        """The same; a store that takes no writes just now is no reason not to start."""
        try:
            await self.recover()
        except RecollectError as error:
            log.warning("Runs were not looked after.", action="recover_runs", reason=error.message)

    async def look_after(self) -> None:
        """Look from time to time for what was broken off."""
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            await self.recover_if_possible()

    async def _see_to_dead(self) -> None:
        now_us = self._clock.now_us()
        for run in await self._storage.read(_unfinished):
            if not self._alone and run.beat_us > now_us - DEAD_AFTER_S * 1_000_000:
                continue
            if run.scope is not None and run.status == runs.RUNNING:
                call = Call(run.kind, now_us, now_us, OWN_NAME)
                await self._storage.write(partial(self._interrupt, call, run, BROKEN_OFF))
                log.warning(
                    "A run that was broken off can be gone on with.",
                    action="recover_runs",
                    run=run.id,
                )
                continue
            call = Call("undo", now_us, now_us, OWN_NAME)
            failed = BROKEN_OFF if run.status == runs.RUNNING else None
            undone = await self._undoing.take_back(call, run, failed)
            log.warning(
                "A run that was broken off is taken back.",
                action="recover_runs",
                run=run.id,
                restored=undone.restored,
                removed=undone.removed,
            )


def hash_of(operation: Operation[Any]) -> bytes:
    """By which the same request is known again."""
    given = canonical([operation.spec.name, operation])
    return hashlib.blake2b(given, digest_size=16).digest()


def _unfinished(session: Session) -> list[Run]:
    return [Run(*row) for row in session.execute(runs.UNFINISHED)]


def _run(session: Session, run_id: str) -> Run:
    return Run(*session.execute(runs.BY_ID, (run_id,))[0])
