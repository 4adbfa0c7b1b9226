"""The orchestrator as a process: from settings to a clean end."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import signal
from pathlib import Path

import structlog

from recollect._version import VERSION
from recollect.config.settings import Settings
from recollect.orchestrator import failpoints
from recollect.orchestrator.assembly import Orchestrator
from recollect.orchestrator.clock import SystemClock
from recollect.orchestrator.data_folder import DataFolder
from recollect.orchestrator.server import Server

log = structlog.get_logger()


class NotLoopback(Exception):
    """The endpoint could be reached by strangers."""


def check_loopback(endpoint: str) -> None:
    """Refuse an endpoint beyond this machine: there are no keys yet that would guard it."""
    scheme, _, rest = endpoint.partition("://")
    if scheme == "ipc":
        return
    host = rest.rsplit(":", 1)[0].strip("[]")
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise NotLoopback(
            f"{endpoint} can be reached from other machines, and nothing would guard it. Bind to "
            "tcp://127.0.0.1:PORT, and let other machines in through a tunnel."
        )


async def serve(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT; the exit code."""
    check_loopback(settings.network.bind)
    failpoints.arm(os.environ.get("RECOLLECT_FAILPOINTS", ""))
    folder = DataFolder(Path(settings.storage.data))
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    try:
        # The endpoint first: if it is taken, nothing else need be done to say so.
        server = Server(settings.network, settings.limits)
        try:
            orchestrator = Orchestrator(settings, SystemClock())
            await orchestrator.start()
        except BaseException:
            server.close()
            raise
        settle_garbage_collection()
        server.start(orchestrator.dispatcher)
        folder.announce({"pid": os.getpid(), "endpoint": server.endpoint, "version": VERSION})
        log.info(
            "Ready.",
            action="ready",
            endpoint=server.endpoint,
            data=str(folder.path),
            version=VERSION,
        )
        await stopping.wait()
        log.info("Draining.", action="drain", in_flight=orchestrator.dispatcher.in_flight)
        in_time = await orchestrator.stop()
        server.stop()
        log.info("Stopped.", action="stop", drained=in_time)
        return 0 if in_time else 1
    finally:
        folder.release()


def settle_garbage_collection() -> None:
    """Leave what start-up made out of every later collection, and collect less often.

    A request makes no cycles, so frequent collections only cost time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def run(settings: Settings) -> int:
    """Run the orchestrator in this process until it is told to stop."""
    return asyncio.run(serve(settings))
