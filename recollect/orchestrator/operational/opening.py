"""Makes operational memory as it is configured, and lets it begin with what the storage has."""

from __future__ import annotations

import time
import uuid
from functools import partial

import structlog

from recollect.config.settings import OperationalSettings, Settings
from recollect.orchestrator.clock import Clock, IdSource
from recollect.orchestrator.operational import critical
from recollect.orchestrator.operational.in_process import InProcess
from recollect.orchestrator.operational.interface import OperationalMemory
from recollect.orchestrator.operational.living import Living
from recollect.orchestrator.storage.interface import Storage, WriteTransaction
from recollect.orchestrator.storage.properties import STORE_ID, get_property, set_property

log = structlog.get_logger()


def open_operational(settings: Settings, ids: IdSource) -> OperationalMemory:
    """In process, or shared where a Redis is named."""
    if settings.redis.url == "embedded":
        log.warning(
            "There is no Redis of its own yet; operational memory is in process.", action="redis"
        )
    if settings.redis.url in ("off", "embedded"):
        return InProcess(settings.operational)
    from recollect.orchestrator.operational.redis import RedisMemory  # needs its package

    return RedisMemory(settings, ids, time.monotonic)


async def take_up(
    memory: OperationalMemory, storage: Storage, clock: Clock, settings: OperationalSettings
) -> None:
    """Begin with the last critical events of the storage, and with what is shared."""
    found = await storage.read(
        lambda session: critical.latest(
            session, clock.now_us(), settings.events_max, settings.bytes_max
        )
    )
    store_id = await storage.read(lambda session: get_property(session, STORE_ID))
    if store_id is None:
        store_id = await storage.write(partial(_name, uuid.uuid4().hex))
    await memory.start(store_id, found)
    # Whoever purged a memory may have had no Redis at hand to erase its event in.
    shared = memory.critical_ids(lambda namespace: True)
    if gone := await Living(storage).gone(clock.now_us(), shared):
        memory.discard(gone)


def _name(new: str, transaction: WriteTransaction) -> str:
    """What this store is called, by this orchestrator or by one that was quicker."""
    known = get_property(transaction, STORE_ID)
    if known is None:
        set_property(transaction, STORE_ID, new)
    return known or new
