"""An embedder behind any HTTP endpoint that speaks OpenAI's protocol. Texts go in batches."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from recollect.orchestrator.embedding.interface import Kind, Vectors
from recollect.orchestrator.embedding.openai_wire import SERVER, decode, encode
from recollect.orchestrator.outside.openai_endpoint import Endpoint, encodable
from recollect.protocol.errors import EmbedderUnavailable

TEXT_CHARS_MAX = 8_000
"""What is longer is cut, as local models do: in any script it stays under 8,192 tokens."""
BATCH_CHARS_MAX = 250_000
"""OpenAI takes 300,000 tokens a request; a character is seldom more than one."""
ANSWER_BYTES_MAX = 256 * 1024 * 1024


class OpenAICompatibleEmbedder:
    """Unit vectors from `POST {url}/embeddings`."""

    inline = False

    def __init__(
        self,
        url: str,
        model: str,
        api_key: str | None,
        *,
        dimensions: int | None = None,
        dimensions_known: int | None = None,
        query_prefix: str = "",
        document_prefix: str = "",
        batch_texts_max: int = 128,
        timeout_s: float = 30.0,
        attempts_max: int = 4,
        backoff_ms: int = 250,
        price_per_million_tokens: float = 0.0,
        breaker_fail_max: int = 5,
        breaker_reset_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
        randomness: random.Random | None = None,
    ) -> None:
        """`dimensions` are asked of the server; `dimensions_known` are what it gave before.

        With neither, the first answer tells: call `probe` before `model` and `dimensions` are used.
        """
        self._name = model
        self._asked = dimensions
        self._prefixes: dict[Kind, str] = {"query": query_prefix, "document": document_prefix}
        self._batch_texts_max = batch_texts_max
        self._price_per_million_tokens = price_per_million_tokens
        self._endpoint = Endpoint(
            SERVER,
            url,
            api_key,
            timeout_s=timeout_s,
            attempts_max=attempts_max,
            answer_bytes_max=ANSWER_BYTES_MAX,
            backoff_ms=backoff_ms,
            breaker_fail_max=breaker_fail_max,
            breaker_reset_s=breaker_reset_s,
            clock=clock,
            sleep=sleep,
            randomness=randomness,
        )
        self._lock = threading.Lock()  # guards the length that is learnt, and the counts
        self._texts = self._tokens = 0
        self.dimensions = 0
        self.model = f"openai/{model}"
        if dimensions or dimensions_known:
            self._learn(dimensions or dimensions_known or 0)

    def probe(self) -> int:
        """Ask for one vector, to learn how long they are."""
        self.embed_now(["probe"])
        return self.dimensions

    def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        """One row a text; a blank text, which servers refuse, is the zero vector."""
        prefix = self._prefixes[kind]
        places = [place for place, text in enumerate(texts) if text.strip()]
        if texts and not places and self.dimensions == 0:
            self.probe()
        asked = [prefix + encodable(texts[place][:TEXT_CHARS_MAX]) for place in places]
        parts = [self._ask(batch) for batch in self._batches(asked)]
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        if parts:
            vectors[places] = np.concatenate(parts)
        return vectors

    def usage(self) -> dict[str, Any]:
        """What was asked, and what it cost."""
        with self._lock:
            texts, tokens = self._texts, self._tokens
        cost = tokens * self._price_per_million_tokens / 1_000_000
        return {**self._endpoint.usage(), "texts": texts, "tokens": tokens, "cost": cost}

    def close(self) -> None:
        """End the waits between attempts, then the connections."""
        self._endpoint.close()

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        chars = 0
        for text in texts:
            if batch and (
                len(batch) >= self._batch_texts_max or chars + len(text) > BATCH_CHARS_MAX
            ):
                yield batch
                batch, chars = [], 0
            batch.append(text)
            chars += len(text)
        if batch:
            yield batch

    def _ask(self, texts: list[str]) -> Vectors:
        body = encode(self._name, texts, self._asked)
        count = len(texts)
        vectors, tokens = self._endpoint.ask("embeddings", body, lambda got: decode(got, count))
        self._learn(vectors.shape[1])
        with self._lock:
            self._texts += count
            self._tokens += tokens
        return vectors

    def _learn(self, dimensions: int) -> None:
        with self._lock:
            if self.dimensions == 0:
                name = f"openai/{self._name}/{dimensions}"
                if any(self._prefixes.values()):
                    told = "\0".join(self._prefixes.values()).encode()
                    name += f"/{blake2b(told, digest_size=4).hexdigest()}"
                self.model, self.dimensions = name, dimensions
            elif dimensions != self.dimensions:
                raise EmbedderUnavailable(
                    f"The embedding server gave vectors of {dimensions} numbers, not of "
                    f"{self.dimensions}. Set embedding.dimensions to what {self._name} gives.",
                    dimensions=dimensions,
                )
