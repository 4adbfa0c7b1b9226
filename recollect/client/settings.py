"""How a client behaves, as values: how long it waits, how often it tries, how much it opens."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from recollect.client.keys import Keys

DEFAULT_ENDPOINT = "tcp://127.0.0.1:7331"
ENDPOINT_VARIABLE = "RECOLLECT_ENDPOINT"
KEY_FILE_VARIABLE = "RECOLLECT_KEY_FILE"
BEARER_VARIABLE = "RECOLLECT_BEARER"


class Timeouts(msgspec.Struct, frozen=True):
    """How long to wait."""

    call_s: float = 10.0
    """For a whole call with its retries, unless the call brings a timeout of its own."""
    connect_s: float = 1.0
    """For somebody to listen at the endpoint, in one attempt."""


class Retry(msgspec.Struct, frozen=True):
    """How often to try, and how long to pause in between."""

    attempts_max: int = 4
    """Attempts of one call, the first included."""
    backoff_ms: int = 50
    """Pause before the second attempt; it doubles from there, with jitter."""
    backoff_ms_max: int = 2000
    """No pause is longer, unless the orchestrator asks for one."""


class Breaker(msgspec.Struct, frozen=True):
    """When to stop calling an orchestrator that does not answer, and when to try it again."""

    fail_max: int = 5
    """This many failed calls in a row open the circuit."""
    reset_timeout_s: float = 5.0
    """So long it stays open before one call may probe."""


class Pool(msgspec.Struct, frozen=True):
    """How many calls may be under way at once."""

    connections_max: int = 64
    """Connections of a blocking client: one for each thread that waits for an answer."""
    in_flight_max: int = 1024
    """Calls of an asyncio client that wait for an answer on its one connection."""


def endpoint_or_default(endpoint: str | None, keys: Keys | None = None) -> str:
    """The endpoint given, else the one in the environment, else the one in the key file, else the
    one on this machine."""
    named = keys.endpoint if keys is not None else None
    return endpoint or os.environ.get(ENDPOINT_VARIABLE) or named or DEFAULT_ENDPOINT


def bearer_or_default(bearer: str | None) -> str | None:
    """The bearer key given, else the one in the environment; None without one."""
    return bearer if bearer is not None else os.environ.get(BEARER_VARIABLE) or None
