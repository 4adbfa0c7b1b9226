"""Forgetting old versions of memories that have newer ones, a bounded number at a time.

Of one memory the oldest go first, so that what is left is always its latest history without a hole:
a moment before it is one at which nothing is known, never one with an older answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recollect.orchestrator.calls import Call, record, writes
from recollect.orchestrator.namespaces import Span, spans_of
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.operations import SquashVersions

VERSIONS_MAX = 1_000
"""Forgotten by one call."""
MEMORIES_AT_ONCE = 500
DAY_US = 86_400_000_000

VERSIONED = """
SELECT namespace, num FROM memories
WHERE (namespace, num) > (?, ?) AND namespace < ? AND memory_type = ? AND version > 1
ORDER BY namespace, num LIMIT ?
"""
OLD = """
SELECT num, version FROM versions WHERE num IN ({marks}) AND superseded_us < ?
ORDER BY num, version LIMIT ?
"""
PRESENT_ROW = "SELECT id, namespace, version FROM memories WHERE num = ? AND memory_type = ?"
FORGET = "DELETE FROM versions WHERE num = ? AND version <= ? RETURNING version"

Position = tuple[str, int]
Oldest = dict[int, list[int]]
"""The versions to forget, by the number of their memory, from the first."""


class SquashingService:
    """Looks for old versions beside the writer, and takes them out in one write."""

    def __init__(self, storage: Storage, validator: Validator) -> None:
        self._storage = storage
        self._validator = validator

    @writes(SquashVersions)
    async def squash_versions(
        self, call: Call, operation: SquashVersions
    ) -> Callable[[WriteTransaction], records.VersionsSquashed]:
        namespace = self._validator.namespace(operation.namespace)
        memory_type = self._validator.text("memory_type", operation.memory_type, "key_chars_max")
        before_us = call.now_us - int(operation.older_than_days * DAY_US)
        oldest, complete = await self._find(namespace, memory_type, before_us)

        def write(transaction: WriteTransaction) -> records.VersionsSquashed:
            memories = versions = 0
            for num, wanted in oldest.items():
                # Purged since, or of another kind.
                found = transaction.execute(PRESENT_ROW, (num, memory_type))
                if not found:
                    continue
                forgotten = len(wanted)
                if not operation.dry_run:
                    forgotten = len(transaction.execute(FORGET, (num, wanted[-1])))
                    memory_id, home, version = found[0]
                    record(
                        call,
                        transaction,
                        subject=memory_id,
                        namespace=home,
                        version_before=version,
                        version_after=version,
                        detail=f"forgot {forgotten} versions up to {wanted[-1]}",
                    )
                memories += 1
                versions += forgotten
            return {
                "status": "success",
                "seq": transaction.last_seq(),
                "memories": memories,
                "versions": versions,
                "complete": complete,
            }

        return write

    async def _find(self, namespace: str, memory_type: str, before_us: int) -> tuple[Oldest, bool]:
        """What to forget, and whether that is all there is."""
        oldest: Oldest = {}
        count = 0
        for span in spans_of([namespace]):
            position: Position | None = (span.low, 0)
            while position is not None:
                page = partial(_page, span, position, memory_type, before_us, VERSIONS_MAX - count)
                # Page by page, so that no read holds up the store for long.
                found, position, more = await self._storage.read(page)
                for num, version in found:
                    oldest.setdefault(num, []).append(version)
                count += len(found)
                if more:
                    return oldest, False
        return oldest, True


def _page(
    span: Span, behind: Position, memory_type: str, before_us: int, limit: int, session: Session
) -> tuple[list[tuple[int, int]], Position | None, bool]:
    """Old versions of some memories, where to go on, and whether there are more than the limit."""
    memories = session.execute(VERSIONED, (*behind, span.high, memory_type, MEMORIES_AT_ONCE))
    if not memories:
        return [], None, False
    nums = [num for _, num in memories]
    sql = OLD.format(marks=", ".join("?" for _ in nums))
    found = [(num, version) for num, version in session.execute(sql, (*nums, before_us, limit + 1))]
    ended = len(memories) < MEMORIES_AT_ONCE
    return found[:limit], None if ended else (memories[-1][0], memories[-1][1]), len(found) > limit
