"""The error bus on disk: known again after a restart, and shared where the storage is.

What was reported is written in the background, gathered for a second, and added to what others
counted; no request waits for it, and a crash may cost the last second.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import structlog

from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.troubles.error_bus import COUNT_MAX, ErrorBus, Kind, Seen
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

GATHERED_S = 1.0
RETRY_S = 5.0
SELECT = """
SELECT source, code, message, identity, count, first_us, last_us, context FROM errors_seen
ORDER BY last_us DESC, kind DESC LIMIT ?
"""
ADD = f"""
INSERT INTO errors_seen
    (kind, source, code, message, identity, context, count, first_us, last_us)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (kind) DO UPDATE SET
    count = CASE WHEN errors_seen.count > {COUNT_MAX} - excluded.count THEN {COUNT_MAX}
        ELSE errors_seen.count + excluded.count END,
    last_us = CASE WHEN errors_seen.last_us > excluded.last_us THEN errors_seen.last_us
        ELSE excluded.last_us END,
    context = excluded.context
"""
SURPLUS_AT_ONCE = 100_000
FORGET = f"""
DELETE FROM errors_seen WHERE kind IN (
    SELECT kind FROM errors_seen ORDER BY last_us DESC, kind DESC LIMIT {SURPLUS_AT_ONCE} OFFSET ?
)
"""


class ErrorKeeping:
    """Brings the bus to the table and back. Lives on the event loop."""

    def __init__(self, bus: ErrorBus, storage: Storage, kinds_max: int) -> None:
        self._bus = bus
        self._storage = storage
        self._kinds_max = kinds_max
        # Held while the table and what is not in it yet are moved against each other.
        self._moving = asyncio.Lock()

    async def load(self) -> None:
        """Learn what is kept, others' as well."""
        async with self._moving:
            kept = await self._storage.read(lambda session: read_kept(session, self._kinds_max))
            self._bus.learn(reversed(kept))

    async def refresh(self) -> None:
        """Where others may have reported to the same storage, learn what is kept now."""
        if not self._storage.inline_reads:
            try:
                await self.load()
            except RecollectError as error:
                log.warning("Errors were not read.", action="errors", reason=error.message)

    async def flush(self) -> bool:
        """Write what was reported; whether there was anything."""
        async with self._moving:
            taken = self._bus.take_unwritten()
            if not taken:
                return False
            try:
                await self._storage.write(partial(add_kept, taken, self._kinds_max))
            except RecollectError as error:
                if error.retryable:
                    self._bus.put_back(taken)
                raise
        return True

    async def run(self) -> None:
        """Write again and again what was reported."""
        while True:
            await asyncio.sleep(GATHERED_S)
            try:
                await self.flush()
            except RecollectError as error:
                # Nothing is reported about that, for the report would be the next to fail.
                log.warning("Errors were not kept.", action="errors", reason=error.message)
                await asyncio.sleep(RETRY_S)


def read_kept(session: Session, limit: int) -> list[tuple[Kind, Seen]]:
    """What is kept, the latest first."""
    kept = []
    for *kind, count, first_us, last_us, context in session.execute(SELECT, (limit,)):
        seen = Seen(count, first_us, last_us, msgspec.json.decode(context))
        kept.append((Kind(*kind), seen))
    return kept


def add_kept(
    taken: Sequence[tuple[Kind, Seen]], kinds_max: int, transaction: WriteTransaction
) -> None:
    """Add to what is kept, and forget what was seen longest ago."""
    # In one order, so that two orchestrators that add the same never wait for each other.
    rows = sorted(
        (_digest(kind), *kind, _json(seen.context), seen.count, seen.first_us, seen.last_us)
        for kind, seen in taken
    )
    transaction.executemany(ADD, rows)
    transaction.execute(FORGET, (kinds_max,))


def _digest(kind: Kind) -> str:
    # An index does not take texts of any length.
    return hashlib.sha256(msgspec.msgpack.encode(kind)).hexdigest()


def _json(context: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(context).decode()
    except (TypeError, ValueError, OverflowError):
        return "{}"
