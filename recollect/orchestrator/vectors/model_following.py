"""Follows the model of a store that several orchestrators share.

One of them exchanges it; the others notice within a second and take the new one into use as well.
What they wrote with the old one in between is embedded anew.
"""

from __future__ import annotations

import asyncio

import structlog

from recollect.orchestrator.embedding.choosing import ACTIVE
from recollect.orchestrator.embedding.meaning import Meaning, Meanings
from recollect.orchestrator.embedding.providers import Providers
from recollect.orchestrator.embedding.specs import EmbedderSpec
from recollect.orchestrator.storage.interface import Storage
from recollect.orchestrator.storage.properties import get_property
from recollect.orchestrator.troubles.trouble import Trouble, unheard
from recollect.orchestrator.vectors.indexes import VectorIndexes
from recollect.orchestrator.vectors.reembedding import Reembedding
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

LOOK_S = 1.0
RETRY_S = 30.0


class ModelFollowing:
    """Looks, for as long as it runs, which model is in use. Lives on the event loop."""

    def __init__(
        self,
        storage: Storage,
        meanings: Meanings,
        providers: Providers,
        indexes: VectorIndexes,
        reembedding: Reembedding,
    ) -> None:
        self._storage = storage
        self._meanings = meanings
        self._providers = providers
        self._indexes = indexes
        self._reembedding = reembedding
        self.trouble: Trouble = unheard
        # What the store said last, and was followed.
        self._known = ""
        # What was in use before, until all that was made with it is seen to.
        self._left: list[Meaning] = []

    async def run(self, known: str) -> None:
        """Follow from the model that the store was started with."""
        self._known = known
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
                await self._indexes.keep_up(self._storage, self._meanings.current)
            except RecollectError as error:
                log.warning("The store's model is not in use.", action="follow", reason=str(error))
                self.trouble("embedder_unavailable", error.message)
                await asyncio.sleep(RETRY_S)

    async def _look(self) -> None:
        said = await self._storage.read(lambda session: get_property(session, ACTIVE))
        # Whoever exchanges the model knows which one is in use.
        if said is None or said == self._known or self._reembedding.running:
            return
        spec = EmbedderSpec.from_text(said)
        embedder = await asyncio.to_thread(self._providers.embedder, spec)
        if embedder.model != self._meanings.current.model:
            meaning = self._providers.meaning(embedder, asyncio.get_running_loop())
            self._left.append(self._meanings.current)
            self._meanings.current = meaning
            log.info("The store's new model is in use.", action="follow", model=meaning.model)
        if self._left:
            # Nothing is written with the old one any more; what was, is dropped and made anew.
            await self._indexes.load(self._storage, self._meanings.current)
        # Whatever failed before this is done again.
        self._known = said
        while self._left:
            old = self._left.pop()
            await old.embedding.retire()
            old.index.close()
