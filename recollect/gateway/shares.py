"""Places that are held for long, and how many of them one caller may hold: what one takes all of,
nobody else gets.

A caller is an identity, whichever of its keys it shows. Where there is none it is the address that
it comes from.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network
from urllib.parse import unquote

from recollect.client.encoding import Speaker
from recollect.gateway.asking import Backend
from recollect.protocol.errors import Overloaded
from recollect.protocol.operations import WhoAmI

RETRY_AFTER_MS = 5_000
SHARE = "gateway.share_max"
# Who has one address of IPv6 mostly has all of its network.
NETWORK_BITS = 64


class Shares:
    """Counts the places that are taken. Lives on the event loop."""

    def __init__(self, places_max: int, share_max: float, *, what: str, limit: str) -> None:
        """`what` holds the places, and `limit` is the setting that bounds them."""
        self._places_max = places_max
        self._share = max(1, math.floor(places_max * share_max))
        self._what = what
        self._limit = limit
        self._taken = 0
        self._by_caller: Counter[str] = Counter()

    def take(self, caller: str) -> None:
        """Take a place for a caller, who must `leave`; raises Overloaded."""
        if self._taken >= self._places_max:
            raise Overloaded(
                f"There are {self._taken} {self._what} already; try again shortly.",
                limit=self._limit,
                retry_after_ms=RETRY_AFTER_MS,
            )
        if self._by_caller[caller] >= self._share:
            raise Overloaded(
                f"This caller has {self._share} {self._what} already, which is its share of "
                f"{self._places_max}; end one first.",
                limit=SHARE,
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._taken += 1
        self._by_caller[caller] += 1

    def leave(self, caller: str) -> None:
        self._taken -= 1
        self._by_caller[caller] -= 1
        if not self._by_caller[caller]:
            del self._by_caller[caller]

    @contextmanager
    def one_more(self, caller: str) -> Iterator[None]:
        """Hold a place meanwhile; raises Overloaded."""
        self.take(caller)
        try:
            yield
        finally:
            self.leave(caller)


async def caller_of(backend: Backend, speaker: Speaker, address: str) -> str:
    """By what somebody is counted; raises what the orchestrator says to a key that is none."""
    if speaker.bearer is None:
        return f"address {network_of(address)}"
    return f"identity {(await backend.ask(WhoAmI(), speaker))['identity']}"


def network_of(address: str) -> str:
    """The part of an address that all of one caller's have in common."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ip_network((parsed, NETWORK_BITS), strict=False))


def address_of_peer(peer: str) -> str:
    """The address in what gRPC says of the other side, as in `ipv4:127.0.0.1:4242`."""
    kind, _, rest = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return peer
    return unquote(rest).rpartition(":")[0].strip("[]")
