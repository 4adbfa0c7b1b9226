"""Makes embedders from their descriptions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

from recollect.config.settings import EmbeddingSettings
from recollect.models.catalogue import CATALOGUE
from recollect.models.errors import ModelUnavailable
from recollect.models.locating import find
from recollect.orchestrator.cache.interface import ByteCache
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Embedder
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.pipeline import Embedding
from recollect.orchestrator.embedding.specs import HASHED_DIMENSIONS, EmbedderSpec
from recollect.orchestrator.search.ranking import passages
from recollect.orchestrator.search.vectors import VectorIndex
from recollect.orchestrator.troubles.trouble import Trouble, from_threads, unheard

MakeIndex = Callable[[Embedder, Trouble], VectorIndex]
"""Makes the index of a model's vectors."""


class Providers:
    """Embedders of every kind, and the meanings made of them."""

    def __init__(
        self,
        settings: EmbeddingSettings,
        make_index: MakeIndex,
        *,
        environ: Mapping[str, str] = os.environ,
        shared: ByteCache | None = None,
    ) -> None:
        """`shared` keeps the vectors of texts for all that have it."""
        self._settings = settings
        self._make_index = make_index
        self._environ = environ
        self._shared = shared
        self.trouble: Trouble = unheard

    def configured(self) -> EmbedderSpec:
        """What the settings ask for."""
        asked = self._settings
        if asked.provider == "hashed":
            return EmbedderSpec("hashed", dimensions=asked.dimensions or HASHED_DIMENSIONS)
        return EmbedderSpec(
            asked.provider,
            asked.model,
            asked.dimensions if asked.provider == "openai" else None,
            asked.query_prefix,
            asked.document_prefix,
        )

    def embedder(self, spec: EmbedderSpec, dimensions_known: int | None = None) -> Embedder:
        """The embedder of a description. It may take a second; raises a typed error if it cannot
        be had. If it is known how long its vectors are, an endpoint need not be there yet."""
        if spec.provider == "hashed":
            return HashedEmbedder(spec.dimensions or HASHED_DIMENSIONS)
        if spec.provider == "openai":
            return self._remote(spec, dimensions_known)
        return self._local(spec)

    def meaning(self, embedder: Embedder, loop: asyncio.AbstractEventLoop) -> Meaning:
        """An embedder at work, with the index of its vectors."""
        asked = self._settings
        embedding = Embedding(
            embedder,
            loop=loop,
            threads=asked.threads or os.cpu_count() or 1,
            batch_texts_max=asked.batch_texts_max,
            # Vectors of a model with 8-bit weights depend a little on what is embedded with them;
            # that of a query is to be the same whoever else asks.
            query_batch_texts_max=1,
            queue_texts_max=asked.queue_texts_max,
            cache_texts_max=asked.cache_texts_max,
            shared=self._shared,
        )
        trouble = from_threads(loop, lambda: self.trouble)
        return Meaning(embedding, self._make_index(embedder, trouble))

    def _local(self, spec: EmbedderSpec) -> Embedder:
        from recollect.orchestrator.embedding.onnx import OnnxEmbedder

        installed = find(spec.model, self._environ)
        if installed is None:
            how = f"run `recollect models install {spec.model}`"
            if spec.model not in CATALOGUE:
                how = "`recollect models list` shows those that can be"
            raise ModelUnavailable(
                f"The model {spec.model!r} is not installed: {how}, or name a folder with "
                "model.onnx and tokenizer.json.",
                model=spec.model,
            )
        traits = installed.traits
        return OnnxEmbedder(
            installed.folder,
            name=installed.name,
            query_prefix=_chosen(spec.query_prefix, traits.query_prefix),
            document_prefix=_chosen(spec.document_prefix, traits.document_prefix),
            pooling=traits.pooling,
            tokens_max=traits.tokens_max,
            split=passages,
        )

    def _remote(self, spec: EmbedderSpec, dimensions_known: int | None) -> Embedder:
        from recollect.orchestrator.embedding.openai_compatible import OpenAICompatibleEmbedder

        asked = self._settings
        embedder = OpenAICompatibleEmbedder(
            asked.openai_url,
            spec.model,
            self._environ.get(asked.openai_key_variable, ""),
            dimensions=spec.dimensions,
            dimensions_known=dimensions_known,
            query_prefix=spec.query_prefix or "",
            document_prefix=spec.document_prefix or "",
            timeout_s=asked.openai_timeout_s,
            attempts_max=asked.openai_attempts_max,
            price_per_million_tokens=asked.openai_price_per_million,
        )
        if not embedder.dimensions:
            embedder.probe()
        return embedder


def _chosen(given: str | None, known: str) -> str:
    return known if given is None else given
