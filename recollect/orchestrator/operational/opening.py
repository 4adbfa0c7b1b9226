"""Makes operational memory as it is configured, and lets it begin with what the storage has."""

from __future__ import annotations

import uuid
from functools import partial

from recollect.config.settings import OperationalSettings, Settings
from recollect.orchestrator.clock import Clock, IdSource
from recollect.orchestrator.operational import critical
from recollect.orchestrator.operational.in_process import InProcess
from recollect.orchestrator.operational.interface import OperationalMemory
from recollect.orchestrator.operational.living import Living
from recollect.orchestrator.redis.link import RedisLink
from recollect.orchestrator.storage.interface import Storage, WriteTransaction
from recollect.orchestrator.storage.properties import STORE_ID, get_property, set_property


def open_operational(settings: Settings, ids: IdSource, link: RedisLink) -> OperationalMemory:
    """In process, or in Redis as well where there is one."""
    if link.url is None:
        return InProcess(settings.operational)
    from recollect.orchestrator.operational.redis import RedisMemory  # needs its package

    return RedisMemory(settings.operational, ids, link)


async def name_store(storage: Storage) -> str:
    """The id of the store, by which it is told from others that share its Redis."""
    store_id = await storage.read(lambda session: get_property(session, STORE_ID))
    if store_id is None:
        store_id = await storage.write(partial(_name, uuid.uuid4().hex))
    return store_id


async def take_up(
    memory: OperationalMemory,
    store_id: str,
    storage: Storage,
    clock: Clock,
    settings: OperationalSettings,
) -> None:
    """Begin with the last critical events of the storage, and with what is shared."""
    found = await storage.read(
        lambda session: critical.latest(
            session, clock.now_us(), settings.events_max, settings.bytes_max
        )
    )
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
