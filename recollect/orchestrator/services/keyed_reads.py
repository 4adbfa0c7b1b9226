"""Reading memories by namespace and key: the present, the past, and what changed between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.clock import parse_moment
from recollect.orchestrator.memories.accesses import AccessLog
from recollect.orchestrator.memories.keys import Keys, Place
from recollect.orchestrator.memories.rows import MemoryRow, record_of
from recollect.orchestrator.memories.version_diffs import changes_between, text_diff
from recollect.orchestrator.services.listing import ListingService
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operations import Diff, GetByKey, HistoryByKey


class KeyedReadService:
    """What a key holds, held, and was changed to."""

    def __init__(
        self, storage: Storage, keys: Keys, listing: ListingService, accesses: AccessLog
    ) -> None:
        self._storage = storage
        self._keys = keys
        self._listing = listing
        self._accesses = accesses

    @reads(GetByKey)
    def get_by_key(
        self, call: Call, operation: GetByKey
    ) -> records.MemoryFetched | Awaitable[records.MemoryFetched]:
        place = self._keys.place(operation.namespace, operation.key)
        if operation.as_of is not None or operation.version is not None:
            return self._get_past(call, operation, place)
        if self._storage.inline_reads:
            row = self._storage.read_inline(
                lambda session: self._keys.require(call, session, place)
            )
            return self._fetched(call, row)
        return self._get_far(call, place)

    async def _get_far(self, call: Call, place: Place) -> records.MemoryFetched:
        row = await self._storage.read(
            lambda session: self._keys.require(call, session, place), asks_once=True
        )
        return self._fetched(call, row)

    def _fetched(self, call: Call, row: MemoryRow) -> records.MemoryFetched:
        self._accesses.apply(row)
        self._accesses.note(row.id, call.now_us)
        return {"status": "success", "memory": record_of(row, call.now_us)}

    async def _get_past(
        self, call: Call, operation: GetByKey, place: Place
    ) -> records.MemoryFetched:
        if operation.as_of is not None and operation.version is not None:
            raise InvalidArgument("Give as_of or version, not both.", field="as_of")
        moment_us = parse_moment("as_of", operation.as_of)

        def read(session: Session) -> MemoryRow:
            if moment_us is not None:
                return self._keys.at_moment(call, session, place, moment_us)
            assert operation.version is not None
            return self._keys.in_version(call, session, place, operation.version)

        row = await self._storage.read(read)
        return {"status": "success", "memory": record_of(row, call.now_us)}

    @reads(HistoryByKey)
    def history_by_key(
        self, call: Call, operation: HistoryByKey
    ) -> records.MemoryHistory | asyncio.Future[records.MemoryHistory]:
        place = self._keys.place(operation.namespace, operation.key)
        return self._listing.history_of(
            call, operation, lambda session: self._keys.last(call, session, place)
        )

    @reads(Diff)
    def diff(self, call: Call, operation: Diff) -> asyncio.Future[records.MemoryDiff]:
        place = self._keys.place(operation.namespace, operation.key)

        def read(session: Session) -> records.MemoryDiff:
            before = self._keys.in_version(call, session, place, operation.from_version)
            if operation.to_version is None:
                after = self._keys.last(call, session, place)
            else:
                after = self._keys.in_version(call, session, place, operation.to_version)
            return {
                "status": "success",
                "memory_id": after.id,
                "from_version": before.version,
                "to_version": after.version,
                "changes": changes_between(before, after, call.now_us),
                "text": text_diff(before, after),
            }

        return self._storage.read(read)
