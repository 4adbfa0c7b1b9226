"""Whether the vector index agrees with what is stored; and setting right what differs.

The index follows every commit a moment later, so what differs at one look may only be on its way. A
write that changes nothing waits for that: whatever was committed before it is in the index when it
is answered. Only what differs then as well, in the same state, is a difference. It is set right in
a write too, by an effect that comes in the order of the commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import msgspec
import numpy as np

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call
from recollect.orchestrator.embedding.interface import VECTOR_ITEM_BYTES
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import PRESENT
from recollect.orchestrator.search.vectors import Numbers
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.vectors.late_embedding import LateEmbedding
from recollect.orchestrator.vectors.memory_vectors import DROP_VECTOR, EMBED_LATER_AGAIN

PAGE_ROWS = 10_000
REPAIRED_AT_ONCE = 200
NUM_MAX = (1 << 63) - 1

# With whether there is a memory that it is of.
SEARCHED = "CASE WHEN m.num IS NULL THEN 0 ELSE 1 END"
PAGE = f"""
SELECT v.num, v.seq, {SEARCHED} FROM vectors v
LEFT JOIN memories m ON m.num = v.num AND m.deleted_us IS NULL AND m.archived_us IS NULL
WHERE v.num > ? ORDER BY v.num LIMIT ?
"""
ONE = f"""
SELECT v.seq, v.model, v.vector, {SEARCHED} FROM vectors v
LEFT JOIN memories m ON m.num = v.num AND m.deleted_us IS NULL AND m.archived_us IS NULL
WHERE v.num = ?
"""
COUNT = f"SELECT count(*) FROM memories WHERE {PRESENT}"


class Differences(msgspec.Struct):
    """Numbers of memories, each with the sequence number of the vector it is about."""

    missing: dict[int, int]
    """Stored and not in the index, or in the index as they were before."""
    surplus: dict[int, int]
    """In the index or stored, of no memory that is searched."""


class Outcome(msgspec.Struct, frozen=True):
    """What a comparison came to."""

    memories: int
    vectors: int
    waiting: int
    missing: int
    surplus: int
    repaired: int


class Agreement:
    """Compares, and repairs."""

    def __init__(
        self,
        storage: Storage,
        writes: RecheckedWrites,
        store: MemoryStore,
        late: LateEmbedding,
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._store = store
        self._late = late

    async def check(self, call: Call, *, repair: bool, go_on: Callable[[], None]) -> Outcome:
        """Compare all there is. `go_on` raises when there is no time left.

        When the model is exchanged meanwhile, what was compared is no more: it begins anew.
        """
        while True:
            meaning = self._store.meanings.current
            outcome = await self._compared(call, meaning, repair, go_on)
            if self._store.meanings.current is meaning:
                return outcome

    async def _compared(
        self, call: Call, meaning: Meaning, repair: bool, go_on: Callable[[], None]
    ) -> Outcome:
        forgotten = await self._late.find_forgotten(embed=repair)
        found = Differences({}, {})
        after: int | None = 0
        while after is not None:
            go_on()
            first, after = await self._storage.read(partial(_first_look, meaning, after))
            if first.missing or first.surplus:
                await self._storage.write(lambda transaction: None)
                second = await self._storage.read(partial(_second_look, meaning, first))
                found.missing |= second.missing
                found.surplus |= second.surplus
        repaired = forgotten if repair else 0
        if repair:
            suspects = [*found.missing, *found.surplus]
            for start in range(0, len(suspects), REPAIRED_AT_ONCE):
                go_on()
                part = suspects[start : start + REPAIRED_AT_ONCE]
                repaired += await self._writes.write(
                    call, partial(self._repair, meaning, found, part)
                )
        [(memories,)] = await self._storage.read(lambda session: session.execute(COUNT))
        vectors = await self._storage.read(lambda s: meaning.index.seen_by(s).count())
        return Outcome(
            memories,
            vectors,
            await self._storage.read(self._late.waiting),
            len(found.missing) + forgotten,
            len(found.surplus),
            repaired,
        )

    def _repair(
        self,
        meaning: Meaning,
        found: Differences,
        nums: Collection[int],
        transaction: WriteTransaction,
    ) -> int:
        done = 0
        if self._store.meanings.current is not meaning:
            return done
        for num in nums:
            stored = transaction.execute(ONE, (num,))
            if num in found.missing:
                done += self._put(meaning, transaction, num, found.missing[num], stored)
            elif not stored or not stored[0][3]:
                # Of a memory that is gone; one that waits for its vector has none stored.
                transaction.execute(DROP_VECTOR[0], (num,))
                transaction.after_commit.append(partial(meaning.index.remove, num))
                done += 1
        return done

    def _put(
        self,
        meaning: Meaning,
        transaction: WriteTransaction,
        num: int,
        seq: int,
        stored: list[tuple[object, ...]],
    ) -> bool:
        """Bring a stored vector into the index, unless it was changed since: then it is there."""
        if not stored or stored[0][0] != seq:
            return False
        _, model, vector, _ = stored[0]
        assert isinstance(vector, bytes | memoryview)
        length = VECTOR_ITEM_BYTES * meaning.embedding.dimensions
        if model != meaning.model or len(vector) != length:
            # Of no use: it is made anew.
            transaction.execute(DROP_VECTOR[0], (num,))
            transaction.execute(EMBED_LATER_AGAIN, (num,))
            transaction.after_commit.append(partial(meaning.index.remove, num))
            return True
        array = np.frombuffer(bytes(vector), dtype=np.float32)
        transaction.after_commit.append(partial(meaning.index.put, num, array, seq))
        return True


def _first_look(meaning: Meaning, after: int, session: Session) -> tuple[Differences, int | None]:
    """What differs in one page, and where the next begins; the index is looked at last."""
    rows = session.execute(PAGE, (after, PAGE_ROWS))
    ended = len(rows) < PAGE_ROWS
    upto = NUM_MAX if ended else rows[-1][0]
    stored = np.array([(num, seq) for num, seq, living in rows if living], dtype=np.int64)
    stored = stored.reshape(-1, 2)
    nums, seqs = meaning.index.seen_by(session).pairs(after, upto)
    different = _different(stored[:, 0], stored[:, 1], nums, seqs)
    different.surplus |= {num: seq for num, seq, living in rows if not living}
    return different, None if ended else upto


def _different(nums: Numbers, seqs: Numbers, held: Numbers, held_seqs: Numbers) -> Differences:
    """Of two ascending lists of pairs, what the second lacks or has in an older state, and what
    only it has."""
    places = np.searchsorted(held, nums)
    there = np.zeros(len(nums), dtype=bool)
    inside = places < len(held)
    there[inside] = held[places[inside]] == nums[inside]
    there[there] = held_seqs[places[there]] >= seqs[there]
    alone = ~np.isin(held, nums, assume_unique=True)
    return Differences(
        dict(zip(nums[~there].tolist(), seqs[~there].tolist(), strict=True)),
        dict(zip(held[alone].tolist(), held_seqs[alone].tolist(), strict=True)),
    )


def _second_look(meaning: Meaning, first: Differences, session: Session) -> Differences:
    """Of what differed, what still does, and in the same state."""
    missing: dict[int, int] = {}
    surplus: dict[int, int] = {}
    for num, seq in first.missing.items():
        stored = session.execute(ONE, (num,))
        if stored and stored[0][0] == seq and stored[0][3] and _held(meaning, session, num) < seq:
            missing[num] = seq
    for num, seq in first.surplus.items():
        stored = session.execute(ONE, (num,))
        if (stored and not stored[0][3]) or (not stored and _held(meaning, session, num) == seq):
            surplus[num] = seq
    return Differences(missing, surplus)


def _held(meaning: Meaning, session: Session, num: int) -> int:
    """The sequence number under which the index holds a memory; the least of all if it does not."""
    _, seqs = meaning.index.seen_by(session).pairs(num - 1, num)
    return int(seqs[0]) if len(seqs) else -NUM_MAX
