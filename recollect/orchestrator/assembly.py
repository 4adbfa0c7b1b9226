"""Puts an orchestrator together from its settings: the one place that knows all the parts."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import structlog

from recollect.config.settings import Settings
from recollect.orchestrator.accesses import AccessLog
from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.calls import handlers_of
from recollect.orchestrator.clock import Clock, IdSource
from recollect.orchestrator.dispatch import Dispatcher
from recollect.orchestrator.drafts import Drafting
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.error_bus import ErrorBus
from recollect.orchestrator.idempotency import Prefetch, trim
from recollect.orchestrator.index_loading import load_index
from recollect.orchestrator.memory_store import MemoryStore
from recollect.orchestrator.rows import CachedMemory
from recollect.orchestrator.search.filters import (
    FilterCompiler,
    JsonPaths,
    NoJsonPaths,
    SqliteJsonPaths,
)
from recollect.orchestrator.search.lexical import Fts5Index, LexicalIndex, NoLexicalIndex
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.search.vectors import VectorIndex
from recollect.orchestrator.services.batches import BatchService
from recollect.orchestrator.services.deletion import DeletionService
from recollect.orchestrator.services.groups import GroupService
from recollect.orchestrator.services.listing import ListingService
from recollect.orchestrator.services.memories import MemoryService
from recollect.orchestrator.services.relationships import RelationshipService
from recollect.orchestrator.services.searching import SearchService
from recollect.orchestrator.services.sessions import SessionService
from recollect.orchestrator.services.system import SystemService
from recollect.orchestrator.storage.interface import Storage
from recollect.orchestrator.storage.sqlite import SqliteStorage
from recollect.orchestrator.strength import Fading
from recollect.orchestrator.validation import Validator
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

ROWS_CACHED_MAX = 20_000
TRIM_INTERVAL_S = 60
TRIM_PAUSE_S = 0.05  # between the steps of one trimming, for others to write
HOUR_US = 3_600_000_000


class Orchestrator:
    """All services over one storage, reachable through `dispatcher`."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        validator = Validator(settings.limits)
        ids = IdSource(clock)
        fading = Fading(settings.decay)
        drafting = Drafting(validator, fading)
        self.embedder = HashedEmbedder(settings.embedding.dimensions)
        self.index = VectorIndex(self.embedder.dimensions)
        self.storage, lexical, paths = open_storage(settings, Prefetch(self.embedder))
        # Where others may write too, a row kept here could be out of date.
        cache: LocalCache[CachedMemory] = LocalCache(
            ROWS_CACHED_MAX if self.storage.inline_reads else 0
        )
        self.errors = ErrorBus(settings.errors.kept_max)
        self._accesses = AccessLog(
            self.storage, fading, cache, entries_max=settings.decay.access_buffer_max
        )
        store = MemoryStore(self.embedder, self.index, cache, ids)
        scoping = Scoping(FilterCompiler(paths), validator)
        storage, accesses = self.storage, self._accesses
        handlers = handlers_of(
            MemoryService(storage, store, drafting, fading, accesses),
            DeletionService(store, validator),
            BatchService(storage, store, drafting, validator),
            ListingService(storage, store, scoping, validator),
            SearchService(storage, store, lexical, scoping, validator, accesses),
            RelationshipService(storage, store, validator),
            GroupService(storage, store, validator, ids),
            SessionService(validator, ids),
            SystemService(
                storage,
                store,
                self.errors,
                validator,
                clock.now_us(),
                lambda: self.dispatcher.describe(),
            ),
        )
        self.dispatcher = Dispatcher(handlers, storage, clock, self.errors, settings)
        self._background: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Make ready to answer."""
        embedded = await load_index(self.storage, self.embedder, self.index)
        log.info(
            "The vector index is loaded.",
            action="load_index",
            vectors=len(self.index),
            embedded=embedded,
        )
        self._background = [
            asyncio.create_task(self._flush_accesses()),
            asyncio.create_task(self._trim_idempotency()),
        ]

    async def stop(self) -> bool:
        """Answer what was accepted, write what was noted; whether that was done in time."""
        for task in self._background:
            task.cancel()
        in_time = True
        try:
            async with asyncio.timeout(self._settings.network.drain_s):
                await self.dispatcher.drained()
        except TimeoutError:
            in_time = False
        try:
            await self._accesses.flush()
        except RecollectError as error:
            log.warning("Accesses were not written.", action="stop", reason=error.message)
        # Closing waits for the writer, which must be able to settle its futures meanwhile.
        await asyncio.to_thread(self.storage.close)
        return in_time

    async def _flush_accesses(self) -> None:
        while True:
            await asyncio.sleep(self._settings.decay.access_flush_ms / 1000)
            try:
                await self._accesses.flush()
            except RecollectError as error:
                log.warning("Accesses were not written.", action="flush", reason=error.message)

    async def _trim_idempotency(self) -> None:
        kept_us = self._settings.storage.idempotency_hours * HOUR_US
        while True:
            before_us = self._clock.now_us() - kept_us
            try:
                while await self.storage.write(partial(trim, before_us)):
                    await asyncio.sleep(TRIM_PAUSE_S)
            except RecollectError as error:
                log.warning("Old answers were not trimmed.", action="trim", reason=error.message)
            await asyncio.sleep(TRIM_INTERVAL_S)


def open_storage(settings: Settings, prefetch: Prefetch) -> tuple[Storage, LexicalIndex, JsonPaths]:
    """The configured storage with the search features that go with it."""
    chosen = settings.storage
    loop = asyncio.get_running_loop()
    if chosen.url == "sqlite":
        fts5 = Fts5Index()
        return (
            SqliteStorage(
                Path(chosen.data),
                loop=loop,
                prefetch=prefetch,
                seals=[fts5.seal],
                readers=chosen.readers,
                group_commit_max=chosen.group_commit_max,
                write_queue_max=chosen.write_queue_max,
                page_cache_mb=chosen.page_cache_mb,
            ),
            fts5,
            SqliteJsonPaths(),
        )
    from recollect.orchestrator.storage.postgres import PostgresStorage  # needs its extra

    return (
        PostgresStorage(
            chosen.url,
            loop=loop,
            prefetch=prefetch,
            readers=chosen.readers,
            group_commit_max=chosen.group_commit_max,
            write_queue_max=chosen.write_queue_max,
        ),
        NoLexicalIndex(),
        NoJsonPaths(),
    )
