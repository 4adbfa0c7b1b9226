"""What a migration is to do: read and worked out first, so that it can be shown before it is done.

The reading is done in threads of the storage, the grouping and summing up in one of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from recollect.config.agents import TiersSettings
from recollect.orchestrator.calls import Call
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import PRESENT, MemoryRow
from recollect.orchestrator.memories.strength import Fading
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.tiers import due
from recollect.orchestrator.tiers.grouping import (
    Group,
    groups_among,
    may_be_summed_up,
    within_bounds,
)
from recollect.orchestrator.tiers.summarising import summary_of
from recollect.orchestrator.tiers.summary_row import summary_row
from recollect.orchestrator.validation import Validator
from recollect.protocol.errors import LimitExceeded, SecretRefused

DAY_US = 86_400_000_000
# No further than it matters: a large namespace is not counted through.
COUNT = f"""
SELECT count(*) FROM (SELECT 1 FROM memories WHERE namespace = ? AND {PRESENT} LIMIT ?) found
"""

FromTier = Literal["operational", "working"]


class Asked(msgspec.Struct, frozen=True):
    """What a migration is about."""

    home: Condition
    from_tier: FromTier | None
    older_than_days: float | None
    limit: int


class Summary(msgspec.Struct, frozen=True):
    """A group that is to be summed up, and the memory that will stand for it."""

    group: Group
    row: MemoryRow


class Plan(msgspec.Struct, frozen=True):
    """What is to become of what is due."""

    to_working: list[MemoryRow]
    to_longterm: list[MemoryRow]
    summaries: list[Summary]
    examined: int
    more: bool
    """Whether something is due that is left to the next run."""

    @property
    def places(self) -> list[str]:
        """Where something is to be changed."""
        rows = [*self.to_working, *self.to_longterm, *(s.group[0] for s in self.summaries)]
        return sorted({row.namespace for row in rows})


class Sorted(msgspec.Struct, frozen=True):
    """What is to become of some memories of working memory."""

    as_they_are: list[MemoryRow]
    summaries: list[Summary]
    left: list[MemoryRow]
    """To be summed up by a later run: this one would make their namespace too much fewer."""


NONE_DUE = due.Due([], more=False)


class Planning:
    """Works out what is to be done; writes nothing."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        fading: Fading,
        validator: Validator,
        settings: TiersSettings,
    ) -> None:
        self._storage = storage
        self._store = store
        self._fading = fading
        self._validator = validator
        self._settings = settings

    async def plan(self, call: Call, asked: Asked) -> Plan:
        """What is due now, and what is to become of it."""
        operational, working = await self._storage.read(partial(self._read, call, asked))
        sorted_out = await self.sorted_out(call, working.rows)
        return Plan(
            operational.rows,
            sorted_out.as_they_are,
            sorted_out.summaries,
            len(operational.rows) + len(working.rows),
            operational.more or working.more or bool(sorted_out.left),
        )

    async def sorted_out(self, call: Call, rows: Sequence[MemoryRow]) -> Sorted:
        """Which memories that leave working memory are summed up, and with which."""
        tasks, vectors = await self._storage.read(partial(self._bonds, rows))
        groups = await asyncio.to_thread(
            groups_among, rows, tasks, vectors, self._settings.group_similarity
        )
        totals = await self._storage.read(partial(self._totals, groups))
        chosen, left = within_bounds(groups, totals, self._settings.shrink_max)
        summaries = await asyncio.to_thread(self._summed_up, call, chosen)
        waiting = [row for group in left for row in group]
        busy = {row.num for summary in summaries for row in summary.group}
        busy |= {row.num for row in waiting}
        return Sorted([row for row in rows if row.num not in busy], summaries, waiting)

    def _read(self, call: Call, asked: Asked, session: Session) -> tuple[due.Due, due.Due]:
        settings = self._settings
        operational, working = NONE_DUE, NONE_DUE
        if asked.from_tier != "working":
            operational = due.of_operational(
                session,
                call,
                asked.home,
                before_us=_before_us(call, asked, settings.operational_days),
                most=settings.operational_max,
                limit=asked.limit,
            )
        if asked.from_tier != "operational":
            working = due.of_working(
                session,
                call,
                asked.home,
                before_us=_before_us(call, asked, settings.working_days),
                limit=asked.limit - len(operational.rows),
            )
        return operational, working

    def _bonds(
        self, rows: Sequence[MemoryRow], session: Session
    ) -> tuple[dict[int, str], dict[int, Vectors]]:
        """What binds memories together: their tasks, and what they mean."""
        summable = [row for row in rows if may_be_summed_up(row)]
        meaning = self._store.meanings.current
        return (
            due.tasks_of(session, summable),
            self._store.vectors.of(session, meaning, [row.num for row in summable]),
        )

    def _totals(self, groups: Sequence[Group], session: Session) -> Mapping[str, int]:
        """How many memories the namespaces of some groups have, as far as that matters."""
        fewer: dict[str, int] = {}
        for group in groups:
            home = group[0].namespace
            fewer[home] = fewer.get(home, 0) + len(group)
        totals: dict[str, int] = {}
        for home, count in fewer.items():
            enough = int(count / self._settings.shrink_max) + 1
            [(totals[home],)] = session.execute(COUNT, (home, enough))
        return totals

    def _summed_up(self, call: Call, groups: Sequence[Group]) -> list[Summary]:
        summaries: list[Summary] = []
        for group in groups:
            try:
                content = self._validator.content(summary_of([row.content for row in group]))
                row = summary_row(
                    group,
                    content,
                    author=call.author,
                    operation=call.operation,
                    now_us=call.now_us,
                    fading=self._fading,
                    validator=self._validator,
                )
            except (SecretRefused, LimitExceeded):
                continue  # what may not be said again moves on as it is
            summaries.append(Summary(group, row))
        return summaries


def _before_us(call: Call, asked: Asked, days: float) -> int:
    chosen = days if asked.older_than_days is None else asked.older_than_days
    return call.now_us - int(chosen * DAY_US)
