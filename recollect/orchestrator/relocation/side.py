"""What a copy needs of the storage at either end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from recollect.orchestrator.relocation.tables import Table
from recollect.orchestrator.search.lexical import LexicalIndex
from recollect.orchestrator.storage.interface import Row, SavepointSession


class CopySession(SavepointSession, Protocol):
    """A connection that writes."""

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def recover(self) -> None: ...


@contextmanager
def transaction(session: CopySession) -> Iterator[None]:
    """All of it, or none."""
    session.begin()
    try:
        yield
        session.commit()
    finally:
        session.recover()


class Side(Protocol):
    """A storage that nobody else has open while this object lives."""

    @property
    def session(self) -> CopySession: ...

    @property
    def lexical(self) -> LexicalIndex: ...

    def migrate(self, *, unfinished: bool) -> None:
        """Make the tables, or bring them up to date."""
        ...

    def tables(self) -> dict[str, Table]:
        """The tables whose rows are kept, by name."""
        ...

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Write rows inside the transaction that is open."""
        ...

    def settle(self) -> None:
        """Do what a storage should have had done once it was filled."""
        ...

    def close(self) -> None:
        """Let others have it."""
        ...
