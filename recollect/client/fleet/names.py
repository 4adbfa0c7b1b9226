"""When to look up what names stand for, and what they stood for last."""

from __future__ import annotations

import math
import random
import socket
from collections.abc import Callable, Mapping, Sequence

from recollect.client.endpoints import ENDPOINTS_MAX, Named, named

LOOK_INTERVAL_S = 30.0
"""How long an answer is used, at most; it varies down to half of it."""
LOOK_AWAY_S = 2.0
"""The same while somebody is away, who may have come back elsewhere."""
LOOK_TIMEOUT_S = 2.0

Found = Mapping[Named, Sequence[str]]


class Names:
    """The endpoints as they were given, and as they are at present."""

    def __init__(
        self, endpoints: Sequence[str], *, clock: Callable[[], float], randomness: random.Random
    ) -> None:
        self._clock = clock
        self._randomness = randomness
        self._given: tuple[tuple[str, Named | None], ...] = tuple(
            (endpoint, named(endpoint)) for endpoint in endpoints
        )
        self._asked: tuple[Named, ...] = tuple({name: None for _, name in self._given if name})
        self._found: dict[Named, tuple[str, ...]] = {}
        self._looked_at_s = -math.inf
        self._due_at_s = -math.inf if self._asked else math.inf

    def known(self) -> list[str]:
        """The endpoints to connect to, each once. A name stands for itself before it was looked up,
        and where it has but one address: ZeroMQ can look it up as well, whenever it connects."""
        found: dict[str, None] = {}
        for endpoint, name in self._given:
            addresses = self._found.get(name, ()) if name is not None else ()
            if name is None or len(addresses) < 2:
                found[endpoint] = None
            else:
                found.update((name.at(address), None) for address in addresses)
        return list(found)[:ENDPOINTS_MAX]

    def is_due(self, *, somebody_away: bool = False) -> bool:
        """Whether it is time to look them up."""
        now_s = self._clock()
        if now_s >= self._due_at_s:
            return True
        return somebody_away and bool(self._asked) and now_s >= self._looked_at_s + LOOK_AWAY_S

    def begin(self) -> tuple[Named, ...]:
        """What to look up; meanwhile nobody else need."""
        self._looked_at_s = self._clock()
        self._due_at_s = self._looked_at_s + LOOK_INTERVAL_S * (0.5 + self._randomness.random() / 2)
        return self._asked

    def learn(self, found: Found) -> list[str]:
        """Take what was found, and the endpoints to connect to. A name for which nothing was found
        stands for what it stood for before."""
        for name, addresses in found.items():
            if addresses:
                self._found[name] = tuple(sorted(set(addresses)))
        return self.known()


def look_up(name: Named) -> list[str]:
    """The addresses of a name, as the system knows them; none if it knows none. It may block."""
    try:
        return addresses_in(socket.getaddrinfo(name.host, name.port, type=socket.SOCK_STREAM))
    except OSError:
        return []


def addresses_in(answers: Sequence[tuple[object, ...]]) -> list[str]:
    """The addresses in what `getaddrinfo` answers."""
    return [str(answer[4][0]) for answer in answers]  # type: ignore[index]
