"""How fast an identity may ask: a bucket of tokens each, which fills with time."""

from __future__ import annotations

import math
from collections.abc import Callable

from recollect.orchestrator.access.identities import Identity
from recollect.protocol.errors import RateLimited

BURST_S = 1.0
BUCKETS_MAX = 10_000


class Bucket:
    """The tokens that are left to an identity."""

    __slots__ = ("at_s", "tokens")

    def __init__(self, tokens: float, at_s: float) -> None:
        self.tokens = tokens
        self.at_s = at_s


class Rates:
    """Counts requests by identity; only those that have a bound cost anything.

    The clock is a monotonic one, so that a jump of the wall clock neither opens nor shuts anything.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        # Touched by the event loop alone.
        self._buckets: dict[str, Bucket] = {}

    def take(self, identity: Identity) -> None:
        """Count one request, or refuse it."""
        rate = identity.requests_per_s
        if rate is None:
            return
        now_s = self._monotonic()
        size = max(1.0, rate * BURST_S)
        bucket = self._buckets.get(identity.name)
        if bucket is None:
            if len(self._buckets) >= BUCKETS_MAX:
                self._buckets.clear()
            bucket = self._buckets[identity.name] = Bucket(size, now_s)
        bucket.tokens = min(size, bucket.tokens + (now_s - bucket.at_s) * rate)
        bucket.at_s = now_s
        if bucket.tokens < 1.0:
            raise RateLimited(
                f"The identity {identity.name!r} may make {rate:g} requests a second; wait a "
                "moment.",
                limit="requests_per_s",
                retry_after_ms=math.ceil(1000 * (1.0 - bucket.tokens) / rate),
            )
        bucket.tokens -= 1.0
