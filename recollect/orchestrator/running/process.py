"""The orchestrator as a process: from settings to a clean end."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import ipaddress
import os
import signal
from contextlib import suppress
from pathlib import Path

import structlog

from recollect._version import VERSION
from recollect.config.settings import Settings
from recollect.event_loop import quickest_loop
from recollect.orchestrator.access.own_keys import OwnKeys, ensure_own_keys
from recollect.orchestrator.clock import SystemClock
from recollect.orchestrator.running import failpoints
from recollect.orchestrator.running.data_folder import DataFolder, keep_to_owner
from recollect.orchestrator.running.lifecycle import Orchestrator
from recollect.orchestrator.running.stopped_store import StoppedStore
from recollect.orchestrator.serving.guarded_server import GuardedServer
from recollect.orchestrator.serving.server import Server

log = structlog.get_logger()

M_ARENA_MAX = -8  # of mallopt


class NobodyKnown(Exception):
    """The endpoint could be reached by strangers, and nobody has a key that would tell them."""


def is_loopback(endpoint: str) -> bool:
    """Whether an endpoint can be reached from this machine alone."""
    scheme, _, rest = endpoint.partition("://")
    if scheme == "ipc":
        return True
    host = rest.rsplit(":", 1)[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def check_somebody_is_known(settings: Settings) -> None:
    """Refuse an endpoint beyond this machine as long as there is no key to come in with."""
    store = StoppedStore(settings)
    await store.open()
    try:
        if await store.has_keys():
            return
    finally:
        await store.close()
    raise NobodyKnown(
        f"{settings.network.bind} can be reached from other machines, and nobody has a key yet. "
        f"Make one with `recollect keys new NAME --grant PATTERN=ACCESS --data "
        f"{settings.storage.data}`, or bind to tcp://127.0.0.1:PORT."
    )


def server_of(settings: Settings, own_keys: OwnKeys, *, guarded: bool) -> Server:
    """The socket at its endpoint, behind a gate where keys are asked for."""
    if guarded:
        return GuardedServer(settings.network, settings.limits, own_keys.server.secret_key)
    return Server(settings.network, settings.limits)


async def serve(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT; the exit code."""
    failpoints.arm_from_environment()
    folder = DataFolder(Path(settings.storage.data))
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    try:
        loopback = is_loopback(settings.network.bind)
        guarded = settings.access.require_keys or not loopback
        if not loopback:
            await check_somebody_is_known(settings)
        own_keys = ensure_own_keys(folder.path)
        # The endpoint first: if it is taken, nothing else need be done to say so.
        server = server_of(settings, own_keys, guarded=guarded)
        try:
            orchestrator = Orchestrator(settings, SystemClock(), own_keys)
            if isinstance(server, GuardedServer):
                await orchestrator.know_keys()
                server.open_gate(orchestrator.parts.keyring, orchestrator.parts.attempts)
            await orchestrator.start()
        except BaseException:
            server.close()
            raise
        settle_garbage_collection()
        server.start(orchestrator.dispatcher)
        folder.announce(
            {
                "pid": os.getpid(),
                "endpoint": server.endpoint,
                "version": VERSION,
                "keys": guarded,
            }
        )
        log.info(
            "Ready.",
            action="ready",
            endpoint=server.endpoint,
            data=str(folder.path),
            version=VERSION,
            keys=guarded,
        )
        await stopping.wait()
        log.info("Draining.", action="drain", in_flight=orchestrator.dispatcher.in_flight)
        in_time = await orchestrator.stop()
        server.stop()
        log.info("Stopped.", action="stop", drained=in_time)
        return 0 if in_time else 1
    finally:
        folder.release()


def share_one_arena() -> None:
    """Have all threads take their memory from one place, where the C library is glibc.

    By itself it gives each of them an arena, and what these keep for themselves adds up; the
    interpreter lets one thread work at a time anyway. To be called before there are threads.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def settle_garbage_collection() -> None:
    """Leave what start-up made out of every later collection, and collect less often.

    A request makes no cycles, so frequent collections only cost time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def run(settings: Settings) -> int:
    """Run the orchestrator in this process until it is told to stop."""
    share_one_arena()
    keep_to_owner()
    with asyncio.Runner(loop_factory=quickest_loop()) as runner:
        return runner.run(serve(settings))
