"""Puts an orchestrator together from its settings: the one place that knows all the parts."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import msgspec

from recollect.config.settings import RecallSettings, Settings
from recollect.orchestrator.access.attempts import Attempts
from recollect.orchestrator.access.bearers import Bearers
from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.access.own_keys import OwnKeys
from recollect.orchestrator.access.rates import Rates
from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.access.refusals import RefusalLog
from recollect.orchestrator.accesses import AccessLog
from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.calls import handlers_of
from recollect.orchestrator.clock import Clock, IdSource, offset_s_of
from recollect.orchestrator.consolidation.looking import Looking
from recollect.orchestrator.consolidation.performing import Performing
from recollect.orchestrator.consolidation.running import Running
from recollect.orchestrator.consolidation.taking_back import TakingBack
from recollect.orchestrator.consolidation.undoing import Undoing
from recollect.orchestrator.context.tier_search import TierSearch
from recollect.orchestrator.counting import MemoryCounter
from recollect.orchestrator.decay.planning import FadePlanning
from recollect.orchestrator.dispatch import Dispatcher
from recollect.orchestrator.documents.indexing import Indexing
from recollect.orchestrator.documents.places import Roots
from recollect.orchestrator.documents.readers import Readers
from recollect.orchestrator.documents.store import DocumentStore
from recollect.orchestrator.documents.syncing import Workshop
from recollect.orchestrator.drafts import Drafting
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.meaning import Meanings
from recollect.orchestrator.embedding.providers import Providers
from recollect.orchestrator.error_bus import OWN, ErrorBus
from recollect.orchestrator.error_keeping import ErrorKeeping
from recollect.orchestrator.feed.live import LiveFeed
from recollect.orchestrator.feed.waiting import WaitingRoom
from recollect.orchestrator.idempotency import Prefetch
from recollect.orchestrator.index_loading import FaissIndexes
from recollect.orchestrator.jobs.beginning import Beginning
from recollect.orchestrator.keys import Keys
from recollect.orchestrator.late_embedding import LateEmbedding
from recollect.orchestrator.learning.reuse import ReuseLog
from recollect.orchestrator.learning_assembly import learning_services
from recollect.orchestrator.leases import Leases
from recollect.orchestrator.maintenance.ages import Ages
from recollect.orchestrator.maintenance.agreement import Agreement
from recollect.orchestrator.memory_store import MemoryStore
from recollect.orchestrator.model_following import ModelFollowing
from recollect.orchestrator.opening import open_storage, search_parts
from recollect.orchestrator.operational.living import Living
from recollect.orchestrator.operational.opening import open_operational
from recollect.orchestrator.operational.state import OperationalReading
from recollect.orchestrator.redis.beside import RedisBeside
from recollect.orchestrator.reembedding import Reembedding
from recollect.orchestrator.rows import CachedMemory
from recollect.orchestrator.scrubbing import Scrubbing
from recollect.orchestrator.search.authors import Authors
from recollect.orchestrator.search.candidates import Gathering
from recollect.orchestrator.search.filters import (
    FilterCompiler,
)
from recollect.orchestrator.search.past import PastSearch
from recollect.orchestrator.search.ranking import Weights
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.search.similar import Similar
from recollect.orchestrator.services.analytics import AnalyticsService
from recollect.orchestrator.services.audit import AuditService
from recollect.orchestrator.services.backups import BackupService
from recollect.orchestrator.services.batches import BatchService
from recollect.orchestrator.services.bearer_keys import BearerKeyService
from recollect.orchestrator.services.changing import Changing
from recollect.orchestrator.services.consolidation import ConsolidationService
from recollect.orchestrator.services.context import ContextService
from recollect.orchestrator.services.decay import DecayService
from recollect.orchestrator.services.decisions import DecisionService
from recollect.orchestrator.services.deletion import DeletionService
from recollect.orchestrator.services.document_sync import DocumentSyncService
from recollect.orchestrator.services.documents import DocumentService
from recollect.orchestrator.services.embedding import EmbeddingService
from recollect.orchestrator.services.exchange import ExchangeService
from recollect.orchestrator.services.feed import FeedService
from recollect.orchestrator.services.forgetting import ForgettingService
from recollect.orchestrator.services.goals import GoalService
from recollect.orchestrator.services.groups import GroupService
from recollect.orchestrator.services.identities import IdentityService
from recollect.orchestrator.services.integrity import IntegrityService
from recollect.orchestrator.services.jobs import JobService
from recollect.orchestrator.services.keyed import KeyedService
from recollect.orchestrator.services.keyed_reads import KeyedReadService
from recollect.orchestrator.services.leases import LeaseService
from recollect.orchestrator.services.listing import ListingService
from recollect.orchestrator.services.longterm import LongtermService
from recollect.orchestrator.services.memories import MemoryService
from recollect.orchestrator.services.metrics import MetricsService
from recollect.orchestrator.services.namespaces import NamespaceService
from recollect.orchestrator.services.operational import OperationalService
from recollect.orchestrator.services.preferences import PreferenceService
from recollect.orchestrator.services.recalling import RecallService
from recollect.orchestrator.services.relationships import RelationshipService
from recollect.orchestrator.services.retention import RetentionService
from recollect.orchestrator.services.runs import RunService
from recollect.orchestrator.services.searching import SearchService
from recollect.orchestrator.services.session_reading import SessionReadingService
from recollect.orchestrator.services.sessions import SessionService
from recollect.orchestrator.services.squashing import SquashingService
from recollect.orchestrator.services.steps import StepService
from recollect.orchestrator.services.system import SystemService
from recollect.orchestrator.services.tasks import TaskService
from recollect.orchestrator.services.tiers import TierService
from recollect.orchestrator.services.trimming import TrimmingService
from recollect.orchestrator.services.upkeep import UpkeepService
from recollect.orchestrator.sessions.state import States
from recollect.orchestrator.sharing import echoes_of, temporary_of
from recollect.orchestrator.strength import Fading
from recollect.orchestrator.tiers.moving import Moving
from recollect.orchestrator.tiers.planning import Planning
from recollect.orchestrator.trouble import Troubled
from recollect.orchestrator.trust.secret_policy import policy_of
from recollect.orchestrator.typed_memories import TypedMemories
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.vocabularies import counter_of
from recollect.orchestrator.working.finding import Tasks
from recollect.orchestrator.working.workflow import Workflow

ROWS_CACHED_MAX = 20_000


class Assembly:
    """All services over one storage, reachable through `dispatcher`; nothing is at work yet."""

    def __init__(self, settings: Settings, clock: Clock, own_keys: OwnKeys | None = None) -> None:
        self._settings = settings
        self._clock = clock
        secrets = policy_of(settings.trust.secrets)
        validator = Validator(settings.limits, secrets)
        ids = IdSource(clock)
        fading = Fading(settings.decay)
        drafting = Drafting(validator, fading)
        data = Path(settings.storage.data)
        self.redis = RedisBeside(settings, time.monotonic)
        searching = search_parts(settings, random.Random())
        self._indexes = searching.indexes
        self._providers = Providers(settings.embedding, self._indexes.make, shared=self.redis.cache)
        # Until the store has said which model it works with, there is none.
        self.meanings = Meanings(
            Providers(settings.embedding, FaissIndexes(settings.index, None).make).meaning(
                HashedEmbedder(), asyncio.get_running_loop()
            ),
            settings.embedding.wait_ms / 1000,
        )
        self._lexical = lexical = searching.lexical
        self.storage = open_storage(settings, Prefetch(self.meanings), [lexical.seal])
        # Where others may write too, a row kept here could be out of date.
        cache: LocalCache[CachedMemory] = LocalCache(
            ROWS_CACHED_MAX if self.storage.inline_reads else 0
        )
        self.errors = ErrorBus(settings.errors.kept_max)
        self._keeping = ErrorKeeping(self.errors, self.storage, settings.errors.kept_max)
        self._accesses = AccessLog(
            self.storage, fading, cache, entries_max=settings.decay.access_buffer_max
        )
        self._reuse = ReuseLog(self.storage)
        authors = Authors(alone=self.storage.inline_reads)
        self._store = store = MemoryStore(self.meanings, cache, ids, authors)
        # Only where reads are at hand is the store this orchestrator's own.
        line = None if self.storage.inline_reads else self.redis.line()
        self._echoes = echoes = echoes_of(
            settings.trust, cache if self.storage.inline_reads else None, line
        )
        self._scrubbing = Scrubbing(
            self.storage, lexical, self.meanings, clock, self._forget_outside
        )
        store.erased = self._scrubbing.note
        scoping = Scoping(FilterCompiler(searching.paths), validator)
        nearest = searching.nearest
        past = PastSearch(store, lexical, nearest)
        storage, accesses = self.storage, self._accesses
        self._late = LateEmbedding(storage, store)
        self._reembedding = Reembedding(storage, self.meanings, self._indexes)
        self._following = ModelFollowing(
            storage, self.meanings, self._providers, self._indexes, self._reembedding
        )
        states = States(validator, settings.sessions, temporary_of(settings.sessions, line))
        changing = Changing(storage, store, drafting)
        keys = Keys(store, validator)
        typed = TypedMemories(store, drafting, keys)
        # Apart from the ids of memories, which the writer's thread makes.
        event_ids = IdSource(clock)
        self.operational = open_operational(settings, event_ids, self.redis.link)
        store.forgotten = self.operational.discard
        operational_reading = OperationalReading(self.operational, Living(storage))
        workflow = Workflow(settings.workflow.phases)
        tasks = Tasks(validator)
        room = WaitingRoom(settings.network.waiting_max)
        self._feed = LiveFeed(storage, room)
        refusals = RefusalLog(storage)
        self.attempts = Attempts(refusals, clock, time.monotonic)
        self.keyring = Keyring(storage, own_keys.local.public_key if own_keys else None)
        self.keyring.on_change = lambda: room.recheck(self.keyring.check_still_allowed)
        writes = RecheckedWrites(storage, self.keyring.check_still_allowed)
        deletion = DeletionService(store, validator, self._scrubbing.finished)
        listing = ListingService(storage, store, scoping, validator)
        gathering = Gathering(store, lexical, nearest, turns_around=settings.recall.turns_around)
        weights = weights_of(settings.recall)
        recalling = RecallService(
            storage,
            store,
            gathering,
            settings.recall.candidates,
            past,
            authors,
            scoping,
            weights,
            validator,
            accesses,
        )
        counter = counter_of(settings.context.tokenizer)
        self._readers = Readers(settings.documents)
        roots = Roots(settings.documents.roots)
        documents = DocumentStore(store, validator, ids)
        indexing = Indexing(
            storage,
            writes,
            store,
            documents,
            self._readers,
            drafting,
            validator,
            settings.documents,
        )
        undoing = Undoing(storage, writes, store, drafting, clock)
        self._running = Running(storage, writes, undoing, ids, clock, alone=storage.inline_reads)
        planning = Planning(storage, store, fading, validator, settings.tiers)
        moving = Moving(writes, store, drafting, clock)
        ages = Ages(clock.now_us(), settings.storage.clock_margin_hours)
        agreement = Agreement(storage, writes, store, self._late)
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
                Workshop(
                    storage, writes, documents, indexing, clock, lambda: self.dispatcher.draining
                ),
                roots,
                validator,
                settings.documents,
            ),
            EmbeddingService(self._providers, self.meanings, self._reembedding),
            AnalyticsService(storage, store, scoping),
            AuditService(storage, scoping, validator, clock),
            FeedService(self._feed, validator, clock),
            TrimmingService(storage, writes, ages, lambda: self.dispatcher.draining),
            ConsolidationService(
                storage,
                Looking(storage, store, scoping, settings.consolidation),
                Performing(storage, writes, store, lexical, clock),
                self._running,
                fading,
                validator,
                settings.consolidation,
                lambda: self.dispatcher.draining,
            ),
            ForgettingService(
                storage,
                TakingBack(storage, writes, store, drafting, clock),
                self._running,
                validator,
            ),
            TierService(
                storage,
                planning,
                moving,
                self._running,
                validator,
                lambda: self.dispatcher.draining,
            ),
            DecayService(
                storage,
                writes,
                store,
                FadePlanning(storage, planning, settings.decay),
                moving,
                self._running,
                drafting,
                validator,
                lambda: self.dispatcher.draining,
            ),
            RetentionService(
                storage,
                writes,
                deletion,
                self._scrubbing.finished,
                ages,
                validator,
                settings,
                lambda: self.dispatcher.draining,
            ),
            BackupService(storage, data),
            ExchangeService(storage, store, validator, states, secrets),
            UpkeepService(
                storage,
                writes,
                store,
                lexical,
                self._late,
                agreement,
                validator,
                clock,
                lambda: self.dispatcher.draining,
            ),
            IntegrityService(storage, lexical, agreement, clock),
            RunService(storage, self._running, undoing, validator),
            RelationshipService(storage, store, validator),
            DecisionService(
                storage, typed, Similar(store, nearest, scoping, accesses), validator, accesses
            ),
            LongtermService(storage, typed, scoping, validator, accesses),
            OperationalService(
                storage,
                self.operational,
                operational_reading,
                typed,
                validator,
                event_ids,
                settings.operational,
            ),
            *learning_services(
                storage,
                writes,
                typed,
                Similar(store, nearest, scoping, accesses),
                self._reuse,
                workflow,
                validator,
                settings,
                clock,
                lambda: self.dispatcher.draining,
            ),
            ContextService(
                storage,
                store,
                TierSearch(
                    storage,
                    store,
                    gathering,
                    settings.recall.candidates,
                    authors,
                    scoping,
                    weights,
                ),
                operational_reading,
                counter,
                validator,
                accesses,
                event_ids,
                random.SystemRandom(),
                settings.context.receipts_max,
            ),
            GroupService(storage, store, validator, ids),
            SessionService(states, store, validator, ids),
            SessionReadingService(storage, states, validator),
            GoalService(storage, typed, workflow, validator),
            TaskService(
                storage,
                typed,
                tasks,
                workflow,
                validator,
                ids,
                counter,
                self.operational.end_task,
            ),
            StepService(storage, typed, tasks, validator),
            PreferenceService(storage, typed, validator, accesses),
            IdentityService(
                storage,
                self.keyring,
                validator,
                own_keys.server.public_key if own_keys else None,
            ),
            BearerKeyService(self.keyring),
            LeaseService(Leases(time.monotonic)),
            JobService(storage, Beginning(ids), validator, settings.scheduler.history_max),
            SystemService(
                storage,
                store,
                self._late,
                self._reembedding,
                self.errors,
                self._keeping,
                validator,
                clock.now_us(),
                lambda: self.dispatcher.describe(),
                self._scrubbing.describe,
                self.redis.describe,
            ),
            MetricsService(
                storage,
                MemoryCounter(
                    storage,
                    lambda session: self.meanings.current.index.seen_by(session).describe(),
                    settings.health.counts_interval_s,
                    time.monotonic,
                ),
                self.meanings,
                cache,
                self.errors,
                data,
                clock.now_us(),
                lambda: self.dispatcher.figures(),
                self.redis.describe,
                self._scrubbing.describe,
                lambda: offset_s_of(clock),
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
            validator,
            self.keyring.check_still_allowed,
            Bearers(self.keyring, self.attempts).identity,
            room,
            echoes,
        )
        background: tuple[Troubled, ...] = (
            self._providers,
            self._late,
            self._reembedding,
            self._following,
            self._scrubbing,
            self._feed,
            self.redis.link,
        )
        for part in background:
            part.trouble = self._trouble

    async def _forget_outside(self) -> None:
        """Something was purged: nothing that tells of a text is left with others."""
        await self.redis.forget_vectors()
        if self._echoes is not None:
            await self._echoes.forget()

    def _trouble(self, code: str, message: str) -> None:
        """Tell the error bus what went wrong in the background."""
        self.errors.report(OWN, code, message, self._clock.now_us())


def weights_of(settings: RecallSettings) -> Weights:
    """The weights of the ranking, as they are set."""
    given = msgspec.structs.asdict(settings)
    return Weights(**{name: given[name] for name in Weights.__struct_fields__})
