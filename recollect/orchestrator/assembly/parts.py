"""The parts that services and background work share."""

from __future__ import annotations

import asyncio
import random
import time

from recollect.config.settings import Settings
from recollect.orchestrator.access.attempts import Attempts
from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.access.own_keys import OwnKeys
from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.access.refusals import RefusalLog
from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.clock import Clock, IdSource
from recollect.orchestrator.consolidation.running import Running
from recollect.orchestrator.consolidation.undoing import Undoing
from recollect.orchestrator.context.vocabularies import counter_of
from recollect.orchestrator.documents.readers import Readers
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.meaning import Meanings
from recollect.orchestrator.embedding.providers import Providers
from recollect.orchestrator.embedding.questions import Questions
from recollect.orchestrator.feed.live import LiveFeed
from recollect.orchestrator.feed.waiting import WaitingRoom
from recollect.orchestrator.learning.reuse import ReuseLog
from recollect.orchestrator.memories.accesses import AccessLog
from recollect.orchestrator.memories.drafts import Drafting
from recollect.orchestrator.memories.keys import Keys
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import CachedMemory
from recollect.orchestrator.memories.scrubbing import Scrubbing
from recollect.orchestrator.memories.strength import Fading
from recollect.orchestrator.memories.typed_memories import TypedMemories
from recollect.orchestrator.operational.living import Living
from recollect.orchestrator.operational.opening import open_operational
from recollect.orchestrator.operational.state import OperationalReading
from recollect.orchestrator.redis.beside import RedisBeside
from recollect.orchestrator.running.opening import open_storage, search_parts
from recollect.orchestrator.running.sharing import echoes_of, temporary_of
from recollect.orchestrator.search.authors import Authors
from recollect.orchestrator.search.filters import FilterCompiler
from recollect.orchestrator.search.past import PastSearch
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.search.similar import Similar
from recollect.orchestrator.services.deletion import DeletionService
from recollect.orchestrator.serving.dispatch import Dispatcher
from recollect.orchestrator.serving.idempotency import Prefetch
from recollect.orchestrator.sessions.state import States
from recollect.orchestrator.troubles.error_bus import OWN, ErrorBus
from recollect.orchestrator.troubles.error_keeping import ErrorKeeping
from recollect.orchestrator.troubles.trouble import Troubled
from recollect.orchestrator.trust.secret_policy import policy_of
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.vectors.faiss_indexes import FaissIndexes
from recollect.orchestrator.vectors.late_embedding import LateEmbedding
from recollect.orchestrator.vectors.model_following import ModelFollowing
from recollect.orchestrator.vectors.reembedding import Reembedding
from recollect.orchestrator.working.workflow import Workflow

ROWS_CACHED_MAX = 20_000
ROWS_CACHED_BYTES_MAX = 64_000_000
"""So much is kept of large memories too, which would be a gigabyte by their number alone."""


class Parts:
    """What services and background work share, each made once; nothing is at work yet."""

    dispatcher: Dispatcher
    """There as soon as all services are made; whoever needs it asks for it later."""

    def __init__(self, settings: Settings, clock: Clock, own_keys: OwnKeys | None = None) -> None:
        self.settings = settings
        self.clock = clock
        self.own_keys = own_keys
        self.secrets = policy_of(settings.trust.secrets)
        self.validator = Validator(settings.limits, self.secrets)
        self.ids = IdSource(clock)
        # Apart from the ids of memories, which the writer's thread makes.
        self.event_ids = IdSource(clock)
        self.fading = Fading(settings.decay)
        self.drafting = Drafting(self.validator, self.fading)
        self.counter = counter_of(settings.context.tokenizer)
        self.redis = RedisBeside(settings, time.monotonic)
        self._open_store()
        self._attend_to_vectors()
        self._let_in()
        self._read_and_write()
        background: tuple[Troubled, ...] = (
            self.providers,
            self.late,
            self.reembedding,
            self.following,
            self.scrubbing,
            self.feed,
            self.redis.link,
        )
        for part in background:
            part.trouble = self.trouble

    def draining(self) -> bool:
        """Whether nothing new is begun any more."""
        return self.dispatcher.draining

    def trouble(self, code: str, message: str) -> None:
        """Tell the error bus what went wrong in the background."""
        self.errors.report(OWN, code, message, self.clock.now_us())

    async def _forget_outside(self) -> None:
        """Something was purged: nothing that tells of a text is left with others."""
        await self.redis.forget_vectors()
        if self.echoes is not None:
            await self.echoes.forget()

    def _open_store(self) -> None:
        """The storage, and the memories in it."""
        settings = self.settings
        searching = search_parts(settings, random.Random())
        self.indexes = searching.indexes
        self.lexical = searching.lexical
        self.nearest = searching.nearest
        self.providers = Providers(settings.embedding, self.indexes.make, shared=self.redis.cache)
        # Until the store has said which model it works with, there is none.
        self.meanings = Meanings(
            Providers(settings.embedding, FaissIndexes(settings.index, None).make).meaning(
                HashedEmbedder(), asyncio.get_running_loop()
            ),
            settings.embedding.wait_ms / 1000,
        )
        self.storage = open_storage(settings, Prefetch(self.meanings), [self.lexical.seal])
        # Where others may write too, a row kept here could be out of date.
        self.cache: LocalCache[CachedMemory] = LocalCache(
            ROWS_CACHED_MAX if self.storage.inline_reads else 0, ROWS_CACHED_BYTES_MAX
        )
        self.errors = ErrorBus(settings.errors.kept_max)
        self.keeping = ErrorKeeping(self.errors, self.storage, settings.errors.kept_max)
        self.authors = Authors(alone=self.storage.inline_reads)
        self.store = MemoryStore(self.meanings, self.cache, self.ids, self.authors)
        # Only where reads are at hand is the store this orchestrator's own.
        self.line = None if self.storage.inline_reads else self.redis.line()
        self.echoes = echoes_of(
            settings.trust, self.cache if self.storage.inline_reads else None, self.line
        )
        self.scoping = Scoping(FilterCompiler(searching.paths), self.validator)

    def _attend_to_vectors(self) -> None:
        """What becomes of vectors, and of what is left of memories that were purged."""
        self.late = LateEmbedding(self.storage, self.store)
        self.reembedding = Reembedding(self.storage, self.meanings, self.indexes)
        self.following = ModelFollowing(
            self.storage, self.meanings, self.providers, self.indexes, self.reembedding
        )
        self.scrubbing = Scrubbing(
            self.storage, self.lexical, self.meanings, self.clock, self._forget_outside
        )
        self.store.erased = self.scrubbing.note

    def _let_in(self) -> None:
        """Who may do what, and who waits for what."""
        self.room = WaitingRoom(self.settings.network.waiting_max)
        self.feed = LiveFeed(self.storage, self.room)
        self.refusals = RefusalLog(self.storage)
        self.attempts = Attempts(self.refusals, self.clock, time.monotonic)
        local_key = self.own_keys.local.public_key if self.own_keys else None
        self.keyring = Keyring(self.storage, local_key)
        self.keyring.on_change = lambda: self.room.recheck(self.keyring.check_still_allowed)
        self.writes = RecheckedWrites(self.storage, self.keyring.check_still_allowed)

    def _read_and_write(self) -> None:
        """What several services do alike with memories, and what is noted of it."""
        settings, storage, store = self.settings, self.storage, self.store
        self.accesses = AccessLog(
            storage, self.fading, self.cache, entries_max=settings.decay.access_buffer_max
        )
        self.reuse = ReuseLog(storage)
        self.questions = Questions(self.clock, settings.embedding.query_wait_ms / 1000)
        self.past = PastSearch(store, self.lexical, self.nearest)
        self.similar = Similar(store, self.nearest, self.scoping, self.accesses, self.questions)
        self.keys = Keys(store, self.validator)
        self.typed = TypedMemories(store, self.drafting, self.keys)
        self.deletion = DeletionService(store, self.validator, self.scrubbing.finished)
        self.operational = open_operational(settings, self.event_ids, self.redis.link)
        store.forgotten = self.operational.discard
        self.operational_reading = OperationalReading(self.operational, Living(storage))
        self.workflow = Workflow(settings.workflow.phases)
        temporary = temporary_of(settings.sessions, self.line)
        self.states = States(self.validator, settings.sessions, temporary)
        self.readers = Readers(settings.documents)
        self.undoing = Undoing(storage, self.writes, store, self.drafting, self.clock)
        self.running = Running(
            storage, self.writes, self.undoing, self.ids, self.clock, alone=storage.inline_reads
        )
