"""How many memories there are, by tier and namespace, without counting them for every question.

Counting a million memories takes a while, so it is done beside the requests: when somebody asks and
something has changed, at most once in an interval, and never for more than a hundredth of the time.
Whoever asks gets what was counted last, with its age.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from recollect.orchestrator.memories.rows import PRESENT
from recollect.orchestrator.search.filters import namespace_condition
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.protocol.errors import RecollectError
from recollect.protocol.own_namespaces import HEALTH_NAMESPACE
from recollect.protocol.records import MemoryCounts

log = structlog.get_logger()

NAMESPACES_MAX = 50
TIME_SHARE_MAX = 0.01
OLDEST_WAITING_MAX = 100

# The health manager's canary is nobody's memory.
OWN, OWN_PARAMS = namespace_condition(HEALTH_NAMESPACE)
# One walk along one index, in whose order the namespaces are.
BY_NAMESPACE = f"""
SELECT
    namespace, living,
    CAST(sum(living) OVER () AS BIGINT),
    CAST(sum(short) OVER () AS BIGINT),
    CAST(sum(medium) OVER () AS BIGINT)
FROM (
    SELECT
        namespace,
        count(*) AS living,
        count(*) FILTER (WHERE tier = 'short') AS short,
        count(*) FILTER (WHERE tier = 'medium') AS medium
    FROM memories WHERE {PRESENT} AND NOT ({OWN}) GROUP BY namespace
) AS counted
ORDER BY living DESC, namespace LIMIT {NAMESPACES_MAX}
"""
COUNT_WAITING = "SELECT count(*) FROM unembedded"
OLDEST_WAITING = f"""
SELECT min(page.updated_us) FROM (
    SELECT m.updated_us FROM unembedded u JOIN memories m ON m.num = u.num
    ORDER BY u.num LIMIT {OLDEST_WAITING_MAX}
) AS page
"""


class Counted(msgspec.Struct, frozen=True):
    """What there was at one moment."""

    at_s: float
    took_s: float
    seq: int
    total: int
    by_tier: dict[str, int]
    by_namespace: dict[str, int]
    waiting: int
    waiting_since_us: int | None
    index: dict[str, Any]
    database_bytes: int = 0
    """Where the storage does not know that by itself."""


class MemoryCounter:
    """Counts when asked, not too often. Lives on the event loop."""

    def __init__(
        self,
        storage: Storage,
        describe_index: Callable[[Session], dict[str, Any]],
        interval_s: float,
        monotonic: Callable[[], float],
    ) -> None:
        """`describe_index` may be called from any thread."""
        self._storage = storage
        self._describe_index = describe_index
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._last: Counted | None = None
        self._counting: asyncio.Task[Counted | None] | None = None

    async def counted(self) -> Counted:
        """What was counted last; the first who asks waits for it."""
        if self._last is None:
            counted = await asyncio.shield(self._count())
            # Whoever cannot be answered now is told so by the storage's own error.
            return counted or await self._read()
        if self._due(self._last):
            self._count()
        return self._last

    def memories(self, counted: Counted) -> MemoryCounts:
        """The counts as they are told."""
        return {
            "total": counted.total,
            "by_tier": counted.by_tier,
            "by_namespace": counted.by_namespace,
            "other_namespaces": max(0, counted.total - sum(counted.by_namespace.values())),
            "age_s": max(0.0, self._monotonic() - counted.at_s),
        }

    def _due(self, last: Counted) -> bool:
        if self._counting is not None:
            return False
        age_s = self._monotonic() - last.at_s
        if age_s < max(self._interval_s, last.took_s / TIME_SHARE_MAX):
            return False
        # A vector that was made late is no change that has a number.
        return last.seq != self._storage.committed_seq or last.waiting > 0

    def _count(self) -> asyncio.Task[Counted | None]:
        if self._counting is None:
            self._counting = asyncio.create_task(self._try())
        return self._counting

    async def _try(self) -> Counted | None:
        try:
            self._last = await self._read()
        except RecollectError as error:
            log.warning("Memories were not counted.", action="count", reason=error.message)
        finally:
            self._counting = None
        return self._last

    async def _read(self) -> Counted:
        seq, began_s = self._storage.committed_seq, self._monotonic()

        def read(session: Session) -> Counted:
            largest = session.execute(BY_NAMESPACE, OWN_PARAMS)
            total, short, medium = largest[0][2:] if largest else (0, 0, 0)
            by_tier = {"short": short, "medium": medium, "long": total - short - medium}
            [(waiting,)] = session.execute(COUNT_WAITING)
            [(since_us,)] = session.execute(OLDEST_WAITING)
            size_sql = self._storage.size_sql
            bytes_found = 0 if size_sql is None else session.execute(size_sql)[0][0]
            at_s = self._monotonic()
            return Counted(
                at_s=at_s,
                took_s=at_s - began_s,
                seq=seq,
                total=total,
                by_tier={tier: count for tier, count in by_tier.items() if count},
                by_namespace={row[0]: row[1] for row in largest},
                waiting=waiting,
                waiting_since_us=since_us,
                index=self._describe_index(session),
                database_bytes=bytes_found,
            )

        return await self._storage.read(read)
