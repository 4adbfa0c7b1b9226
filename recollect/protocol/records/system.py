"""The shapes of what the service says of itself."""

from __future__ import annotations

from typing import Any, TypedDict


class Pong(TypedDict):
    status: str
    ready: bool
    version: str
    protocol: int
    seq: int
    uptime_s: float
    now: str


class Stats(TypedDict):
    status: str
    memories: dict[str, Any]
    storage: dict[str, Any]
    index: dict[str, Any]
    embedding: dict[str, Any]
    requests: dict[str, Any]
    purges: dict[str, Any]
    """Whether all that was purged is wiped from the files, and if not, what hinders it."""
    cache: dict[str, Any]
    redis: dict[str, Any]
    """Whether there is a Redis, how it is, and what it was good for."""
    seq: int
    uptime_s: float


class ReembeddingStarted(TypedDict):
    status: str
    model: str
    state: str


class BackupMade(TypedDict):
    status: str
    path: str
    seq: int
    bytes: int
    sha256: str


class ErrorsReported(TypedDict):
    status: str
    accepted: int


class ErrorSeen(TypedDict):
    """One kind of error on the bus: how often and when it was seen."""

    source: str
    code: str
    message: str
    identity: str
    """Who reported it; what source it names is up to them."""
    context: dict[str, Any]
    count: int
    first_at: str
    last_at: str


class ErrorsListed(TypedDict):
    status: str
    errors: list[ErrorSeen]
    count: int
