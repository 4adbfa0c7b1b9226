"""The gateway as a process: from settings to a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable
from typing import Any

import structlog
import uvicorn

from recollect._version import VERSION
from recollect.client.places import Find
from recollect.config.gateway import GatewaySettings
from recollect.event_loop import quickest_loop
from recollect.gateway.admission import Admission
from recollect.gateway.app import MCP_PATH, GatewayApp, make_app
from recollect.gateway.asking import Backend
from recollect.gateway.callers import Doorman
from recollect.gateway.living import Life
from recollect.gateway.pages import Pages
from recollect.gateway.parts import Grpc, Mcp, grpc_server, mcp_endpoint
from recollect.gateway.rest.serving import Rest
from recollect.protocol.errors import RecollectError
from recollect.web.descriptors import allow_descriptors
from recollect.web.hosts import is_loopback
from recollect.web.listening import OTHER_DESCRIPTORS, Server, listen, quickest_http, url_of

log = structlog.get_logger()

Announce = Callable[[dict[str, Any]], None]

SECTION = "gateway"
BACKLOG = 1024
FOLLOW_S = 1.0
# What was accepted is answered before the end, unless that takes longer than this.
DRAIN_S_MAX = 10.0
COLLECT_AFTER = (50_000, 20, 100)
# Connections for each request that may be in work: most of them are idle.
CONNECTIONS_PER_REQUEST = 8


class Gateway:
    """All that one gateway serves. Lives on the event loop."""

    def __init__(self, settings: GatewaySettings, find: Find) -> None:
        self._settings = settings
        self._backend = Backend(find, timeout_s=settings.timeout_s)
        self._doorman = Doorman(keys_needed=self._keys_needed())
        self._life = Life(self._backend)
        admission = Admission(settings.requests_max, settings.requests_per_s)
        self._rest = (
            Rest(self._backend, self._doorman, admission, settings) if settings.rest else None
        )
        self._mcp: Mcp | None = mcp_endpoint(self._backend, self._doorman, admission, settings)
        self._grpc: Grpc | None = grpc_server(self._backend, self._doorman, settings)
        app = GatewayApp(
            settings,
            admission,
            self._life,
            rest=self._rest,
            pages=Pages() if settings.rest else None,
            mcp=self._mcp,
        )
        self._server = Server(_config_of(settings, make_app(app, settings)))

    def _keys_needed(self) -> bool:
        """Whoever comes without a key is taken for the gateway itself, which may do much where it
        came in by a key: so then they need one of their own."""
        beyond = not is_loopback(self._settings.host)
        return self._settings.require_keys or beyond or self._backend.has_key

    async def serve(self, announce: Announce, stopping: asyncio.Event) -> int:
        """Serve until told to stop; the exit code."""
        settings = self._settings
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._backend.close)
            listening = stack.enter_context(
                listen(settings.host, settings.port, section=SECTION, backlog=BACKLOG)
            )
            if self._mcp is not None:
                await stack.enter_async_context(self._mcp.running())
            facts = await self._start(stack, listening.getsockname()[1])
            serving = asyncio.create_task(self._server.serve(sockets=[listening]))
            following = asyncio.create_task(self._follow())
            _spare_collecting()
            announce(facts)
            log.info(
                "Ready.",
                action="ready",
                endpoint=self._backend.endpoint,
                keys_needed=self._doorman.keys_needed,
                **facts,
            )
            waiting = asyncio.create_task(stopping.wait())
            await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            failed = serving.done()
            log.info("Draining.", action="drain")
            await self._drain(serving)
            following.cancel()
        log.info("Stopped.", action="stop")
        return 1 if failed else 0

    async def _start(self, stack: contextlib.AsyncExitStack, port: int) -> dict[str, Any]:
        """Start what listens beside the web side; what there is to be told of all of it."""
        settings = self._settings
        scheme = "https" if settings.tls_certificate else "http"
        url = url_of(settings.host, port, scheme)
        facts: dict[str, Any] = {"url": url, "version": VERSION, "rest": settings.rest}
        if self._mcp is not None:
            facts["mcp_url"] = url + MCP_PATH
        if self._grpc is not None:
            grpc_port = await self._grpc.start()
            stack.push_async_callback(self._grpc.stop, 0.0)
            facts["grpc"] = url_of(settings.host, grpc_port).partition("//")[2]
        return facts

    async def _drain(self, serving: asyncio.Task[None]) -> None:
        """Answer what was accepted; streams have no end of their own, and get one."""
        self._life.stopping = True
        if self._rest is not None:
            self._rest.streams.close()
        self._server.should_exit = True
        # Both sides at once: whoever stops the gateway does not wait for one after the other.
        async with asyncio.TaskGroup() as both:
            both.create_task(_wait_for(serving))
            if self._grpc is not None:
                both.create_task(self._grpc.stop(DRAIN_S_MAX))

    async def _follow(self) -> None:
        """Keep to the orchestrator when it comes back elsewhere, or asks for keys by now."""
        while True:
            await asyncio.sleep(FOLLOW_S)
            try:
                await self._backend.follow()
            except (RecollectError, OSError, ValueError) as error:
                # Of a key file that is exchanged just now, say. The next look finds another.
                log.warning("The orchestrator is not found.", action="follow", reason=str(error))
            self._doorman.keys_needed = self._keys_needed()


async def _wait_for(serving: asyncio.Task[None]) -> None:
    await asyncio.wait({serving}, timeout=DRAIN_S_MAX + 1.0)


def _spare_collecting() -> None:
    """What is there after the start stays: looking for garbage in it costs every request."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def _connections_max(settings: GatewaySettings) -> int:
    return CONNECTIONS_PER_REQUEST * settings.requests_max + settings.streams_max


def _config_of(settings: GatewaySettings, app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=quickest_http(),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=_connections_max(settings),
        timeout_graceful_shutdown=int(DRAIN_S_MAX),
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )


async def serve(settings: GatewaySettings, find: Find, announce: Announce) -> int:
    """Run until SIGTERM or SIGINT; the exit code. `announce` leaves word of where it is."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return await Gateway(settings, find).serve(announce, stopping)


def run(settings: GatewaySettings, find: Find, announce: Announce) -> int:
    """Run the gateway in this process until it is told to stop."""
    grpc_calls = settings.requests_max + settings.streams_max if settings.grpc else 0
    allow_descriptors(_connections_max(settings) + grpc_calls + OTHER_DESCRIPTORS)
    with asyncio.Runner(loop_factory=quickest_loop()) as runner:
        return runner.run(serve(settings, find, announce))
