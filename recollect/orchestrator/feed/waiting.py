"""Those who wait for the next change, found by what they wait for.

A change is asked about by its namespace and those above it, and once for all who want the same. So
a thousand who wait for something else cost a commit nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

from recollect.orchestrator.calls import Call
from recollect.orchestrator.feed.wanted import Wanted
from recollect.orchestrator.storage.interface import Change
from recollect.protocol.errors import Overloaded, RecollectError

RETRY_AFTER_MS = 1_000


class Waiter:
    """A call that waits for the first change behind a number that it wants."""

    __slots__ = ("after", "call", "future", "wanted")

    def __init__(self, call: Call, wanted: Wanted, after: int) -> None:
        self.call = call
        self.wanted = wanted
        self.after = after
        self.future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def wake(self, came: bool = True) -> None:
        if not self.future.done():
            self.future.set_result(came)


class WaitingRoom:
    """A bounded number of waiters. Touched by the event loop alone."""

    def __init__(self, waiting_max: int) -> None:
        self.waiting_max = waiting_max
        self.count = 0
        """Calls that wait or have waited, and are not answered yet."""
        self.closed = False
        # By one of their namespaces, None for everything; then by what they want.
        self._places: dict[str | None, dict[Wanted, set[Waiter]]] = {}

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._places)

    def enter(self) -> None:
        """Take a place until the call is answered, or refuse."""
        if self.count >= self.waiting_max:
            raise Overloaded(
                f"{self.count} readers wait for changes already; try again shortly.",
                limit="network.waiting_max",
                retry_after_ms=RETRY_AFTER_MS,
            )
        self.count += 1

    def leave(self) -> None:
        """Give the place back."""
        self.count -= 1

    async def wait(self, waiter: Waiter, seconds: float) -> bool:
        """Whether something came that the waiter may want, or it has to look again."""
        if self.closed:
            return False
        timer = asyncio.get_running_loop().call_later(seconds, waiter.wake, False)
        self._place(waiter)
        try:
            return await waiter.future and not self.closed
        finally:
            timer.cancel()
            self._displace(waiter)

    def offer(self, changes: Iterable[Change]) -> None:
        """Wake those who want one of these."""
        for change in changes:
            if change.outcome is None:
                for place in self._places_of(change.namespace):
                    for wanted, waiters in place.items():
                        if wanted.fits(change):
                            for waiter in waiters:
                                if change.seq > waiter.after:
                                    waiter.wake()

    def wake_all(self) -> None:
        """Have everybody look again."""
        for waiter in self._all():
            waiter.wake()

    def close(self) -> None:
        """Let nobody wait any more."""
        self.closed = True
        self.wake_all()

    def recheck(self, check_still_allowed: Callable[[Call], None]) -> None:
        """End the waiting of those who may no longer do what they might, or may do more."""
        for waiter in self._all():
            try:
                check_still_allowed(waiter.call)
            except RecollectError as error:
                if not waiter.future.done():
                    waiter.future.set_exception(error)

    def _places_of(self, namespace: str | None) -> Iterator[dict[Wanted, set[Waiter]]]:
        if (everywhere := self._places.get(None)) is not None:
            yield everywhere
        if namespace is not None and (len(self._places) > 1 or everywhere is None):
            end = len(namespace)
            while end > 0:
                if (place := self._places.get(namespace[:end])) is not None:
                    yield place
                end = namespace.rfind(":", 0, end)

    def _place(self, waiter: Waiter) -> None:
        for home in _homes(waiter):
            self._places.setdefault(home, {}).setdefault(waiter.wanted, set()).add(waiter)

    def _displace(self, waiter: Waiter) -> None:
        for home in _homes(waiter):
            place = self._places[home]
            waiters = place[waiter.wanted]
            waiters.discard(waiter)
            if not waiters:
                del place[waiter.wanted]
                if not place:
                    del self._places[home]

    def _all(self) -> list[Waiter]:
        return [
            waiter
            for place in self._places.values()
            for waiters in place.values()
            for waiter in waiters
        ]


def _homes(waiter: Waiter) -> tuple[str | None, ...]:
    # Of one who may read nothing there is no place that a change could be in; it waits all the
    # same, so that it cannot tell.
    homes = waiter.wanted.homes
    return (None,) if homes is None else homes or ("",)
