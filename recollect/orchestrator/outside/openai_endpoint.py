"""An HTTP endpoint that speaks OpenAI's protocol, asked with care.

An attempt that may succeed the next time is made again, after the wait that the server asks for or
a jittered, growing one; a breaker spares a server that is away. A server may also answer with an
error as JSON or as a web page of some proxy. All that becomes an answer or one error of ours. The
key is passed in, sent to the server, and shown nowhere.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from recollect.models.errors import ExtraMissing
from recollect.orchestrator.outside.breaker import Breaker
from recollect.protocol.errors import InvalidArgument, Unavailable

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

BACKOFF_MS_MAX = 10_000
RETRY_AFTER_S_MAX = 30.0
"""A server that asks for a longer wait is taken to be away."""
DETAIL_CHARS_MAX = 300
# A server that is busy, restarting or behind a proxy that gave up: it may answer the next time.
TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})


class Transient(Exception):
    """An attempt failed in a way that the next one may not."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Kind(msgspec.Struct, frozen=True):
    """What an endpoint is for, in words for people."""

    name: str
    """Such as: embedding server."""
    user: str
    """Such as: An OpenAI-compatible embedder."""
    url_setting: str
    key_setting: str
    error: type[Unavailable]
    """What is raised when it does not serve."""
    advice: dict[int, str]
    """What to do about a status."""


class Endpoint:
    """One server, asked from any thread."""

    def __init__(
        self,
        kind: Kind,
        url: str,
        key: str | None,
        *,
        timeout_s: float,
        attempts_max: int,
        answer_bytes_max: int,
        backoff_ms: int = 250,
        breaker_fail_max: int = 5,
        breaker_reset_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
        randomness: random.Random | None = None,
    ) -> None:
        self._kind = kind
        self._timeout_s = timeout_s
        self._attempts_max = attempts_max
        self._answer_bytes_max = answer_bytes_max
        self._backoff_ms = backoff_ms
        self._breaker = Breaker(fail_max=breaker_fail_max, reset_s=breaker_reset_s, clock=clock)
        self._clock = clock
        self._closing = threading.Event()
        self._sleep = sleep or self._closing.wait
        self._random = randomness or random.Random()
        self._key = (key or "").strip()
        self._client = _client(kind, url, self._key, timeout_s)
        self._lock = threading.Lock()  # guards the counts
        self._requests = self._retries = self._failures = 0
        self._last_error = ""

    def ask(self, path: str, body: bytes, decode: Callable[[bytes], T]) -> T:
        """What the server answers, decoded; decoding may find that it is worth another attempt."""
        for attempt in range(self._attempts_max):
            self._check_circuit()
            try:
                answer = decode(self._attempt(path, body))
            except Transient as error:
                self._breaker.failed()
                wait_s = self._wait_s(attempt, error)
                with self._lock:
                    self._failures += 1
                    self._retries += wait_s is not None
                if wait_s is None:
                    raise self._away(error, attempt + 1) from None
                self._sleep(wait_s)
            except Unavailable as error:
                # It answered: the line is good, and another attempt would get the same answer.
                self._breaker.succeeded()
                with self._lock:
                    self._failures += 1
                raise self._kind.error(self._secretless(error.message), **error.details) from None
            else:
                self._breaker.succeeded()
                return answer
        raise AssertionError("the last attempt returns or raises")

    def usage(self) -> dict[str, Any]:
        """How often it was asked."""
        with self._lock:
            return {
                "requests": self._requests,
                "retries": self._retries,
                "failures": self._failures,
                "breaker": self._breaker.describe(),
            }

    def close(self) -> None:
        """End the waits between attempts, then the connections."""
        self._closing.set()
        self._client.close()

    def _attempt(self, path: str, body: bytes) -> bytes:
        import httpx

        with self._lock:
            self._requests += 1
        # The client's own timeout is for each step; a server that drips is stopped by this one.
        until_s = self._clock() + self._timeout_s
        received = bytearray()
        try:
            with self._client.stream("POST", path, content=body) as response:
                for chunk in response.iter_bytes():
                    received += chunk
                    if len(received) > self._answer_bytes_max:
                        raise Transient(f"its answer has more than {self._answer_bytes_max} bytes")
                    if self._clock() > until_s:
                        raise Transient(f"its answer took more than {self._timeout_s:g} s")
        except httpx.TimeoutException as error:
            raise Transient(f"no answer came within {self._timeout_s:g} s") from error
        except (httpx.HTTPError, RuntimeError) as error:  # the latter from a client that is closed
            raise Transient(f"{type(error).__name__}: {error}") from error
        if response.status_code != 200:
            raise refusal(self._kind, response.status_code, response.headers, bytes(received))
        return bytes(received)

    def _check_circuit(self) -> None:
        wait_s = self._breaker.wait_s()
        if wait_s > 0:
            raise self._kind.error(
                f"The {self._kind.name} at {self._client.base_url} was not asked, because it "
                f"failed lately: {self._last_error}. The next try is in {wait_s:.1f} s.",
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

    def _away(self, error: Transient, attempts: int) -> Unavailable:
        details: dict[str, Any] = {"attempts": attempts}
        if error.retry_after_s is not None:
            details["retry_after_ms"] = int(error.retry_after_s * 1000)
        self._last_error = self._secretless(str(error))
        return self._kind.error(
            f"The {self._kind.name} at {self._client.base_url} did not serve, asked "
            f"{'once' if attempts == 1 else f'{attempts} times'}: {self._last_error}.",
            **details,
        )

    def _secretless(self, words: str) -> str:
        """The same words without our key, should the server have put it there."""
        return words.replace(self._key, "[key]") if self._key else words


def encodable(text: str) -> str:
    """The text with lone surrogates replaced, which JSON cannot carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def refusal(kind: Kind, status: int, headers: Mapping[str, str], body: bytes) -> Exception:
    """The error for an answer whose status is not 200."""
    code, detail = _detail(body)
    if status == 429 and code == "insufficient_quota":
        return kind.error(
            f"The {kind.name} refused (429): {detail}. {kind.advice[402]}", http_status=status
        )
    if status in TRANSIENT_STATUSES or status >= 500:
        return Transient(f"it answered {status}: {detail}", retry_after_s=retry_after_s(headers))
    advice = kind.advice.get(status, f"Check {kind.url_setting}.")
    if 300 <= status < 400:
        detail = f"moved to {headers.get('location', 'another address')}"
    return kind.error(f"The {kind.name} refused ({status}): {detail}. {advice}", http_status=status)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the server asks us to wait; a date is read against the server's own clock."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        asked = headers.get("retry-after", "")
        if asked.replace(".", "", 1).isdigit():
            return float(asked)
        wait = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, wait.total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _detail(body: bytes) -> tuple[str, str]:
    """The server's own code and words for an error, as far as they can be told."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        told = None
    error = told.get("error", told) if isinstance(told, dict) else told
    if isinstance(error, dict):
        code = str(error.get("code") or error.get("type") or "")
        text = str(error.get("message") or error.get("detail") or code or "no reason given")
    else:
        code, text = "", str(error) if isinstance(error, str) else "no reason given"
    return code, " ".join(text.split())[:DETAIL_CHARS_MAX].rstrip(".")


def _client(kind: Kind, url: str, key: str, timeout_s: float) -> httpx.Client:
    try:
        import httpx
    except ImportError as error:
        raise ExtraMissing(
            f"{kind.user} needs httpx: pip install 'recollect[openai]'", package="httpx"
        ) from error

    if not key.isascii() or not key.isprintable():
        # Said here, because the HTTP library would show the key in its own error.
        raise InvalidArgument(
            f"The key of the {kind.name} has characters that no key has; copy it anew.",
            field=kind.key_setting,
        )
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise _wrong_url(kind) from error
    if base.scheme not in ("http", "https") or not base.host or base.userinfo or base.query:
        raise _wrong_url(kind)
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    return httpx.Client(base_url=base, headers=headers, timeout=timeout_s)


def _wrong_url(kind: Kind) -> InvalidArgument:
    return InvalidArgument(
        f"{kind.url_setting} is not a plain web address such as https://api.openai.com/v1, "
        "without user, password or query. A key belongs into an environment variable.",
        field=kind.url_setting,
    )
