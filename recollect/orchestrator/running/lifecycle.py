"""An orchestrator from its start to its end, with what goes on in the background meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

import structlog

from recollect.config.settings import Settings
from recollect.orchestrator.access.own_keys import OwnKeys
from recollect.orchestrator.assembly.whole import assemble
from recollect.orchestrator.clock import Clock, keep_following
from recollect.orchestrator.embedding.choosing import (
    Choice,
    choose,
    read_known,
    remember,
    shadow_dimensions,
)
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.specs import EmbedderSpec
from recollect.orchestrator.memories.words_rebuilding import ensure_words
from recollect.orchestrator.operational.opening import name_store, take_up
from recollect.orchestrator.redis.live import Counters
from recollect.protocol.errors import RecollectError, StorageFailed

log = structlog.get_logger()

CHOICES_MAX = 10
LOOK_S = 1.0
NOTED_S_MAX = 5.0
"""How long a stop waits for what was noted to be written: a storage may never answer."""


class Orchestrator:
    """Answers through `dispatcher` from `start` to `stop`."""

    def __init__(self, settings: Settings, clock: Clock, own_keys: OwnKeys | None = None) -> None:
        self.parts = assemble(settings, clock, own_keys)
        self.dispatcher = self.parts.dispatcher
        self._background: list[asyncio.Task[None]] = []
        self._knows_keys = False

    async def know_keys(self) -> None:
        """Learn who is known by which key, and keep up with it. Once is enough; a server that asks
        for keys needs it before it lets anybody connect."""
        if self._knows_keys:
            return
        self._knows_keys = True
        await self.parts.keyring.load()
        self._background += [
            asyncio.create_task(self.parts.keyring.follow()),
            asyncio.create_task(self.parts.attempts.run()),
        ]

    async def start(self) -> None:
        """Make ready to answer."""
        parts = self.parts
        # Also where nobody is asked for a key: a request may carry a bearer key all the same.
        await self.know_keys()
        await parts.keeping.load()
        parts.redis.begin()
        choice = await self._choose_model()
        loaded = await parts.indexes.load(parts.storage, parts.meanings.current)
        index = parts.meanings.current.index
        vectors = await parts.storage.read(lambda session: index.seen_by(session).count())
        log.info(
            "The vector index is loaded.",
            action="load_index",
            model=parts.meanings.current.model,
            vectors=vectors,
            from_storage=loaded,
        )
        await ensure_words(parts.storage, parts.lexical)
        await parts.redis.tried()
        store_id = await name_store(parts.storage)
        parts.redis.take_part(store_id, self._count)
        await take_up(
            parts.operational,
            store_id,
            parts.storage,
            parts.clock,
            parts.settings.operational,
        )
        await parts.running.recover_if_possible()
        warming = parts.storage.read(parts.lexical.warm)
        warming.add_done_callback(lambda done: done.cancelled() or done.exception())
        unfinished = await parts.scrubbing.take_up()
        if choice.target is None or unfinished:
            # What a purge left in the index of the target is made anew without it.
            model = parts.meanings.current.model
            await asyncio.to_thread(parts.indexes.forget_others, model)
        if choice.target is not None:
            parts.reembedding.start(choice.target, partial(self._make_target, choice.target))
        else:
            self._background.append(asyncio.create_task(parts.reembedding.tidy()))
        self._background += [
            asyncio.create_task(keep_following(parts.clock)),
            asyncio.create_task(self._flush_accesses()),
            asyncio.create_task(parts.feed.follow()),
            asyncio.create_task(parts.keeping.run()),
            asyncio.create_task(parts.late.run()),
            asyncio.create_task(parts.scrubbing.run()),
            asyncio.create_task(parts.running.look_after()),
        ]
        if not parts.storage.inline_reads:
            # Others may exchange the model of this store.
            following = parts.following.run(choice.active.to_text())
            self._background.append(asyncio.create_task(following))
            self._background.append(asyncio.create_task(self._follow_changes()))

    async def _choose_model(self) -> Choice:
        """Start with the store's own model, or with the configured one if it has none."""
        parts = self.parts
        for _ in range(CHOICES_MAX):
            known = await parts.storage.read(read_known)
            choice = await asyncio.to_thread(
                choose, known, parts.providers.configured(), parts.providers.embedder
            )
            # Another orchestrator may have exchanged the model meanwhile.
            if await parts.storage.write(partial(remember, known, choice)):
                break
        else:
            raise StorageFailed("The model of the store is changed over and over; start again.")
        if choice.fallback_reason is not None:
            log.warning(
                "The configured embedding model is not in use.",
                action="choose_model",
                in_use=choice.embedder.model,
                reason=choice.fallback_reason,
            )
            parts.errors.report(
                "orchestrator",
                "embedder_unavailable",
                choice.fallback_reason,
                parts.clock.now_us(),
                context={"in_use": choice.embedder.model},
            )
        placeholder = parts.meanings.current
        parts.meanings.current = parts.providers.meaning(
            choice.embedder, asyncio.get_running_loop()
        )
        placeholder.embedding.close()
        placeholder.index.close()
        return choice

    def _count(self) -> Counters:
        """What it has done so far, for all to see."""
        requests = self.dispatcher.describe()
        return Counters(
            served=sum(requests["served"].values()),
            failed=requests["failed"],
            in_flight=requests["in_flight"],
            memories_added=self.parts.store.added,
        )

    async def _make_target(self, target: EmbedderSpec) -> Meaning:
        """The model that the store moves to, if it can be had."""
        dimensions = await self.parts.storage.read(shadow_dimensions)
        embedder = await asyncio.to_thread(self.parts.providers.embedder, target, dimensions)
        return self.parts.providers.meaning(embedder, asyncio.get_running_loop())

    async def stop(self) -> bool:
        """Answer what was accepted, write what was noted; whether that was done in time."""
        parts = self.parts
        for task in self._background:
            task.cancel()
        in_time = True
        try:
            async with asyncio.timeout(parts.settings.network.drain_s):
                await self.dispatcher.drained()
        except TimeoutError:
            in_time = False
        await parts.reembedding.stop()
        await parts.operational.stop()
        await parts.redis.stop()
        parts.attempts.flush()
        try:
            async with asyncio.timeout(NOTED_S_MAX):
                await parts.accesses.flush()
                await parts.reuse.flush()
                await parts.keeping.flush()
        except RecollectError as error:
            log.warning("Accesses were not written.", action="stop", reason=error.message)
        except TimeoutError:
            log.warning("Accesses were not written.", action="stop", reason="it took too long")
        await asyncio.to_thread(parts.readers.close)
        # Closing waits for the writer, which must be able to settle its futures meanwhile.
        await asyncio.to_thread(parts.storage.close)
        for meaning in parts.meanings.opened():
            meaning.embedding.close()
            await asyncio.to_thread(meaning.index.close)
        return in_time

    async def _follow_changes(self) -> None:
        """Know how far the store is, though only others write to it."""
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(RecollectError):
                await self.parts.storage.reached_seq()

    async def _flush_accesses(self) -> None:
        while True:
            await asyncio.sleep(self.parts.settings.decay.access_flush_ms / 1000)
            try:
                await self.parts.accesses.flush()
                await self.parts.reuse.flush()
            except RecollectError as error:
                log.warning("Accesses were not written.", action="flush", reason=error.message)
                self.parts.trouble(error.code, f"Accesses were not written: {error.message}")
