"""Looking through a namespace for conflicts: what is read, and how much of it.

What is looked at: the living plain memories and what is known, the newest first. Not those that
will expire, which settle themselves; not what happened (`episodic`), for the same may happen twice;
not what is more than a text, such as decisions and changes of settings, of which the later does not
undo the earlier; not the chunks of documents, which follow their document.
"""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from recollect.config.sharing import ConsolidationSettings
from recollect.orchestrator.calls import Call
from recollect.orchestrator.consolidation.conflicts import Conflict, conflicts_among
from recollect.orchestrator.consolidation.judging import Looked, looked_at
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.search.authorship import author_of
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.storage.interface import Session, Storage

ROWS_AT_ONCE = 250
LOOKED_AT = """
expires_us IS NULL AND memory_type <> 'episodic' AND collection IN ('memories', 'knowledge')
"""
NUMS = "SELECT num FROM memories WHERE {condition} ORDER BY num DESC LIMIT ?"
COUNT = "SELECT count(*) FROM memories WHERE {condition}"
LOOK = """
SELECT num, version, namespace, key, memory_type, content, value, created_by, metadata,
    valid_from_us, valid_to_us
FROM memories WHERE num IN ({marks})
"""


class Found(msgspec.Struct, frozen=True):
    """What a look through a namespace found."""

    conflicts: list[Conflict]
    examined: int
    total: int
    """Memories that there are to look at."""


class Looking:
    """Finds conflicts; the reading in threads of the storage, the comparing in one of its own."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        scoping: Scoping,
        settings: ConsolidationSettings,
    ) -> None:
        self._storage = storage
        self._store = store
        self._scoping = scoping
        self._settings = settings

    async def find(self, call: Call, namespace: str) -> Found:
        """The conflicts in what the caller may see of a namespace and those below it."""
        condition = self._condition(call, namespace)
        nums, total = await self._storage.read(partial(self._nums, condition))
        memories: list[Looked] = []
        vectors: dict[int, Vectors] = {}
        meaning = self._store.meanings.current
        for start in range(0, len(nums), ROWS_AT_ONCE):
            part = nums[start : start + ROWS_AT_ONCE]

            def read(session: Session, part: list[int] = part) -> list[Looked]:
                vectors.update(self._store.vectors.of(session, meaning, part))
                return look(session, part)

            memories += await self._storage.read(read)
        memories.sort(key=lambda memory: -memory.num)
        conflicts = await asyncio.to_thread(
            conflicts_among,
            memories,
            vectors,
            duplicate_similarity=self._settings.duplicate_similarity,
            conflict_similarity=self._settings.conflict_similarity,
        )
        return Found(conflicts, len(memories), total)

    def _condition(self, call: Call, namespace: str) -> Condition:
        sql, params = self._scoping.scope(call, call.now_us, namespace=namespace).condition
        return f"{sql} AND {LOOKED_AT}", params

    def _nums(self, condition: Condition, session: Session) -> tuple[list[int], int]:
        sql, params = condition
        most = self._settings.examined_max
        found = session.execute(NUMS.format(condition=sql), (*params, most))
        nums = [num for (num,) in found]
        if len(nums) < most:
            return nums, len(nums)
        [(total,)] = session.execute(COUNT.format(condition=sql), params)
        return nums, total


def look(session: Session, nums: list[int]) -> list[Looked]:
    """Some memories made ready to be judged."""
    sql = LOOK.format(marks=", ".join("?" for _ in nums))
    looked = []
    for num, version, namespace, key, kind, content, value, by, metadata, *valid in session.execute(
        sql, nums
    ):
        author = author_of(by, {} if metadata == "{}" else decode_json(metadata))
        valid_us = (valid[0], valid[1])
        looked.append(
            looked_at(num, version, namespace, key, kind, content, value, author, valid_us)
        )
    return looked
