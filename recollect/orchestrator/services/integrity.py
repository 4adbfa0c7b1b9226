"""Whether a store is whole, found out while it is served."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.maintenance import checks
from recollect.orchestrator.maintenance.agreement import Agreement
from recollect.orchestrator.maintenance.checks import Problem
from recollect.orchestrator.search.lexical import LexicalIndex
from recollect.orchestrator.storage.damage import is_damage
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.storage.journal_walk import JournalWalk
from recollect.protocol import records
from recollect.protocol.errors import DeadlineExceeded, StorageFailed
from recollect.protocol.operations import CheckIntegrity

COMPARE = "Somebody or something changed the past. Compare with a backup."
REPAIR = "`check_index` sets that right; the health manager asks for it by itself."


class IntegrityService:
    """Looks at every part of the store; changes nothing."""

    def __init__(
        self, storage: Storage, lexical: LexicalIndex, agreement: Agreement, clock: Clock
    ) -> None:
        self._storage = storage
        self._lexical = lexical
        self._agreement = agreement
        self._clock = clock
        # One at a time, since it reads all there is.
        self._checking = asyncio.Lock()

    @reads(CheckIntegrity)
    async def check_integrity(
        self, call: Call, operation: CheckIntegrity
    ) -> records.IntegrityChecked:
        async with self._checking:
            problems: dict[str, list[Problem]] = {}
            for part, check in self._checks(call, operation.quick).items():
                try:
                    problems[part] = await check()
                except StorageFailed as error:
                    # A storage that is away for a moment may be whole.
                    if not is_damage(error):
                        raise
                    text = f"It cannot be read: {error.message}"
                    problems[part] = [Problem(part, text, self._storage.restoring)]
        found = [problem for some in problems.values() for problem in some]
        return {
            "status": "success",
            "sound": not any(problem.serious for problem in found),
            "problems": [
                {"part": problem.part, "text": problem.text, "advice": problem.advice}
                for problem in found
            ],
            "checked": list(problems),
        }

    def _checks(self, call: Call, quick: bool) -> dict[str, Callable[[], Awaitable[list[Problem]]]]:
        """What is looked at, one after the other."""
        restore = self._storage.restoring
        return {
            "database": partial(self._database, quick),
            "audit": partial(self._audit, call),
            "vectors": partial(self._read, checks.check_vectors),
            "links": partial(self._read, partial(checks.check_links, restore)),
            "index": partial(self._index, call),
            "words": partial(
                self._read, partial(checks.check_words, self._lexical.held_sql, restore)
            ),
        }

    async def _read(self, check: Callable[[Session], Iterator[Problem]]) -> list[Problem]:
        return await self._storage.read(lambda session: list(check(session)))

    async def _database(self, quick: bool) -> list[Problem]:
        found = await self._storage.problems(quick=quick)
        if not found:
            return []
        text = f"The database finds damage: {'; '.join(found)}."
        return [Problem("database", text, self._storage.restoring)]

    async def _audit(self, call: Call) -> list[Problem]:
        walk = JournalWalk()
        while await self._storage.read(walk.step):
            self._check_time(call)
        if walk.misfit is None:
            return []
        text = f"The chain of the audit is broken: {walk.misfit.text}."
        return [Problem("audit", text, COMPARE)]

    async def _index(self, call: Call) -> list[Problem]:
        found = await self._agreement.check(
            call, repair=False, go_on=lambda: self._check_time(call)
        )
        if not (found.missing or found.surplus):
            return []
        lacks, holds = f"lacks {found.missing:,} vectors", f"holds {found.surplus:,} too many"
        return [Problem("index", f"The vector index {lacks} and {holds}.", REPAIR)]

    def _check_time(self, call: Call) -> None:
        if self._clock.now_us() >= call.deadline_us:
            raise DeadlineExceeded("There was no time for all of it: ask with a longer timeout.")
