"""The vectors of memories: written with them, in step with the index, made later if need be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Embedded, Meaning, Meanings
from recollect.orchestrator.memories import rows
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction

ROWS_AT_ONCE = 1_000
INSERT_VECTOR = Insert("vectors", ("num", "model", "vector", "seq", "passages"))
REPLACE_VECTOR = """
INSERT INTO vectors (num, model, vector, seq, passages) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (num) DO UPDATE SET
    model = excluded.model, vector = excluded.vector, seq = excluded.seq,
    passages = excluded.passages
"""
SELECT_VECTORS = "SELECT num, vector FROM vectors WHERE model = ? AND num IN ({marks})"
SELECT_PASSAGES = """
SELECT num, passages FROM vectors WHERE model = ? AND passages IS NOT NULL AND num IN ({marks})
"""
DROP_VECTOR = (
    "DELETE FROM vectors WHERE num = ?",
    "DELETE FROM shadow_vectors WHERE num = ?",
    "DELETE FROM unembedded WHERE num = ?",
)
EMBED_LATER = Insert("unembedded", ("num",))
EMBED_LATER_AGAIN = "INSERT INTO unembedded (num) VALUES (?) ON CONFLICT (num) DO NOTHING"
EMBEDDED = "DELETE FROM unembedded WHERE num = ?"
LIVING_SEQ = f"SELECT seq FROM memories WHERE num = ? AND {rows.PRESENT}"


class MemoryVectors:
    """The stored vectors, of whichever model is in use."""

    def __init__(self, meanings: Meanings) -> None:
        self._meanings = meanings

    def of(self, session: Session, meaning: Meaning, nums: Sequence[int]) -> dict[int, Vectors]:
        """The stored vectors of some memories."""
        found: dict[int, Vectors] = {}
        for start in range(0, len(nums), ROWS_AT_ONCE):
            part = nums[start : start + ROWS_AT_ONCE]
            sql = SELECT_VECTORS.format(marks=", ".join("?" for _ in part))
            for num, vector in session.execute(sql, (meaning.model, *part)):
                found[num] = np.frombuffer(vector, dtype=np.float32)
        return found

    def passages_of(
        self, session: Session, meaning: Meaning, nums: Sequence[int]
    ) -> dict[int, bytes]:
        """What is kept of the passages of some memories, where there are several; a short list."""
        sql = SELECT_PASSAGES.format(marks=", ".join("?" for _ in nums))
        length = meaning.embedding.dimensions
        return {
            num: bytes(kept)
            for num, kept in session.execute(sql, (meaning.model, *nums))
            if kept and len(kept) % length == 0
        }

    def insert(
        self, transaction: WriteTransaction, drafts: Sequence[MemoryRow], embedded: Embedded
    ) -> None:
        """Write the vectors of new memories; those that have none will get one."""
        embedded = self._current(embedded)
        model = embedded.meaning.model
        vectors, stored = [], []
        for place, (draft, vector) in enumerate(zip(drafts, embedded.vectors, strict=True)):
            if vector is not None:
                vectors.append((draft, vector))
                passages = embedded.passages_at(place)
                stored.append((draft.num, model, vector, draft.seq, passages))
        transaction.insert(INSERT_VECTOR, stored)
        if len(vectors) < len(drafts):
            found = {draft.num for draft, _ in vectors}
            transaction.insert(EMBED_LATER, [(d.num,) for d in drafts if d.num not in found])
        put = embedded.meaning.index.put

        def enter_index() -> None:
            for draft, vector in vectors:
                put(draft.num, vector, draft.seq)

        transaction.after_commit.append(enter_index)

    def replace(
        self, transaction: WriteTransaction, row: MemoryRow, embedded: Embedded | None
    ) -> None:
        """Put a vector in the place of what a memory had; without one, it will be made."""
        if embedded is not None:
            embedded = self._current(embedded)
            if embedded.texts[0] != meaning_of(row):
                embedded = None  # made before somebody else changed the memory
        vector = embedded.vectors[0] if embedded is not None else None
        if embedded is None or vector is None:
            self.drop(transaction, row.num)
            transaction.execute(EMBED_LATER_AGAIN, (row.num,))
            return
        meaning = embedded.meaning
        transaction.execute(
            REPLACE_VECTOR,
            (row.num, meaning.model, vector, row.seq, embedded.passages_at(0)),
        )
        transaction.execute(EMBEDDED, (row.num,))
        transaction.after_commit.append(lambda: meaning.index.put(row.num, vector, row.seq))

    def drop(self, transaction: WriteTransaction, num: int) -> None:
        """A memory is not searched any more."""
        for statement in DROP_VECTOR:
            transaction.execute(statement, (num,))
        transaction.after_commit.append(lambda: self._meanings.remove(num))

    def embedded_late(
        self, transaction: WriteTransaction, num: int, seq: int, embedded: Embedded
    ) -> bool:
        """Give a memory the vector it lacked, unless it has changed since `seq`."""
        found = transaction.execute(LIVING_SEQ, (num,))
        if not found:
            transaction.execute(EMBEDDED, (num,))
            return False
        vector = self._current(embedded).vectors[0]
        if found[0][0] != seq or vector is None:
            return False
        meaning = embedded.meaning
        now_seq = transaction.last_seq()
        transaction.execute(
            REPLACE_VECTOR,
            (num, meaning.model, vector, now_seq, embedded.passages_at(0)),
        )
        transaction.execute(EMBEDDED, (num,))
        transaction.after_commit.append(lambda: meaning.index.put(num, vector, now_seq))
        return True

    def _current(self, embedded: Embedded) -> Embedded:
        """The vectors, unless the model was exchanged since they were made."""
        current = self._meanings.current
        if embedded.meaning is current:
            return embedded
        return Embedded(current, embedded.texts, [None] * len(embedded.vectors))
