"""The model behind the vectors: exchanging it."""

from __future__ import annotations

import asyncio

from recollect.models.errors import ModelError
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.embedding.meaning import Meaning, Meanings
from recollect.orchestrator.embedding.providers import Providers
from recollect.orchestrator.embedding.specs import EmbedderSpec
from recollect.orchestrator.vectors.reembedding import Reembedding
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operations import Reembed


class EmbeddingService:
    """Starts re-embedding."""

    def __init__(self, providers: Providers, meanings: Meanings, reembedding: Reembedding) -> None:
        self._providers = providers
        self._meanings = meanings
        self._reembedding = reembedding

    @reads(Reembed)
    async def reembed(self, call: Call, operation: Reembed) -> records.ReembeddingStarted:
        spec = EmbedderSpec(operation.provider, operation.model, operation.dimensions)
        try:
            embedder = await asyncio.to_thread(self._providers.embedder, spec)
        except ModelError as error:
            raise InvalidArgument(error.message, field="model") from error
        if embedder.model == self._meanings.current.model and (
            not self._reembedding.running or await self._reembedding.give_up()
        ):
            return {"status": "success", "model": embedder.model, "state": "done"}
        if self._reembedding.running:
            state = self._reembedding.describe()
            if state.get("target") == embedder.model:
                return {"status": "success", "model": embedder.model, "state": "running"}
            raise InvalidArgument(
                f"The memories are being embedded with {state.get('target')}; wait until that is "
                f"done, as `recollect stats` shows, or ask for {self._meanings.current.model} to "
                "stay with that.",
                field="model",
            )
        target = self._providers.meaning(embedder, asyncio.get_running_loop())

        async def make() -> Meaning:
            return target

        self._reembedding.start(spec, make)
        return {"status": "success", "model": embedder.model, "state": "running"}
