"""Puts an orchestrator together from its settings: the one place that knows all the parts."""

from __future__ import annotations

import asyncio
import random
import time
from functools import partial
from pathlib import Path

import msgspec
import structlog

from recollect.config.settings import RecallSettings, Settings
from recollect.orchestrator.access.attempts import Attempts
from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.access.own_keys import OwnKeys
from recollect.orchestrator.access.rates import Rates
from recollect.orchestrator.access.refusals import RefusalLog
from recollect.orchestrator.accesses import AccessLog
from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.calls import handlers_of
from recollect.orchestrator.clock import Clock, IdSource
from recollect.orchestrator.consolidation.looking import Looking
from recollect.orchestrator.consolidation.performing import Performing
from recollect.orchestrator.consolidation.running import Running
from recollect.orchestrator.consolidation.taking_back import TakingBack
from recollect.orchestrator.consolidation.undoing import Undoing
from recollect.orchestrator.dispatch import Dispatcher
from recollect.orchestrator.documents.indexing import Indexing
from recollect.orchestrator.documents.places import Roots
from recollect.orchestrator.documents.readers import Readers
from recollect.orchestrator.documents.store import DocumentStore
from recollect.orchestrator.documents.syncing import Workshop
from recollect.orchestrator.drafts import Drafting
from recollect.orchestrator.embedding.choosing import (
    Choice,
    choose,
    read_known,
    remember,
    shadow_dimensions,
)
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.meaning import Meaning, Meanings
from recollect.orchestrator.embedding.providers import Providers
from recollect.orchestrator.embedding.specs import EmbedderSpec
from recollect.orchestrator.error_bus import ErrorBus
from recollect.orchestrator.idempotency import Prefetch, trim
from recollect.orchestrator.index_loading import load_index
from recollect.orchestrator.keys import Keys
from recollect.orchestrator.late_embedding import LateEmbedding
from recollect.orchestrator.memory_store import MemoryStore
from recollect.orchestrator.reembedding import Reembedding
from recollect.orchestrator.rows import CachedMemory
from recollect.orchestrator.scrubbing import Scrubbing
from recollect.orchestrator.search.authors import Authors
from recollect.orchestrator.search.candidates import Gathering
from recollect.orchestrator.search.filters import (
    FilterCompiler,
    JsonPaths,
    NoJsonPaths,
    SqliteJsonPaths,
)
from recollect.orchestrator.search.lexical import Fts5Index, LexicalIndex, NoLexicalIndex
from recollect.orchestrator.search.nearest import NearestFinder
from recollect.orchestrator.search.past import PastSearch
from recollect.orchestrator.search.ranking import Weights
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.services.audit import AuditService
from recollect.orchestrator.services.batches import BatchService
from recollect.orchestrator.services.changing import Changing
from recollect.orchestrator.services.consolidation import ConsolidationService
from recollect.orchestrator.services.deletion import DeletionService
from recollect.orchestrator.services.document_sync import DocumentSyncService
from recollect.orchestrator.services.documents import DocumentService
from recollect.orchestrator.services.embedding import EmbeddingService
from recollect.orchestrator.services.forgetting import ForgettingService
from recollect.orchestrator.services.groups import GroupService
from recollect.orchestrator.services.identities import IdentityService
from recollect.orchestrator.services.keyed import KeyedService
from recollect.orchestrator.services.keyed_reads import KeyedReadService
from recollect.orchestrator.services.listing import ListingService
from recollect.orchestrator.services.memories import MemoryService
from recollect.orchestrator.services.namespaces import NamespaceService
from recollect.orchestrator.services.recalling import RecallService
from recollect.orchestrator.services.relationships import RelationshipService
from recollect.orchestrator.services.runs import RunService
from recollect.orchestrator.services.searching import SearchService
from recollect.orchestrator.services.session_reading import SessionReadingService
from recollect.orchestrator.services.sessions import SessionService
from recollect.orchestrator.services.squashing import SquashingService
from recollect.orchestrator.services.system import SystemService
from recollect.orchestrator.sessions.state import States
from recollect.orchestrator.sessions.temporary import TemporaryState
from recollect.orchestrator.storage.interface import PrefetchFunction, Storage
from recollect.orchestrator.storage.sqlite import SqliteStorage
from recollect.orchestrator.strength import Fading
from recollect.orchestrator.trust.echoes import echoes_of
from recollect.orchestrator.trust.secret_policy import policy_of
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.words_rebuilding import ensure_words
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

ROWS_CACHED_MAX = 20_000
TRIM_INTERVAL_S = 60
TRIM_PAUSE_S = 0.05  # between the steps of one trimming, for others to write
HOUR_US = 3_600_000_000


class Orchestrator:
    """All services over one storage, reachable through `dispatcher`."""

    def __init__(self, settings: Settings, clock: Clock, own_keys: OwnKeys | None = None) -> None:
        self._settings = settings
        self._clock = clock
        secrets = policy_of(settings.trust.secrets)
        validator = Validator(settings.limits, secrets)
        ids = IdSource(clock)
        fading = Fading(settings.decay)
        drafting = Drafting(validator, fading)
        data = Path(settings.storage.data)
        self._providers = Providers(settings.embedding, settings.index, data)
        # Until the store has said which model it works with, there is none.
        self.meanings = Meanings(
            Providers(settings.embedding, settings.index, None).meaning(
                HashedEmbedder(), asyncio.get_running_loop()
            ),
            settings.embedding.wait_ms / 1000,
        )
        self.storage, self._lexical, paths = open_storage(settings, Prefetch(self.meanings))
        lexical = self._lexical
        # Where others may write too, a row kept here could be out of date.
        cache: LocalCache[CachedMemory] = LocalCache(
            ROWS_CACHED_MAX if self.storage.inline_reads else 0
        )
        self.errors = ErrorBus(settings.errors.kept_max)
        self._accesses = AccessLog(
            self.storage, fading, cache, entries_max=settings.decay.access_buffer_max
        )
        authors = Authors()
        store = MemoryStore(self.meanings, cache, ids, authors)
        self._scrubbing = Scrubbing(self.storage, lexical, self.meanings, clock)
        store.erased = self._scrubbing.note
        echoes = echoes_of(settings.trust, cache if self.storage.inline_reads else None)
        scoping = Scoping(FilterCompiler(paths), validator)
        nearest = NearestFinder(random.Random())
        past = PastSearch(store, lexical, nearest)
        storage, accesses = self.storage, self._accesses
        self._late = LateEmbedding(storage, store)
        self._reembedding = Reembedding(storage, self.meanings)
        temporary = TemporaryState(
            settings.sessions.temp_sessions_max, settings.sessions.temp_bytes_max
        )
        states = States(validator, settings.sessions, temporary)
        changing = Changing(storage, store, drafting)
        keys = Keys(store, validator)
        refusals = RefusalLog(storage)
        self.attempts = Attempts(refusals, clock, time.monotonic)
        self.keyring = Keyring(storage, own_keys.local.public_key if own_keys else None)
        deletion = DeletionService(store, validator, self._scrubbing.finished)
        listing = ListingService(storage, store, scoping, validator)
        recalling = RecallService(
            storage,
            store,
            Gathering(
                store,
                lexical,
                nearest,
                turns_around=settings.recall.turns_around,
            ),
            settings.recall.candidates,
            past,
            authors,
            scoping,
            weights_of(settings.recall),
            validator,
            accesses,
        )
        self._readers = Readers(settings.documents)
        roots = Roots(settings.documents.roots)
        documents = DocumentStore(store, validator, ids)
        indexing = Indexing(
            storage, store, documents, self._readers, drafting, validator, settings.documents
        )
        undoing = Undoing(storage, store, clock)
        # Only where reads are at hand is the store this orchestrator's own.
        self._running = Running(storage, undoing, ids, clock, alone=storage.inline_reads)
        handlers = handlers_of(
            MemoryService(storage, store, drafting, changing, fading, accesses, echoes),
            deletion,
            KeyedService(store, keys, drafting, changing, deletion, validator),
            KeyedReadService(storage, keys, listing, accesses),
            NamespaceService(storage, validator),
            SquashingService(storage, validator),
            BatchService(storage, store, drafting, validator, echoes),
            listing,
            SearchService(storage, store, lexical, nearest, past, scoping, validator, accesses),
            recalling,
            DocumentService(
                storage,
                documents,
                indexing,
                roots,
                recalling,
                scoping,
                validator,
                settings.documents,
            ),
            DocumentSyncService(
                Workshop(storage, documents, indexing, clock, lambda: self.dispatcher.draining),
                roots,
                validator,
                settings.documents,
            ),
            EmbeddingService(self._providers, self.meanings, self._reembedding),
            AuditService(storage, scoping, validator, clock),
            ConsolidationService(
                storage,
                Looking(storage, store, scoping, settings.consolidation),
                Performing(storage, store, lexical, clock),
                self._running,
                fading,
                validator,
                settings.consolidation,
                lambda: self.dispatcher.draining,
            ),
            ForgettingService(storage, TakingBack(storage, store, clock), self._running, validator),
            RunService(storage, self._running, undoing, validator),
            RelationshipService(storage, store, validator),
            GroupService(storage, store, validator, ids),
            SessionService(states, store, validator, ids),
            SessionReadingService(storage, states, validator),
            IdentityService(
                storage,
                self.keyring,
                validator,
                own_keys.server.public_key if own_keys else None,
            ),
            SystemService(
                storage,
                store,
                self._late,
                self._reembedding,
                self.errors,
                validator,
                clock.now_us(),
                lambda: self.dispatcher.describe(),
                self._scrubbing.describe,
            ),
        )
        self.dispatcher = Dispatcher(
            handlers,
            storage,
            clock,
            self.errors,
            settings,
            refusals,
            Rates(time.monotonic),
            echoes,
        )
        self._background: list[asyncio.Task[None]] = []

    async def know_keys(self) -> None:
        """Learn who is known by which key, and keep up with it; for a server that asks for keys."""
        await self.keyring.load()
        self._background += [
            asyncio.create_task(self.keyring.follow()),
            asyncio.create_task(self.attempts.run()),
        ]

    async def start(self) -> None:
        """Make ready to answer."""
        choice = await self._choose_model()
        loaded = await load_index(self.storage, self.meanings.current)
        log.info(
            "The vector index is loaded.",
            action="load_index",
            model=self.meanings.current.model,
            vectors=len(self.meanings.current.index),
            from_storage=loaded,
        )
        await ensure_words(self.storage, self._lexical)
        await self._running.recover_if_possible()
        warming = self.storage.read(self._lexical.warm)
        warming.add_done_callback(lambda done: done.cancelled() or done.exception())
        unfinished = await self._scrubbing.take_up()
        if choice.target is None or unfinished:
            # What a purge left in the index of the target is made anew without it.
            model = self.meanings.current.model
            await asyncio.to_thread(self._providers.forget_other_indexes, model)
        if choice.target is not None:
            self._reembedding.start(choice.target, partial(self._make_target, choice.target))
        else:
            self._background.append(asyncio.create_task(self._reembedding.tidy()))
        self._background += [
            asyncio.create_task(self._flush_accesses()),
            asyncio.create_task(self._trim_idempotency()),
            asyncio.create_task(self._late.run()),
            asyncio.create_task(self._scrubbing.run()),
            asyncio.create_task(self._running.look_after()),
        ]

    async def _choose_model(self) -> Choice:
        """Start with the store's own model, or with the configured one if it has none."""
        providers = self._providers
        known = await self.storage.read(read_known)
        choice = await asyncio.to_thread(choose, known, providers.configured(), providers.embedder)
        if choice.fallback_reason is not None:
            log.warning(
                "The configured embedding model is not in use.",
                action="choose_model",
                in_use=choice.embedder.model,
                reason=choice.fallback_reason,
            )
            self.errors.report(
                "orchestrator",
                "embedder_unavailable",
                choice.fallback_reason,
                self._clock.now_us(),
                context={"in_use": choice.embedder.model},
            )
        await self.storage.write(partial(remember, choice))
        placeholder = self.meanings.current
        self.meanings.current = providers.meaning(choice.embedder, asyncio.get_running_loop())
        placeholder.embedding.close()
        placeholder.index.close()
        return choice

    async def _make_target(self, target: EmbedderSpec) -> Meaning:
        """The model that the store moves to, if it can be had."""
        dimensions = await self.storage.read(shadow_dimensions)
        embedder = await asyncio.to_thread(self._providers.embedder, target, dimensions)
        return self._providers.meaning(embedder, asyncio.get_running_loop())

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
        await self._reembedding.stop()
        self.attempts.flush()
        try:
            await self._accesses.flush()
        except RecollectError as error:
            log.warning("Accesses were not written.", action="stop", reason=error.message)
        await asyncio.to_thread(self._readers.close)
        # Closing waits for the writer, which must be able to settle its futures meanwhile.
        await asyncio.to_thread(self.storage.close)
        for meaning in self.meanings.opened():
            meaning.embedding.close()
            await asyncio.to_thread(meaning.index.close)
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


def weights_of(settings: RecallSettings) -> Weights:
    """The weights of the ranking, as they are set."""
    given = msgspec.structs.asdict(settings)
    return Weights(**{name: given[name] for name in Weights.__struct_fields__})


def open_storage(
    settings: Settings, prefetch: PrefetchFunction
) -> tuple[Storage, LexicalIndex, JsonPaths]:
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
