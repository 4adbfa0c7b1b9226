"""What is to become of what has faded: read and worked out first, so that it can be shown before it
is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from recollect.config.settings import DecaySettings
from recollect.orchestrator.calls import Call
from recollect.orchestrator.decay.faded import archived_since, read_faded
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.tiers.planning import COUNT, Planning, Summary
from recollect.protocol.collection_names import AGENT_STATES, DOCUMENTS, PERSONAS, PREFERENCES

DAY_US = 86_400_000_000
STAYING = frozenset({AGENT_STATES, DOCUMENTS, PERSONAS, PREFERENCES})
"""Collections that no migration moves, and decay does not either: they hold until somebody changes
them, or the document that they are of."""


class FadePlan(msgspec.Struct, frozen=True):
    """What is to become of what has faded."""

    to_medium: list[MemoryRow]
    to_long: list[MemoryRow]
    summaries: list[Summary]
    archived: list[MemoryRow]
    kept: list[MemoryRow]
    """To stay where they are, for as long as if they had just been used."""
    waiting: list[MemoryRow]
    """To be looked at again tomorrow: today their namespace would become too much fewer."""
    examined: int
    more: bool
    """Whether more has faded than the limit allows."""

    @property
    def places(self) -> list[str]:
        """Where something is to be moved."""
        rows = [*self.to_medium, *self.to_long, *self.archived]
        rows += [summary.group[0] for summary in self.summaries]
        return sorted({row.namespace for row in rows})

    @property
    def reason(self) -> str | None:
        """Why not all that has faded is seen to; None if it is."""
        if self.waiting:
            return (
                f"{len(self.waiting)} more would make their namespaces fewer by more than "
                "decay.shrink_max allows within a day; they are looked at again tomorrow"
            )
        return "more has faded than the limit; the same again goes on" if self.more else None


NOTHING = FadePlan([], [], [], [], [], [], 0, more=False)


class FadePlanning:
    """Works out what is to be done; writes nothing."""

    def __init__(self, storage: Storage, tiers: Planning, settings: DecaySettings) -> None:
        self._storage = storage
        self._tiers = tiers
        self._settings = settings

    async def plan(self, call: Call, home: Condition, limit: int) -> FadePlan:
        """What has faded by now, and what is to become of it."""
        faded = await self._storage.read(partial(read_faded, call, home, limit))
        kept = [row for row in faded.rows if self._stays(row, row.num in faded.unfinished)]
        staying = {row.num for row in kept}
        by_tier: dict[str, list[MemoryRow]] = {"short": [], "medium": [], "long": []}
        for row in faded.rows:
            if row.num not in staying:
                by_tier[row.tier].append(row)
        leaving = await self._tiers.sorted_out(call, by_tier["medium"])
        archived, waiting = await self._storage.read(partial(self._allowed, call, by_tier["long"]))
        return FadePlan(
            by_tier["short"],
            leaving.as_they_are,
            leaving.summaries,
            archived,
            kept,
            [*leaving.left, *waiting],
            len(faded.rows),
            faded.more,
        )

    def _stays(self, row: MemoryRow, unfinished: bool) -> bool:
        important = row.tier == "long" and row.importance >= self._settings.keep_importance
        return important or unfinished or row.collection in STAYING

    def _allowed(
        self, call: Call, rows: Sequence[MemoryRow], session: Session
    ) -> tuple[list[MemoryRow], list[MemoryRow]]:
        """Of what would be archived: what may be today, and what waits. Of each namespace one may
        always be, so that every day comes further."""
        if not rows:
            return [], []
        before = archived_since(call.now_us - DAY_US, session)
        room = self._room(rows, before, session)
        allowed: list[MemoryRow] = []
        waiting: list[MemoryRow] = []
        for row in rows:
            free = room[row.namespace] > 0
            room[row.namespace] -= 1
            (allowed if free else waiting).append(row)
        return allowed, waiting

    def _room(
        self, rows: Sequence[MemoryRow], before: Mapping[str, int], session: Session
    ) -> dict[str, int]:
        """How many of each namespace may still go today, as far as that matters."""
        wanted: dict[str, int] = {}
        for row in rows:
            wanted[row.namespace] = wanted.get(row.namespace, 0) + 1
        room: dict[str, int] = {}
        for home, count in wanted.items():
            gone = before.get(home, 0)
            enough = int((count + gone) / self._settings.shrink_max) + 1
            [(present,)] = session.execute(COUNT, (home, enough))
            share = int((present + gone) * self._settings.shrink_max)
            room[home] = max(1, share) - gone
        return room
