"""Ports for test servers that nobody else takes meanwhile."""

from __future__ import annotations

import itertools
import os
import socket

# Below the ports that the system gives to whoever connects: one of those could take a port between
# its choice and its use.
FIRST = 10_000
COUNT = 20_000
# Several test processes begin at places of their own.
_ports = itertools.cycle(range(COUNT))
for _ in range(os.getpid() * 97 % COUNT):
    next(_ports)


def free_port() -> int:
    """A port on loopback that nobody listens on just now."""
    for _ in range(COUNT):
        port = FIRST + next(_ports)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
