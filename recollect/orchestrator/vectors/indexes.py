"""Makes the indexes of vectors, fills them at start and does away with them."""

from __future__ import annotations

from typing import Protocol

from recollect.orchestrator.embedding.interface import Embedder
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.search.vectors import VectorIndex
from recollect.orchestrator.storage.interface import Storage
from recollect.orchestrator.troubles.trouble import Trouble


class VectorIndexes(Protocol):
    """The indexes of one storage."""

    def make(self, embedder: Embedder, trouble: Trouble) -> VectorIndex:
        """The index of a model, not filled yet; `trouble` is told what goes wrong in it, in
        whatever thread that is."""
        ...

    async def load(self, storage: Storage, meaning: Meaning, table: str = "vectors") -> int:
        """Bring an index in step with a table of stored vectors; how many were not in it.

        A stored vector of another model or of a wrong length is dropped, to be made anew.
        """
        ...

    async def keep_up(self, storage: Storage, meaning: Meaning) -> None:
        """Now and then: do what is due because a store has grown."""
        ...

    async def discard(self, storage: Storage, meaning: Meaning) -> None:
        """Do away with the index of a model that is not used any more."""
        ...

    def forget_others(self, model: str) -> None:
        """Remove the files of indexes that no model uses any more."""
        ...
