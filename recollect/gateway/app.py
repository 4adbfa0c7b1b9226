"""The web side of the gateway: REST, MCP and the pages about them behind one guard."""

from __future__ import annotations

from typing import Protocol

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.config.gateway import GatewaySettings
from recollect.gateway.admission import Admission
from recollect.gateway.guarding import Guard
from recollect.gateway.living import Life
from recollect.gateway.pages import Pages
from recollect.gateway.rest import saying
from recollect.gateway.rest.answers import send_problem
from recollect.gateway.rest.problems import Refusal
from recollect.gateway.rest.serving import Rest
from recollect.protocol.errors import RecollectError, UnknownOperation

REST_PREFIX = "/v1/"
MCP_PATH = "/mcp"
CORS_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
CORS_AGE_S = 600
CORS_HEADERS = (
    "Content-Type",
    "Last-Event-ID",
    "Mcp-Session-Id",
    "Mcp-Protocol-Version",
    *(name.decode().title() for name in saying.READ),
)


class Served(Protocol):
    """What is served at a path of the gateway."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class GatewayApp:
    """Leads each request to what serves it. Parts that are not served are None."""

    def __init__(
        self,
        settings: GatewaySettings,
        admission: Admission,
        life: Life,
        *,
        rest: Rest | None,
        pages: Pages | None,
        mcp: Served | None,
    ) -> None:
        self._guard = Guard(settings)
        self._admission = admission
        self._life = life
        self._rest = rest
        self._pages = pages
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        path: str = scope["path"]
        try:
            self._guard.check(path, scope["headers"])
        except Refusal as refused:
            await send_problem(send, refused.error, status=refused.status)
            return
        if self._rest is not None and path.startswith(REST_PREFIX):
            await self._rest(scope, receive, send)
        elif self._mcp is not None and (path == MCP_PATH or path.startswith(f"{MCP_PATH}/")):
            await self._serve_mcp(self._mcp, scope, receive, send)
        else:
            await self._serve_page(scope, path, send)

    async def _serve_mcp(self, mcp: Served, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        keys = [value for name, value in scope["headers"] if name == saying.AUTHORIZATION]
        # The key alone: however the scheme before it is written, it is the same caller.
        key = keys[0].partition(b" ")[2].strip().decode("latin-1") if keys else ""
        caller = key or (client[0] if client else "")
        try:
            self._admission.count(caller)
        except RecollectError as error:
            await send_problem(send, error)
            return
        await mcp(scope, receive, send)

    async def _serve_page(self, scope: Scope, path: str, send: Send) -> None:
        served = await self._life(scope, send)
        if not served and self._pages is not None:
            served = await self._pages(scope, send)
        if not served:
            what = "/openapi.json lists what there is" if self._pages else "REST is switched off"
            await send_problem(send, UnknownOperation(f"There is nothing at this path; {what}."))


def make_app(app: GatewayApp, settings: GatewaySettings) -> ASGIApp:
    """The whole web side; pages of the allowed origins may read its answers."""
    if not settings.origins_allowed:
        return app
    return CORSMiddleware(
        app,
        allow_origins=settings.origins_allowed,
        allow_methods=CORS_METHODS,
        allow_headers=CORS_HEADERS,
        expose_headers=[*saying.TOLD, "Mcp-Session-Id"],
        max_age=CORS_AGE_S,
    )
