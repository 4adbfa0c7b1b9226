"""The store as a whole: how it grows, what is used, what fades."""

from __future__ import annotations

from recollect.orchestrator.analytics.statements import DAY_US, Findings, Reach, find
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.clock import to_iso, to_iso_or_none
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import MemoryRow, strength_at
from recollect.orchestrator.search.filters import namespace_condition
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.protocol import records
from recollect.protocol.operations import Analytics
from recollect.protocol.own_namespaces import HEALTH_NAMESPACE

OURS = namespace_condition(HEALTH_NAMESPACE)
SAMPLE_MAX = 50_000
FADING_MAX = 10_000
LISTED_MAX = 20
CONTENT_SHOWN_MAX = 300
KEPT_MAX = 32
ALL_BUT_OURS = (f"NOT {OURS[0]}", OURS[1])
"""What is asked of all is not asked of the canaries of the health manager."""
KEPT_US = 15_000_000
"""Whoever looks sees what is at most so old, however many look at once."""


class AnalyticsService:
    """Answers from a bounded look at the store, which is kept for some seconds."""

    def __init__(self, storage: Storage, store: MemoryStore, scoping: Scoping) -> None:
        self._storage = storage
        self._store = store
        self._scoping = scoping
        # By namespace and days. Touched by the event loop's thread alone.
        self._kept: dict[tuple[str | None, int], tuple[int, Findings]] = {}

    @reads(Analytics)
    async def analytics(self, call: Call, operation: Analytics) -> records.Analytics:
        asked = (operation.namespace, operation.days)
        today = call.now_us // DAY_US
        reach = Reach(
            home=self._scoping.home(call, operation.namespace) or ALL_BUT_OURS,
            now_us=call.now_us,
            growth_from_us=(today - operation.days + 1) * DAY_US,
            sample_max=SAMPLE_MAX,
            fading_max=FADING_MAX,
            listed_max=LISTED_MAX,
        )
        at_us, found = self._kept.get(asked, (0, None))
        if found is None or not 0 <= call.now_us - at_us < KEPT_US:
            at_us, found = call.now_us, await self._storage.read(lambda s: find(s, reach))
            self._kept.pop(asked, None)
            while len(self._kept) >= KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[asked] = (at_us, found)
        findings = found
        # What memories say is read anew each time: a purge reaches it at once.
        return await self._storage.read(lambda s: self._told(s, call, operation, at_us, findings))

    def _told(
        self, session: Session, call: Call, operation: Analytics, at_us: int, found: Findings
    ) -> records.Analytics:
        def listed(nums: list[int]) -> list[records.MemoryUse]:
            hits = self._store.rows_of(session, [(num, None) for num in nums])
            return [use_of(row, call.now_us) for row, _ in hits if row.present]

        today = at_us // DAY_US
        growth = []
        for day in range(today - operation.days + 1, today + 1):
            tiers = {tier: found.growth.get((day, tier), 0) for tier in ("short", "medium", "long")}
            growth.append(
                records.DayOfGrowth(
                    day=_day(day),
                    created=sum(tiers.values()),
                    short=tiers["short"],
                    medium=tiers["medium"],
                    long=tiers["long"],
                )
            )
        return {
            "status": "success",
            "at": to_iso(at_us),
            "namespace": operation.namespace,
            "examined": found.examined,
            "sampled": found.sampled,
            "examined_since": to_iso_or_none(found.examined_since_us),
            "growth": growth,
            "most_used": listed(found.most_used),
            "least_used": listed(found.least_used),
            "fading": {
                "count": sum(found.fading_by_day.values()),
                "faded": found.faded,
                "complete": found.fading_complete,
                "by_day": [
                    {"day": _day(day), "count": found.fading_by_day.get(day, 0)}
                    for day in range(today, today + 8)
                ],
                "memories": listed(found.fading_first),
            },
            "by_type": found.by_type,
            "by_tier": found.by_tier,
            "by_collection": found.by_collection,
            "by_agent": found.by_agent,
        }


def use_of(row: MemoryRow, now_us: int) -> records.MemoryUse:
    """A memory as a line of a list."""
    return {
        "memory_id": row.id,
        "namespace": row.namespace,
        "memory_type": row.memory_type,
        "memory_tier": row.tier,
        "content": row.content[:CONTENT_SHOWN_MAX],
        "importance": row.importance,
        "strength": strength_at(row, now_us),
        "access_count": row.access_count,
        "last_accessed_at": to_iso(row.last_access_us),
        "fades_at": to_iso(row.fades_us),
    }


def _day(number: int) -> str:
    """The date of a day since 1970."""
    return to_iso(number * DAY_US)[:10]
