"""What a store must offer to be measured, whichever it is.

A driver is a module in `drivers` with a class `Driver`. It is imported in the environment of its
store, where neither Recollect nor its dependencies are installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

from benchmarks.peers.data import Data


class NotOffered(Exception):
    """The store has no such thing; the table says so."""


class Session(Protocol):
    """One client. Items are named by their numbers."""

    def add(self, number: int) -> None:
        """Store one item; it is durable on return, or `Driver.durability` says otherwise."""

    def get(self, number: int) -> object:
        """Read one item."""

    def search(self, query: int) -> list[int]:
        """The nearest items to a query of the data."""

    def filtered(self, query: int) -> list[int]:
        """The nearest items among those of one team."""


class Driver(Protocol):
    """A store, from its start to its end."""

    durability: str
    """What is on disk when an add is answered."""
    note: str
    """What else differs from the others, for the table."""
    version: str
    """Of the server itself, where that is not the version of the package."""
    clients: Literal["processes", "threads"]
    """What eight clients are: processes where there is a server, else threads of one process."""

    def open(self, folder: Path, data: Data) -> None:
        """Start it, on a folder of its own."""

    def fill(self) -> None:
        """Store all items of the data, in whichever way is quickest."""

    def session(self) -> Session:
        """A client, in the process and thread that will use it."""

    def pids(self) -> list[int]:
        """The processes whose memory is that of the store."""

    def close(self) -> None:
        """End it."""
