"""What a search by words offers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.storage.interface import Session, WriteTransaction

Numbers = NDArray[np.int64]
Hits = list[tuple[int, float]]
"""Numbers of memories with their scores, the best first."""


class Matches(Protocol):
    """The memories that hold words of one query, each with its score."""

    def best(
        self,
        condition: Condition,
        limit: int,
        offset: int = 0,
        allowed: Numbers | None = None,
    ) -> Hits:
        """The best that fit the condition and, if `allowed` is given, are among those."""
        ...

    def score(self, nums: Sequence[int]) -> dict[int, float]:
        """The scores of those among some memories that match."""
        ...


class LexicalIndex(Protocol):
    """Finds memories by their words."""

    version: str
    """What is indexed of a memory, and how; an index of another version is made anew."""
    held_sql: str
    """Asks for the numbers of the memories whose words it holds."""

    def clear(self, transaction: WriteTransaction) -> None:
        """Forget everything."""
        ...

    def expunge(self, transaction: WriteTransaction, begin: bool) -> bool:
        """One step of taking the words of deleted memories out of the index; whether more follow.

        The first step of a round begins it.
        """
        ...

    def warm(self, session: Session) -> None:
        """Do ahead what the first searches would have to."""
        ...

    def seal(self, session: Session, transactions: Iterable[WriteTransaction]) -> None:
        """Take in what a batch of writes changed, inside their transaction."""
        ...

    def match(self, session: Session, query: str, within: Numbers | None = None) -> Matches:
        """What a query matches, to be asked several things while the session's read lasts.

        `within` are the memories, in ascending order, that the query is about: only those match,
        and how common a word is counts among them.
        """
        ...

    def find(
        self,
        session: Session,
        query: str,
        condition: Condition,
        limit: int,
        offset: int,
        within: Numbers | None = None,
    ) -> Hits:
        """Numbers and scores of the best matches that fit the condition."""
        ...

    def score(self, session: Session, query: str, nums: Sequence[int]) -> dict[int, float]:
        """The scores of those among some memories that match the query."""
        ...
