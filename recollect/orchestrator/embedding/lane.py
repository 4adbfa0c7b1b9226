"""The texts of one kind, queries or documents: known, waited for, or queued for the threads.

    caller ── cache ──► the vector at once
                └─ miss ─► a text that waits, wanted by one caller or several
                             └─► a micro-batch in a thread ─► settled on the loop ─► cache, callers

All of this lives on the event loop and is touched there alone; the threads see only the texts they
take. A batch that fails, fails for the callers that have a text in it and for nobody else; a caller
that gives up takes with it the texts that nobody else wants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from recollect.orchestrator.embedding.cache import VectorCache, digest
from recollect.orchestrator.embedding.interface import Kind, Pooled, Vectors
from recollect.orchestrator.embedding.workers import Wanted, Workers
from recollect.protocol.errors import (
    EmbedderUnavailable,
    Overloaded,
    RecollectError,
    ShuttingDown,
)


class Request:
    """What one caller waits for."""

    __slots__ = ("_enough", "_error", "_woken", "keys", "left", "missing", "rows", "tickets")

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.rows: dict[bytes, Pooled] = {}
        self.missing: set[bytes] = set()
        self.left = 0
        """Texts that were admitted and not looked at yet."""
        self.tickets: list[int] = []
        self._error: RecollectError | None = None
        self._enough = 0
        self._woken: asyncio.Future[None] | None = None

    async def down_to(self, missing_max: int) -> None:
        """Wait until no more than so many are missing, or one of them failed."""
        if self._error is None and len(self.missing) > missing_max:
            self._enough = missing_max
            self._woken = asyncio.get_running_loop().create_future()
            await self._woken
        if self._error is not None:
            raise self._error

    def settle(self, key: bytes, row: Pooled) -> None:
        self.rows[key] = row
        self.missing.discard(key)
        if len(self.missing) <= self._enough:
            self._wake()

    def fail(self, error: RecollectError) -> None:
        # Each caller raises an error of its own: a shared one would gather all their tracebacks.
        self._error = self._error or type(error)(error.message, **error.details)
        self._wake()

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


class Lane:
    """Who wants which text of one kind."""

    def __init__(
        self,
        kind: Kind,
        workers: Workers,
        cache: VectorCache,
        *,
        slice_texts: int,
        queue_texts_max: int,
        retry_after_ms: int,
    ) -> None:
        self._kind = kind
        self._workers = workers
        self.cache = cache
        self._slice_texts = slice_texts
        self._queue_texts_max = queue_texts_max
        self._retry_after_ms = retry_after_ms
        # The texts that wait or are being embedded, and who wants each.
        self._wanted: dict[bytes, tuple[Wanted, set[Request]]] = {}
        # Texts of large calls that were admitted and not queued yet.
        self._promised = 0
        self._callers = 0
        self._idle: asyncio.Future[None] | None = None
        self.closing = False

    def waiting(self) -> int:
        """Texts that no thread has taken yet."""
        return self._workers.waiting(self._kind) + self._promised

    async def vectors_of(self, texts: Sequence[str]) -> Vectors:
        """One vector a text, as rows."""
        request = Request()
        await self._fill(request, texts)
        rows, step = request.rows, self._slice_texts
        vectors = np.empty((len(texts), len(rows[request.keys[0]].vector)), np.float32)
        for start in range(0, len(texts), step):
            part = [rows[key].vector for key in request.keys[start : start + step]]
            np.stack(part, out=vectors[start : start + step])
            if start + step < len(texts):
                await asyncio.sleep(0)
        return vectors

    async def rows_of(self, texts: Sequence[str]) -> list[Pooled]:
        """What is made of each text."""
        request = Request()
        await self._fill(request, texts)
        return [request.rows[key] for key in request.keys]

    async def rows_within(self, texts: Sequence[str], wait_s: float) -> list[Pooled | None]:
        """What is made of each text, or None where it could not be had in time."""
        request = Request()
        with suppress(TimeoutError, EmbedderUnavailable, Overloaded):
            async with asyncio.timeout(wait_s):
                await self._fill(request, texts)
        had = [request.rows.get(key) for key in request.keys]
        return had + [None] * (len(texts) - len(had))

    async def idle(self) -> None:
        """Wait until nobody waits here any more."""
        while self._callers:
            self._idle = self._idle or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._idle)

    async def _fill(self, request: Request, texts: Sequence[str]) -> None:
        """Get all rows; a large call goes slice by slice, so that the loop serves others too."""
        step = self._slice_texts
        self._callers += 1
        try:
            for start in range(0, len(texts), step):
                self._ask(request, texts, start)
                if start + step < len(texts):
                    await asyncio.sleep(0)
                    # One slice is being embedded while the next one waits: the threads stay busy.
                    await request.down_to(step)
            await request.down_to(0)
        finally:
            self._forget(request)
            self._callers -= 1
            if not self._callers and self._idle is not None:
                self._idle.set_result(None)
                self._idle = None

    def settle(self, batch: Sequence[Wanted], outcome: list[Pooled] | RecollectError) -> None:
        """Answer the callers of a micro-batch."""
        for at, text in enumerate(batch):
            _, requests = self._wanted.pop(text.key)
            if isinstance(outcome, RecollectError):
                for request in requests:
                    request.fail(outcome)
            else:
                self.cache.keep(text.key, outcome[at])
                for request in requests:
                    request.settle(text.key, outcome[at])

    def refuse(self, error: RecollectError, *, running: bool) -> None:
        """Fail those who have a text that waits, or if `running`, any text at all."""
        for wanted, requests in self._wanted.values():
            if running or not wanted.taken:
                for request in requests:
                    request.fail(error)

    def _ask(self, request: Request, texts: Sequence[str], start: int) -> None:
        """Queue what the cache does not have of one slice; what others wait for is shared."""
        if self.closing:
            raise ShuttingDown("The orchestrator is shutting down.")
        part = texts[start : start + self._slice_texts]
        new, joined = [], []
        for text in part:
            key = digest(text, self._kind)
            request.keys.append(key)
            if key in request.rows or key in request.missing:
                continue
            row = self.cache.get(key)
            if row is not None:
                request.rows[key] = row
                continue
            request.missing.add(key)
            entry = self._wanted.get(key)
            if entry is None:
                new.append(Wanted(key, text))
            else:
                joined.append(entry[0])
        if start == 0:
            self._admit(len(new) + len(texts) - len(part))
            request.left = len(texts)
            self._promised += len(texts)
        request.left -= len(part)
        self._promised -= len(part)
        for item in new:
            self._wanted[item.key] = (item, set())
        # A micro-batch is computed as wide as its longest text: those of like length go together,
        # the longest first, so that the threads come to the end of it at about the same time.
        new.sort(key=lambda wanted: len(wanted.text), reverse=True)
        # Those that others wait for come first: they are the nearest to be done.
        asked = [*joined, *new]
        for item in asked:
            self._wanted[item.key][1].add(request)
        if asked:
            request.tickets.append(self._workers.put(self._kind, asked, new=len(new)))

    def _admit(self, new: int) -> None:
        """Refuse what would make too many wait."""
        # A call that is larger than the whole queue is let in when nothing waits, since it could
        # never be served otherwise; it is bounded by what one request may carry.
        waiting = self.waiting()
        if new and waiting and waiting + new > self._queue_texts_max:
            raise Overloaded(
                f"{waiting} texts wait for the embedder already; try again shortly.",
                limit="embedding.queue_texts_max",
                retry_after_ms=self._retry_after_ms,
            )

    def _forget(self, request: Request) -> None:
        """Let a request go; when it was given up, so are the texts that nobody else wants."""
        self._promised -= request.left
        unwanted = []
        for key in request.missing:
            entry = self._wanted.get(key)
            if entry is not None and request in entry[1]:
                entry[1].discard(request)
                if not entry[1]:
                    unwanted.append(entry[0])
        for item in self._workers.withdraw(self._kind, request.tickets, unwanted):
            self._wanted.pop(item.key, None)
