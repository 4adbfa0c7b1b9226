"""The health manager as a process: from settings to a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import structlog
import uvicorn

from recollect._version import VERSION
from recollect.client.places import Find
from recollect.config import Settings
from recollect.health.assembly import Assembly
from recollect.health.clients import Clients
from recollect.health.signing_in import Doorkeeper, token_in
from recollect.health.web import make_app
from recollect.web.descriptors import allow_descriptors
from recollect.web.hosts import is_loopback
from recollect.web.listening import OTHER_DESCRIPTORS, Server, listen, quickest_http, url_of

log = structlog.get_logger()

Announce = Callable[[dict[str, Any]], None]

FOLDER_NAME = "health"
TOKEN_NAME = "token"
LOCK_NAME = "lock"
CONNECT_S_MAX = 1.0
STOP_S_MAX = 2.0
# Browsers with the dashboard open hold a few each, pollers one; whoever comes beyond is told so.
CONNECTIONS_MAX = 512


class AlreadyWatched(Exception):
    """Another health manager watches over this folder."""


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Have a folder to oneself; raises AlreadyWatched."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / LOCK_NAME).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AlreadyWatched(
                f"Another health manager watches over {folder.parent} already."
            ) from None
        yield


async def serve(settings: Settings, find: Find, announce: Announce) -> int:
    """Run until SIGTERM or SIGINT; the exit code. `announce` leaves word of where it is."""
    health, data = settings.health, Path(settings.storage.data)
    folder = data / FOLDER_NAME
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    with alone_in(folder), listen(health.host, health.port, section="health") as listening:
        token_path = Path(health.token_file) if health.token_file else folder / TOKEN_NAME
        doorkeeper = Doorkeeper(
            token_in(token_path), host=health.host, session_s=health.session_hours * 3600
        )
        clients = Clients(
            find,
            timeout_s=health.probe_timeout_s,
            connect_s=min(CONNECT_S_MAX, health.probe_timeout_s),
        )
        parts = Assembly(settings, clients, folder)
        app = make_app(parts.manager, settings, clients, doorkeeper)
        config = uvicorn.Config(
            app,
            http=quickest_http(),
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=int(STOP_S_MAX),
        )
        server = Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        parts.manager.start()
        talking = [asyncio.create_task(parts.alerts.run())]
        if parts.webhook is not None:
            talking.append(asyncio.create_task(parts.webhook.run()))
        waiting = asyncio.create_task(stopping.wait())
        # Whoever asks as soon as they know where should not hear that nothing was looked at yet.
        looking = asyncio.create_task(parts.manager.looked.wait())
        await asyncio.wait(
            {looking, waiting, serving},
            timeout=health.probe_timeout_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        looking.cancel()
        url = url_of(health.host, listening.getsockname()[1])
        announce({"url": url, "version": VERSION})
        log.info(
            "Ready.",
            action="ready",
            url=url,
            endpoint=clients.endpoint,
            token_needed=not is_loopback(health.host),
            version=VERSION,
        )
        await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        failed = serving.done()
        server.should_exit = True
        for task in talking:
            task.cancel()
        await parts.manager.stop()
        await clients.close()
        await asyncio.wait({serving}, timeout=2 * STOP_S_MAX)
        log.info("Stopped.", action="stop")
        return 1 if failed else 0


def run(settings: Settings, find: Find, announce: Announce) -> int:
    """Run the health manager in this process until it is told to stop."""
    # The token and the history are nobody else's to read.
    os.umask(0o077)
    allow_descriptors(CONNECTIONS_MAX + OTHER_DESCRIPTORS)
    return asyncio.run(serve(settings, find, announce))
