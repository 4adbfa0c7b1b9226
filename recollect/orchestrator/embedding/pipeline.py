"""Embedding for the services: off the event loop, in micro-batches, each text once.

An embedder that is so fast that it belongs on the loop is called there, past queue and cache, which
would cost more than they save.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any

import numpy as np
import structlog

from recollect.orchestrator.cache.interface import ByteCache
from recollect.orchestrator.embedding.cache import VectorCache, digest
from recollect.orchestrator.embedding.interface import (
    Embedder,
    Kind,
    PassageEmbedder,
    Pooled,
    Vectors,
)
from recollect.orchestrator.embedding.lane import Lane
from recollect.orchestrator.embedding.shared import SharedVectors
from recollect.orchestrator.embedding.workers import KINDS, Wanted, Workers
from recollect.orchestrator.off_loop import to_the_end
from recollect.protocol.errors import EmbedderUnavailable, RecollectError, ShuttingDown

log = structlog.get_logger()

SLICE_BATCHES = 32  # a slice of a large call: enough that many of its texts are of like length
CLOSE_WAIT_S_MAX = 5.0
RETIRE_WAIT_S_MAX = 60.0


class Embedding:
    """Vectors for texts. Made, used and closed on the event loop, except for `embed_now`."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        loop: asyncio.AbstractEventLoop,
        threads: int,
        batch_texts_max: int,
        query_batch_texts_max: int | None = None,
        queue_texts_max: int,
        cache_texts_max: int,
        shared: ByteCache | None = None,
        retry_after_ms: int = 200,
        close_wait_s_max: float = CLOSE_WAIT_S_MAX,
        retire_wait_s_max: float = RETIRE_WAIT_S_MAX,
    ) -> None:
        """Queries go in batches of their own size: where a batch is no faster than its texts one
        by one, as on this machine's cores, one at a time answers each sooner.

        `shared` is asked for what the cache at hand does not have; not by an embedder that is
        quicker than it."""
        self._embedder = embedder
        self._by_passages = embedder if isinstance(embedder, PassageEmbedder) else None
        self._shared = (
            SharedVectors(shared, embedder.model, embedder.dimensions)
            if shared is not None and not embedder.inline
            else None
        )
        self._loop = loop
        self._close_wait_s_max = close_wait_s_max
        self._retire_wait_s_max = retire_wait_s_max
        self._workers = Workers(
            self._run,
            threads=threads,
            batch_texts_max={
                "query": query_batch_texts_max or batch_texts_max,
                "document": batch_texts_max,
            },
        )
        # Each kind has its own queue and cache, so that bulk work does not push out the questions
        # that people repeat.
        self._lanes: dict[Kind, Lane] = {
            kind: Lane(
                kind,
                self._workers,
                VectorCache(cache_texts_max, embedder.dimensions),
                slice_texts=SLICE_BATCHES * batch_texts_max,
                queue_texts_max=queue_texts_max,
                retry_after_ms=retry_after_ms,
            )
            for kind in KINDS
        }
        self._closing = False
        # Counted by every thread that embeds, under the lock.
        self._counting = threading.Lock()
        self._texts = 0
        self._batches = 0
        self._failures = 0
        self._last_error: str | None = None
        self._available = True

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def inline(self) -> bool:
        return self._embedder.inline

    @property
    def has_passages(self) -> bool:
        """Whether documents have vectors of their passages."""
        return self._by_passages is not None

    @property
    def available(self) -> bool:
        """Whether the last batch succeeded."""
        return self._available

    def known(self, text: str, kind: Kind) -> Vectors | None:
        """The one vector of a text, if the cache has it."""
        made = self._lanes[kind].cache.get(digest(text, kind))
        return None if made is None else made.vector

    def at_once(self, text: str) -> Vectors | None:
        """The one vector of a question, if nothing need be waited for."""
        if self.inline:
            vector: Vectors = self.embed_now([text], "query")[0]
            return vector
        return self.known(text, "query")

    def forget(self) -> None:
        """Forget the vectors that are kept of texts."""
        for lane in self._lanes.values():
            lane.cache.clear()

    async def query(self, text: str, wait_s: float | None = None) -> Vectors:
        """The one vector of a question; it never waits behind documents, nor longer than that."""
        vector: Vectors
        if self.inline or wait_s is None:
            vector = (await self._rows_of([text], "query"))[0]
            return vector
        try:
            async with asyncio.timeout(wait_s):
                vector = (await self._rows_of([text], "query"))[0]
        except TimeoutError:
            raise EmbedderUnavailable(
                f"{self.model} gave no vector within {wait_s:g} s.", model=self.model
            ) from None
        return vector

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text, in their order."""
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        return await self._rows_of(texts, "document")

    async def pooled(self, texts: Sequence[str]) -> list[Pooled]:
        """The vector and the passages of each text, in their order."""
        if not self.inline:
            return await self._lanes["document"].rows_of(texts)
        return [Pooled(vector) for vector in await self.documents(texts)]

    async def pooled_within(self, texts: Sequence[str], wait_s: float) -> list[Pooled | None]:
        """The same, with None where the embedder could not give it in time."""
        if not self.inline:
            return await self._lanes["document"].rows_within(texts, wait_s)
        try:
            return list(await self.pooled(texts))
        except EmbedderUnavailable:
            return [None] * len(texts)

    def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        """One row a text, computed in the caller's thread, whichever that is."""
        return self._embed_now(texts, kind)[0]

    def _embed_now(self, texts: Sequence[str], kind: Kind) -> tuple[Vectors, list[bytes] | None]:
        """One row a text, and what is kept of their passages if the embedder gives any."""
        passages = None
        try:
            if self._by_passages is not None and kind == "document":
                vectors, passages = self._by_passages.embed_with_passages(texts)
            else:
                vectors = self._embedder.embed_now(texts, kind)
            if vectors.shape != (len(texts), self._embedder.dimensions):
                raise EmbedderUnavailable(
                    f"{self.model} gave {vectors.shape} numbers for {len(texts)} texts, each of "
                    f"which should have {self._embedder.dimensions}.",
                    model=self.model,
                )
        except Exception as error:
            typed = self._typed(error)
            self._count_failure(typed)
            if typed is error:
                raise
            raise typed from error
        with self._counting:
            self._texts += len(texts)
            self._batches += 1
            self._available = True
        vectors.flags.writeable = False  # callers may share it, and keep it
        return vectors, passages

    def describe(self) -> dict[str, Any]:
        """How it is, for people and for `stats`."""
        caches = [lane.cache for lane in self._lanes.values()]
        described: dict[str, Any] = {
            "model": self.model,
            "dimensions": self.dimensions,
            "available": self._available,
            "queue": {f"{kind}_texts": lane.waiting() for kind, lane in self._lanes.items()},
            "texts": self._texts,
            "batches": self._batches,
            "failures": self._failures,
            "last_error": self._last_error,
            "cache": {
                "texts": sum(len(cache) for cache in caches),
                "hits": sum(cache.hits for cache in caches),
                "misses": sum(cache.misses for cache in caches),
            },
        }
        usage = getattr(self._embedder, "usage", None)
        if usage is not None:
            described["provider"] = usage()
        return described

    async def retire(self) -> None:
        """Close once those who wait are answered; for an embedder that another one replaced."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._retire_wait_s_max):
                for lane in self._lanes.values():
                    await lane.idle()
        if self._begin_closing():
            try:
                # A batch that hangs must not hold up the loop, where others are served meanwhile.
                await to_the_end(self._workers.close, self._close_wait_s_max)
            finally:
                self._end_closing()

    def close(self) -> None:
        """Refuse what waits, let the running batches end within a bound, close the embedder."""
        if self._begin_closing():
            self._workers.close(self._close_wait_s_max)
            self._end_closing()

    def _begin_closing(self) -> bool:
        """Refuse what waits; whether that was not done before."""
        if self._closing:
            return False
        self._closing = True
        for lane in self._lanes.values():
            lane.closing = True
        self._refuse(running=False)
        return True

    def _end_closing(self) -> None:
        """Refuse what did not end, and close the embedder."""
        if not self._workers.close(0.0):
            log.warning("The embedder did not end in time.", action="close", model=self.model)
            self._refuse(running=True)
        self._embedder.close()

    def _refuse(self, *, running: bool) -> None:
        if not self._loop.is_closed():
            for lane in self._lanes.values():
                lane.refuse(ShuttingDown("The orchestrator is shutting down."), running=running)

    async def _rows_of(self, texts: Sequence[str], kind: Kind) -> Vectors:
        if not self.inline:
            rows = await self._lanes[kind].vectors_of(texts)
        elif len(texts) <= 1:
            rows = self.embed_now(texts, kind)
        else:
            rows = await asyncio.to_thread(self.embed_now, texts, kind)
        rows.flags.writeable = False
        return rows

    def _run(self, kind: Kind, batch: Sequence[Wanted]) -> None:
        """One micro-batch, in a thread of the workers."""
        if self._shared is not None:
            batch = self._settle_known(kind, batch, self._shared)
            if not batch:
                return
        outcome: list[Pooled] | RecollectError
        try:
            vectors, passages = self._embed_now([wanted.text for wanted in batch], kind)
            outcome = [*map(Pooled, vectors, passages or repeat(b""))]
        except Exception as error:
            outcome = self._typed(error)
        self._settle(kind, batch, outcome)
        if self._shared is not None and not isinstance(outcome, RecollectError):
            # After those who wait have their answer.
            self._shared.keep([wanted.key for wanted in batch], outcome)

    def _settle_known(
        self, kind: Kind, batch: Sequence[Wanted], shared: SharedVectors
    ) -> list[Wanted]:
        """Answer at once what others computed before; what is left to be embedded."""
        found = dict(zip(batch, shared.get([wanted.key for wanted in batch]), strict=True))
        known = [(wanted, made) for wanted, made in found.items() if made is not None]
        if known:
            self._settle(kind, [wanted for wanted, _ in known], [made for _, made in known])
        return [wanted for wanted, made in found.items() if made is None]

    def _settle(
        self, kind: Kind, batch: Sequence[Wanted], outcome: list[Pooled] | RecollectError
    ) -> None:
        try:
            self._loop.call_soon_threadsafe(self._lanes[kind].settle, batch, outcome)
        except RuntimeError:  # the loop has ended: nobody waits any more
            log.debug("The loop ended before a batch was answered.", action="settle")

    def _typed(self, error: Exception) -> RecollectError:
        if isinstance(error, RecollectError):
            return error
        return EmbedderUnavailable(
            f"The embedder {self.model} failed: {type(error).__name__}: {error}", model=self.model
        )

    def _count_failure(self, error: RecollectError) -> None:
        with self._counting:
            self._failures += 1
            self._last_error = error.message
            began, self._available = self._available, False
        if began:  # once for a row of failures; `describe` counts them all
            log.warning("The embedder failed.", action="embed", reason=error.message)
