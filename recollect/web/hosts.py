"""Whose names a server answers to.

A page of somebody else can have a browser ask this machine, also under a name of its own that leads
here (DNS rebinding). So the name in `Host` must be one of ours, and an `Origin` the same place.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    name = host.strip("[]")
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def name_of(authority: str) -> str:
    """The host in `host:port`, in small letters and without brackets."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.partition(":")[0].lower()


class Hosts:
    """The names of one server, by the address that it is bound to and those it was given."""

    def __init__(self, host: str, hosts_allowed: Iterable[str]) -> None:
        self._given = frozenset(name.lower() for name in hosts_allowed)
        self._names = self._given | LOOPBACK_NAMES | {name_of(host), host.strip("[]").lower()}
        self._everywhere = not is_loopback(host)
        if self._everywhere:
            self._names |= {socket.gethostname().lower()}

    def is_ours(self, authority: str) -> bool:
        """Whether this is a name of ours, as `Host` says it."""
        name = name_of(authority)
        if name in self._names:
            return True
        # Bound beyond loopback it has addresses that it does not know, and no foreign page can
        # make a browser say an address that is not the one it asks.
        return self._everywhere and _is_address(name)

    def is_same_place(self, origin: str, host: str) -> bool:
        """Whether a page of this origin is one of the server that was asked for as `host`."""
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https"):
            return False
        return parts.netloc.lower() == host.lower() or name_of(parts.netloc) in self._given


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
