"""The single writer: one thread, one connection, many transactions a commit.

Whatever waits when the writer is free becomes one batch. Each write function runs in a savepoint of
its own, so one that fails takes nothing else with it; then the batch is committed once, and only
after that are the callers answered.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import structlog

from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.storage.inserting import Gathered
from recollect.orchestrator.storage.interface import (
    BatchLost,
    CommitObserver,
    Committed,
    PrefetchFunction,
    SavepointSession,
    SealFunction,
    SequenceCounter,
    T,
    WriteFunction,
    WriteTransaction,
)
from recollect.orchestrator.storage.journal import Ledger
from recollect.orchestrator.storage.write_queue import WriteQueue
from recollect.protocol.errors import (
    InternalError,
    Overloaded,
    RecollectError,
    ShuttingDown,
    StorageFull,
)

log = structlog.get_logger()

COMMIT_WAIT_S_MAX = 0.002


class WriterSession(SavepointSession, Protocol):
    """A connection that can be driven through a batch."""

    sole_writer: bool
    """Whether nobody else can write to this store: the journal's end stays as we left it."""

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...

    def usable(self) -> bool:
        """Whether the open transaction is still there after an error."""
        ...

    def translate(self, error: BaseException) -> RecollectError | None:
        """The storage's own error as one of ours; None if it is not the storage's."""
        ...

    def recover(self) -> None:
        """Make the connection fit for the next batch."""
        ...

    def rest(self) -> None:
        """Do what is due between two batches; nobody waits for it but the next batch."""
        ...


class Pending:
    """A write that waits for its turn, then for its commit."""

    __slots__ = ("error", "function", "future", "result", "since_s", "transaction")

    def __init__(
        self, function: WriteFunction[Any], future: asyncio.Future[Any], since_s: float
    ) -> None:
        self.function = function
        self.future = future
        self.since_s = since_s
        self.transaction: WriteTransaction | None = None
        self.result: Any = None
        self.error: BaseException | None = None


class GroupCommitWriter:
    """Runs write functions in order and answers them when they are durable."""

    def __init__(
        self,
        session: WriterSession,
        *,
        loop: asyncio.AbstractEventLoop,
        prefetch: PrefetchFunction | None,
        seals: Iterable[SealFunction],
        batch_max: int,
        queue_length_max: int,
        retry_after_ms: int = 50,
    ) -> None:
        self._session = session
        self._loop = loop
        self._prefetch = prefetch
        self._seals = tuple(seals)
        self._batch_max = batch_max
        self._queue_length_max = queue_length_max
        self._retry_after_ms = retry_after_ms
        self._monotonic = time.monotonic
        self._queue: WriteQueue[Pending] = WriteQueue(self._monotonic, loop.call_soon)
        self._closing = False
        self.committed_seq = 0
        """Set by the writer's thread after a commit; read by anyone."""
        self._ledger: Ledger | None = None
        self.observer: CommitObserver | None = None
        """Set before the first write, and asked on the event loop."""
        # The commits of the batch in hand: one, or one for each write that had to stand alone.
        self._commits: list[Committed] = []
        self._writers_expected = 1
        self._commit_s = 0.0
        self.batches = 0
        self.transactions = 0
        # Since when the oldest write that is being written waits; None while the writer is free.
        # Set by the writer's thread, read by anyone.
        self._oldest_since_s: float | None = None
        self.last_wait_s = 0.0
        """How long the oldest write of the last batch waited for its commit."""
        self._thread = threading.Thread(target=self._run, name="storage-writer", daemon=True)

    def start(self, committed_seq: int) -> None:
        self.committed_seq = committed_seq
        self._thread.start()

    def submit(self, function: WriteFunction[T]) -> asyncio.Future[T]:
        """Queue a write. Called on the event loop."""
        if self._closing:
            raise ShuttingDown("The orchestrator is shutting down; nothing was written.")
        if len(self._queue) >= self._queue_length_max:
            raise Overloaded(
                "Too many writes are waiting; nothing was written. Try again shortly.",
                limit="storage.write_queue_max",
                retry_after_ms=self._retry_after_ms,
            )
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(Pending(function, future, self._monotonic()))
        return future

    def queue_length(self) -> int:
        return len(self._queue)

    def lag_s(self) -> float:
        """How long the oldest write that is not answered yet has waited: writes are taken in their
        order, so it is the first of those that are being written."""
        since_s = self._oldest_since_s
        return 0.0 if since_s is None else max(0.0, self._monotonic() - since_s)

    def close(self) -> None:
        """Write what waits, then stop. Futures are settled on the loop as usual."""
        if not self._closing:
            self._closing = True
            self._queue.close()
        self._thread.join()

    def _run(self) -> None:
        more = True
        while more:
            batch, more = self._next_batch()
            self._oldest_since_s = batch[0].since_s if batch else None
            try:
                self._write(batch)
            except Exception as error:  # nothing may end this thread while callers wait
                log.exception("The writer met an unexpected error.", action="write_batch")
                self._fail(batch, self._typed(error))
            commits, self._commits = self._commits, []
            self._settle_on_loop(batch, commits)
            if batch:
                self.last_wait_s = self._monotonic() - batch[0].since_s
            self._oldest_since_s = None
            self._session.rest()

    def _next_batch(self) -> tuple[list[Pending], bool]:
        """What waits, as soon as something does; and whether more may come.

        Those who were just answered will soon write again. If there are several writers, waiting
        for them, for no longer than the commit takes that it saves, makes one commit of two.
        """
        return self._queue.take(self._batch_max, self._writers_expected, self._commit_s)

    def _write(self, batch: list[Pending]) -> bool:
        """Write a batch; whether the storage could be had for it."""
        if not batch:
            return True
        session = self._session
        begun = committing = False
        try:
            session.begin()
            begun = True
            ledger = self._ledger
            if ledger is None or not session.sole_writer:
                ledger = Ledger(session)
            before = ledger.seq
            counter = SequenceCounter(before)
            rows = Gathered()
            functions = [pending.function for pending in batch]
            prefetched = self._prefetch(session, functions) if self._prefetch else None
            for pending in batch:
                self._run_one(pending, WriteTransaction(session, counter, rows, prefetched))
            rows.flush(session)
            done = [p.transaction for p in batch if p.transaction is not None]
            for seal in self._seals:
                seal(session, done)
            ledger.seal(session, done, counter.value)
            failpoint("before_commit")
            committing = True
            commit_began_s = self._monotonic()
            session.commit()
            self._learn(len(batch), self._monotonic() - commit_began_s)
            failpoint("after_commit")
        except Exception as error:
            self._ledger = None
            self._recover()
            typed = self._typed(error)
            culprit_possible = begun and not committing and not isinstance(typed, StorageFull)
            if len(batch) > 1 and culprit_possible:
                self._write_singly(batch)
            else:
                self._fail(batch, typed)
        else:
            self._ledger = ledger
            self.committed_seq = counter.value
            if counter.value != before:
                changes = [change for transaction in done for change in transaction.changes]
                self._commits.append(Committed(before, counter.value, changes))
            self.batches += 1
            self.transactions += len(done)
        return begun

    def _write_singly(self, batch: list[Pending]) -> None:
        """Write one by one what could not be written together, so that only the culprit fails.

        Those that were refused are tried again too: they may have been so because of a write that
        is now undone.
        """
        for pending in batch:
            pending.transaction = pending.error = None
        for place, pending in enumerate(batch, 1):
            if not self._write([pending]) and pending.error is not None:
                # Each of the others would wait as long, to be told the same.
                self._fail(batch[place:], self._typed(pending.error))
                return

    def _recover(self) -> None:
        """Be fit for the next batch, which finds out by itself if that failed: those who were
        written before must not be told so."""
        try:
            self._session.recover()
        except Exception as error:
            log.warning("A transaction was not undone.", action="recover", reason=str(error))

    def _learn(self, answered: int, commit_s: float) -> None:
        """How many seem to write at the same time, and how long a commit takes."""
        self._writers_expected = answered + len(self._queue)
        self._commit_s += (min(commit_s, COMMIT_WAIT_S_MAX) - self._commit_s) / 8

    def _run_one(self, pending: Pending, transaction: WriteTransaction) -> None:
        """One write of the batch: undone alone if it fails, unless the whole batch is lost."""
        try:
            pending.result = pending.function(transaction)
        except Exception as error:
            if isinstance(error, BatchLost) or not self._session.usable():
                raise
            transaction.undo()
            pending.error = self._typed(error)
        else:
            transaction.keep()
            pending.transaction = transaction

    def _fail(self, batch: list[Pending], typed: RecollectError) -> None:
        for pending in batch:
            pending.transaction = None
            pending.error = pending.error or typed

    def _typed(self, error: BaseException) -> RecollectError:
        if isinstance(error, BatchLost) and error.__cause__ is not None:
            error = error.__cause__
        if isinstance(error, RecollectError):
            return error
        translated = self._session.translate(error)
        if translated is not None:
            # Not the error's own words, which may quote what is to be remembered.
            reason = translated.details.get("reason", translated.code)
            log.error("The storage refused a write.", action="write", reason=reason)
            return translated
        log.error("A write failed.", action="write", exc_info=error)
        return InternalError("The write failed by a defect; nothing was written. See the log.")

    def _settle_on_loop(self, batch: list[Pending], commits: list[Committed]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, batch, commits)
        except RuntimeError:  # the loop has ended: nobody waits any more
            log.debug("The loop ended before a batch was answered.", action="settle")

    def _settle(self, batch: list[Pending], commits: list[Committed]) -> None:
        if self.observer is not None:
            for commit in commits:
                _run_effect(partial(self.observer, commit))
        _settle(batch)


def _settle(batch: list[Pending]) -> None:
    for pending in batch:
        if pending.transaction is not None:
            for effect in pending.transaction.after_commit:
                _run_effect(effect)
    for pending in batch:
        if pending.future.done():
            continue
        if pending.error is not None:
            pending.future.set_exception(pending.error)
        else:
            pending.future.set_result(pending.result)


def _run_effect(effect: Callable[[], None]) -> None:
    try:
        effect()
    except Exception:  # the write is durable; a defect here must not turn it into a failure
        log.exception("A follow-up of a committed write failed.", action="after_commit")
