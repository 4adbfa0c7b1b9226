"""Makes embedders from their descriptions."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from recollect.config.settings import EmbeddingSettings, IndexSettings
from recollect.models.catalogue import CATALOGUE
from recollect.models.errors import ModelUnavailable
from recollect.models.locating import find
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Embedder
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.pipeline import Embedding
from recollect.orchestrator.embedding.specs import HASHED_DIMENSIONS, EmbedderSpec
from recollect.orchestrator.search.ranking import passages
from recollect.orchestrator.search.vectors import VectorIndex

INDEX_FOLDER = "index"


class Providers:
    """Embedders of every kind, and the meanings made of them."""

    def __init__(
        self,
        settings: EmbeddingSettings,
        index: IndexSettings,
        data: Path | None,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings = settings
        self._index = index
        self._data = data
        self._environ = environ

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
        )
        folder = None
        if self._data is not None:
            folder = self._data / INDEX_FOLDER / folder_name(embedder.model)
        index = VectorIndex(
            embedder.dimensions,
            folder=folder,
            model=embedder.model,
            head_max=self._index.head_max,
        )
        return Meaning(embedding, index)

    def forget_other_indexes(self, model: str) -> None:
        """Remove the files of indexes that no model uses any more."""
        if self._data is not None and (self._data / INDEX_FOLDER).is_dir():
            for folder in (self._data / INDEX_FOLDER).iterdir():
                if folder.name != folder_name(model):
                    shutil.rmtree(folder, ignore_errors=True)

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


def folder_name(model: str) -> str:
    """The name of a model as that of a folder."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", model)


def _chosen(given: str | None, known: str) -> str:
    return known if given is None else given
