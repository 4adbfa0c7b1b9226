"""What an index of vectors offers, wherever it keeps them.

It follows the stored vectors: beside them, in this process, or as an index of the database itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.json_paths import Condition
from recollect.orchestrator.storage.interface import Row, Session

Numbers = npt.NDArray[np.int64]


class Upkeep(NamedTuple):
    """What was done to put an index in order."""

    sealed: int
    """Vectors that went out of the head into a segment."""
    merged: int
    compacted: int
    complete: bool


class Held(Protocol):
    """What an index holds, as one session sees it."""

    def count(self) -> int:
        """How many memories have a vector."""
        ...

    def search(
        self, vector: Vectors, k: int, allowed: Numbers | None = None
    ) -> list[tuple[int, float]]:
        """Numbers and cosine similarities of the k nearest, of all or of the allowed ones."""
        ...

    def search_rows(
        self, vector: Vectors, k: int, alive: Condition
    ) -> list[tuple[Row, float]] | None:
        """The k nearest of all that fit a condition which nearly all fit, as rows of `memories`, by
        one statement; None if it did not give so many. Only of an index that `brings_rows`."""
        ...

    def similarities(self, vector: Vectors, nums: Numbers) -> npt.NDArray[np.float32]:
        """The cosine similarity with each of these memories; nan where there is no vector."""
        ...

    def pairs(self, after: int, upto: int) -> tuple[Numbers, Numbers]:
        """The numbers behind one and up to another that have a vector, ascending, each with its
        sequence number."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the index consists of."""
        ...


class VectorIndex(Protocol):
    """Nearest neighbours among the vectors of one model."""

    @property
    def brings_rows(self) -> bool:
        """Whether what is found comes with its rows in one statement."""
        ...

    def seen_by(self, session: Session) -> Held:
        """What it holds. Good for as long as the session's read lasts."""
        ...

    def put(self, num: int, vector: Vectors, seq: int) -> None:
        """A new or changed vector is stored; the caller does not change it afterwards."""
        ...

    def remove(self, num: int) -> None:
        """A memory is gone."""
        ...

    def load(self, nums: Numbers, seqs: Numbers, vectors: Vectors) -> None:
        """Many vectors are stored. Not for the event loop."""
        ...

    def expunge(self, nums: Numbers | None = None) -> bool:
        """Leave nothing in files of its own of memories that are gone: of all of them, or of these.

        Not for the event loop. Whether that was done.
        """
        ...

    def maintain(self, timeout_s: float) -> Upkeep:
        """Put itself in order. Not for the event loop."""
        ...

    def upkeep_due(self) -> Upkeep:
        """What `maintain` would begin with."""
        ...

    def close(self) -> None:
        """Give up what goes on in the background."""
        ...
