"""The guard before the web side: whoever is led here by a foreign page is turned away.

The name in `Host` must be one of ours, an `Origin` must be the very same place (see
recollect/web/hosts.py), and beyond loopback nothing is shown to whoever has not signed in.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.health.signing_in import Doorkeeper
from recollect.web.hosts import Hosts

SIGN_IN_PATH = "/sign-in"
OPEN_PATHS = frozenset({"/health/live", SIGN_IN_PATH})
"""What is answered to everybody."""


class Guard:
    """Middleware around the whole web side, websockets included."""

    def __init__(
        self, app: ASGIApp, doorkeeper: Doorkeeper, host: str, hosts_allowed: Iterable[str]
    ) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._hosts = Hosts(host, hosts_allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refusal(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to whoever is not let in."""
        if len(headers.getlist("host")) != 1 or not self._hosts.is_ours(headers["host"]):
            return _refused(421, "foreign_host", "This is not a name of this server.")
        origins = headers.getlist("origin")
        if origins and not all(self._hosts.is_same_place(one, headers["host"]) for one in origins):
            return _refused(403, "foreign_origin", "Pages of others may not ask here.")
        if scope["path"] in OPEN_PATHS or self._doorkeeper.may_view(headers):
            return None
        if "text/html" in headers.get("accept", "") and scope["type"] == "http":
            return RedirectResponse(SIGN_IN_PATH, 303)
        return _refused(401, "unauthenticated", "Sign in with the token: Authorization: Bearer …")


def _refused(status: int, code: str, message: str) -> Response:
    error = {"code": code, "message": message, "retryable": False, "details": {}}
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"status": "error", "error": error}, status, headers)
