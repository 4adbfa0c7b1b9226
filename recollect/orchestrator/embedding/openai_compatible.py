"""An embedder behind any HTTP endpoint that speaks OpenAI's protocol.

Texts go in batches; an attempt that may succeed the next time is made again, after the wait that
the server asks for or a jittered, growing one; a breaker spares a server that is away. The key is
passed in, sent to the server, and shown nowhere.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.models.errors import ExtraMissing
from recollect.orchestrator.embedding.breaker import Breaker
from recollect.orchestrator.embedding.interface import Kind, Vectors
from recollect.orchestrator.embedding.openai_wire import Transient, decode, encode, refusal
from recollect.protocol.errors import EmbedderUnavailable, InvalidArgument

if TYPE_CHECKING:
    import httpx

TEXT_CHARS_MAX = 8_000
"""What is longer is cut, as local models do: in any script it stays under 8,192 tokens."""
BATCH_CHARS_MAX = 250_000
"""OpenAI takes 300,000 tokens a request; a character is seldom more than one."""
ANSWER_BYTES_MAX = 256 * 1024 * 1024
BACKOFF_MS_MAX = 10_000
RETRY_AFTER_S_MAX = 30.0
"""A server that asks for a longer wait is taken to be away."""


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
        self._timeout_s = timeout_s
        self._attempts_max = attempts_max
        self._backoff_ms = backoff_ms
        self._price_per_million_tokens = price_per_million_tokens
        self._breaker = Breaker(fail_max=breaker_fail_max, reset_s=breaker_reset_s, clock=clock)
        self._clock = clock
        self._closing = threading.Event()
        self._sleep = sleep or self._closing.wait
        self._random = randomness or random.Random()
        self._key = (api_key or "").strip()
        self._client = _client(url, self._key, timeout_s)
        self._lock = threading.Lock()  # guards the length that is learnt, and the counts
        self._requests = self._retries = self._failures = self._texts = self._tokens = 0
        self._last_error = ""
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
        asked = [prefix + _encodable(texts[place][:TEXT_CHARS_MAX]) for place in places]
        parts = [self._ask(batch) for batch in self._batches(asked)]
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        if parts:
            vectors[places] = np.concatenate(parts)
        return vectors

    def usage(self) -> dict[str, Any]:
        """What was asked, and what it cost."""
        with self._lock:
            return {
                "requests": self._requests,
                "retries": self._retries,
                "failures": self._failures,
                "texts": self._texts,
                "tokens": self._tokens,
                "cost": self._tokens * self._price_per_million_tokens / 1_000_000,
                "breaker": self._breaker.describe(),
            }

    def close(self) -> None:
        """End the waits between attempts, then the connections."""
        self._closing.set()
        self._client.close()

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
        for attempt in range(self._attempts_max):
            self._check_circuit()
            try:
                vectors, tokens = self._attempt(body, len(texts))
            except Transient as error:
                self._breaker.failed()
                wait_s = self._wait_s(attempt, error)
                with self._lock:
                    self._failures += 1
                    self._retries += wait_s is not None
                if wait_s is None:
                    raise self._away(error, attempt + 1) from None
                self._sleep(wait_s)
            except EmbedderUnavailable as error:
                # It answered: the line is good, and another attempt would get the same answer.
                self._breaker.succeeded()
                with self._lock:
                    self._failures += 1
                raise EmbedderUnavailable(
                    self._secretless(error.message), **error.details
                ) from None
            else:
                self._breaker.succeeded()
                self._learn(vectors.shape[1])
                with self._lock:
                    self._texts += len(texts)
                    self._tokens += tokens
                return vectors
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, body: bytes, count: int) -> tuple[Vectors, int]:
        import httpx

        with self._lock:
            self._requests += 1
        # The client's own timeout is for each step; a server that drips is stopped by this one.
        until_s = self._clock() + self._timeout_s
        received = bytearray()
        try:
            with self._client.stream("POST", "embeddings", content=body) as response:
                for chunk in response.iter_bytes():
                    received += chunk
                    if len(received) > ANSWER_BYTES_MAX:
                        raise Transient(f"its answer has more than {ANSWER_BYTES_MAX} bytes")
                    if self._clock() > until_s:
                        raise Transient(f"its answer took more than {self._timeout_s:g} s")
        except httpx.TimeoutException as error:
            raise Transient(f"no answer came within {self._timeout_s:g} s") from error
        except (httpx.HTTPError, RuntimeError) as error:  # the latter from a client that is closed
            raise Transient(f"{type(error).__name__}: {error}") from error
        if response.status_code != 200:
            raise refusal(response.status_code, response.headers, bytes(received))
        return decode(bytes(received), count)

    def _check_circuit(self) -> None:
        wait_s = self._breaker.wait_s()
        if wait_s > 0:
            raise EmbedderUnavailable(
                f"The embedding server at {self._client.base_url} was not asked, because it failed "
                f"lately: {self._last_error}. The next try is in {wait_s:.1f} s.",
                retry_after_ms=int(wait_s * 1000),
            )

    def _wait_s(self, attempt: int, error: Transient) -> float | None:
        """How long to wait before the next attempt; None if there is none."""
        if attempt + 1 >= self._attempts_max or self._closing.is_set() or self._breaker.is_open():
            return None
        if error.retry_after_s is not None:
            return error.retry_after_s if error.retry_after_s <= RETRY_AFTER_S_MAX else None
        longest_ms = min(BACKOFF_MS_MAX, self._backoff_ms * 2.0**attempt)
        return self._random.uniform(0.5, 1.0) * longest_ms / 1000

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

    def _away(self, error: Transient, attempts: int) -> EmbedderUnavailable:
        details: dict[str, Any] = {"attempts": attempts}
        if error.retry_after_s is not None:
            details["retry_after_ms"] = int(error.retry_after_s * 1000)
        self._last_error = self._secretless(str(error))
        return EmbedderUnavailable(
            f"The embedding server at {self._client.base_url} did not serve, asked "
            f"{'once' if attempts == 1 else f'{attempts} times'}: {self._last_error}.",
            **details,
        )

    def _secretless(self, words: str) -> str:
        """The same words without our key, should the server have put it there."""
        return words.replace(self._key, "[key]") if self._key else words


def _client(url: str, key: str, timeout_s: float) -> httpx.Client:
    try:
        import httpx
    except ImportError as error:
        raise ExtraMissing(
            "An OpenAI-compatible embedder needs httpx: pip install 'recollect[openai]'",
            package="httpx",
        ) from error

    if not key.isascii() or not key.isprintable():
        # Said here, because the HTTP library would show the key in its own error.
        raise InvalidArgument(
            "The key of the embedding server has characters that no key has; copy it anew.",
            field="embedding.openai_key_variable",
        )
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise _wrong_url() from error
    if base.scheme not in ("http", "https") or not base.host or base.userinfo or base.query:
        raise _wrong_url()
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    return httpx.Client(base_url=base, headers=headers, timeout=timeout_s)


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced, which JSON cannot carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _wrong_url() -> InvalidArgument:
    return InvalidArgument(
        "embedding.openai_url is not a plain web address such as https://api.openai.com/v1, "
        "without user, password or query. A key belongs into an environment variable.",
        field="embedding.openai_url",
    )
