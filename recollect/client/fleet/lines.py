"""The lines to several endpoints, each made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

from recollect.client import sockets


class Closable(Protocol):
    """What every transport can do."""

    def close(self) -> None:
        """Close it; requests under way end with ClientClosed."""
        ...


T = TypeVar("T", bound=Closable)


class Lines(Generic[T]):
    """A transport for each endpoint. Any thread may use it, or an event loop."""

    def __init__(self, make: Callable[[str], T]) -> None:
        self._make = make
        # Any thread adds to it, in one step; what is dropped was told by the fleet to be unused.
        self._by_endpoint: dict[str, T] = {}
        self._closed = False

    def at(self, endpoint: str) -> T:
        """The transport of an endpoint."""
        found = self._by_endpoint.get(endpoint)
        if found is None:
            # It opens nothing before it is used, so that one made in vain costs nothing.
            found = self._by_endpoint.setdefault(endpoint, self._make(endpoint))
        if self._closed:
            # Only now, so that one made while all were closed is closed as well.
            found.close()
            raise sockets.closed()
        return found

    def keep(self, endpoints: Collection[str]) -> None:
        """Close those to any other endpoint."""
        for endpoint in [*self._by_endpoint]:
            if endpoint not in endpoints:
                unused = self._by_endpoint.pop(endpoint, None)
                if unused is not None:
                    unused.close()

    def close(self) -> None:
        """Close all. Once is enough."""
        self._closed = True
        for transport in [*self._by_endpoint.values()]:
            transport.close()
