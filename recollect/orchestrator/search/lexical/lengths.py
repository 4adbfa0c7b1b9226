"""How many words each memory has, kept in memory: two bytes for a memory.

BM25 weighs every match by the length of its text. Reading lengths from the database, match by
match, is most of what FTS5's own bm25() costs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from recollect.orchestrator.memories.rows import encode_json
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.storage.listed import numbers

LENGTH_MAX = 65_535
CHANGES_MAX = 65_536

# FTS5 keeps a length as a varint in a blob; strung together they travel in one value.
NEWER = """
SELECT group_concat(id), CAST(group_concat(sz, '') AS BLOB) FROM (
    SELECT id, sz FROM memories_fts_docsize WHERE id > ? ORDER BY id
)
"""
CHANGED = """
SELECT group_concat(id), CAST(group_concat(sz, '') AS BLOB) FROM (
    SELECT id, sz FROM memories_fts_docsize WHERE id IN (SELECT value FROM json_each(?))
)
"""


class Lengths:
    """The lengths by number. Used by all readers; every change happens under the lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: NDArray[np.uint16] = np.zeros(1024, dtype=np.uint16)
        self._newest = 0
        # What is to be read anew, by a session that sees the change.
        self._changed: dict[int, int] = {}

    def forget(self, nums: Iterable[int], seq: int) -> None:
        """The texts of these memories change, at the latest by this change."""
        with self._lock:
            self._changed.update(dict.fromkeys(nums, seq))
            if len(self._changed) > CHANGES_MAX:
                # Nobody has searched for long: the next one reads everything.
                self._changed.clear()
                self._newest = 0

    def read(self, session: Session, seq: int) -> NDArray[np.uint16]:
        """The lengths of all texts that a session sees after a change, by number.

        The array is to be read only. It may hold more than the session sees.
        """
        with self._lock:
            # First the newer ones: the changed ones may be newer than what was read so far.
            self._take(session.execute(NEWER, (self._newest,)))
            if changed := [num for num, at in self._changed.items() if at <= seq]:
                self._take(session.execute(CHANGED, (encode_json(changed).decode(),)))
                for num in changed:
                    del self._changed[num]
            return self._values

    def _take(self, rows: list[tuple[str | None, bytes | None]]) -> None:
        [(listed, packed)] = rows
        if listed is None or packed is None:
            return
        nums = numbers(listed)
        newest = int(nums.max())
        if newest >= len(self._values):
            # Readers may still hold the old array, so it is replaced and not resized.
            grown = np.zeros(max(newest + 1, 2 * len(self._values)), dtype=np.uint16)
            grown[: len(self._values)] = self._values
            self._values = grown
        self._values[nums] = np.minimum(read_many_varints(packed), LENGTH_MAX)
        self._newest = max(self._newest, newest)


def read_varints(packed: bytes) -> list[int]:
    """Numbers as SQLite packs them: seven bits a byte, the highest first."""
    numbers, number = [], 0
    for byte in packed:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers


def read_many_varints(packed: bytes) -> NDArray[np.int64]:
    """The same for a million numbers."""
    data = np.frombuffer(packed, dtype=np.uint8)
    ends = np.flatnonzero(data < 0x80)
    starts = np.concatenate(([0], ends[:-1] + 1))
    sizes = ends - starts + 1
    values = (data[starts] & 0x7F).astype(np.int64)
    for place in range(1, int(sizes.max(initial=1))):
        longer = sizes > place
        values[longer] = (values[longer] << 7) | (data[starts[longer] + place] & 0x7F)
    return values
