"""How much is let in at once, and how often one caller."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recollect.protocol.errors import Overloaded, RateLimited

CALLERS_MAX = 10_000
RETRY_AFTER_MS = 1_000


class Rates:
    """A bucket of requests for each caller, refilled evenly; it holds those of one second.

    The callers that were not heard of for longest are forgotten, with full buckets.
    """

    def __init__(self, per_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._burst = max(1.0, per_s)
        self._now_s = now_s
        # What each caller has left, and when that was so.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Count a request of a caller; raises RateLimited."""
        now_s = self._now_s()
        left, at_s = self._left.pop(caller, (self._burst, now_s))
        left = min(self._burst, left + (now_s - at_s) * self._per_s)
        allowed = left >= 1.0
        self._left[caller] = (left - 1.0 if allowed else left, now_s)
        if len(self._left) > CALLERS_MAX:
            self._left.popitem(last=False)
        if not allowed:
            raise RateLimited(
                f"More than {self._per_s:g} requests a second: wait a little.",
                limit="gateway.requests_per_s",
                retry_after_ms=max(1, round((1.0 - left) / self._per_s * 1000)),
            )


class Admission:
    """Lets requests in, up to a number in work at once. Lives on the event loop."""

    def __init__(self, requests_max: int, requests_per_s: float | None) -> None:
        self._requests_max = requests_max
        self._rates = Rates(requests_per_s) if requests_per_s is not None else None
        self._in_work = 0

    def count(self, caller: str) -> None:
        """Count a request against the rate of its caller; raises RateLimited."""
        if self._rates is not None:
            self._rates.take(caller)

    def check_room(self) -> None:
        """Raises Overloaded where no more are let in now."""
        if self._in_work >= self._requests_max:
            raise Overloaded(
                f"{self._in_work} requests are in work already; try again shortly.",
                limit="gateway.requests_max",
                retry_after_ms=RETRY_AFTER_MS,
            )

    def begin(self) -> None:
        """Let one in that was counted, and must `leave`; raises Overloaded."""
        self.check_room()
        self._in_work += 1

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Let one in that was counted, for as long as this is entered; raises Overloaded."""
        self.begin()
        try:
            yield
        finally:
            self.leave()

    def enter(self, caller: str) -> None:
        """Count one and let it in, who must `leave`; raises Overloaded or RateLimited."""
        self.check_room()
        self.count(caller)
        self._in_work += 1

    def leave(self) -> None:
        self._in_work -= 1
