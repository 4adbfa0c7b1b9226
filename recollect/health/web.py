"""The web side of the health manager: how everything is, for pollers, Prometheus and people."""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.util import find_spec
from urllib.parse import parse_qs

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from recollect.config import Settings
from recollect.health.clients import Clients
from recollect.health.exposition import CONTENT_TYPE, Exposition
from recollect.health.guarding import SIGN_IN_PATH, Guard
from recollect.health.manager import HealthManager
from recollect.health.signing_in import COOKIE, Doorkeeper

log = structlog.get_logger()

FORM_BYTES_MAX = 4096
FORM_S_MAX = 5.0
SIGN_IN_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sign in · Recollect</title><link rel="icon" href="data:,">
<style>
  :root {{ color-scheme: light dark; --bg: #f6f7f9; --surface: #fff; --line: #e3e7ed;
           --text: #1c2330; --muted: #667085; --accent: #4259d6; --on: #fff; --bad: #b92c46 }}
  @media (prefers-color-scheme: dark) {{ :root {{ --bg: #11141a; --surface: #191d25;
           --line: #2b313d; --text: #e7eaf0; --muted: #8d97a8; --accent: #93a5ff; --on: #11141a;
           --bad: #f28397 }} }}
  body {{ display: grid; place-content: center; min-height: 100vh; margin: 0; color: var(--text);
          background: var(--bg); font: 15px/1.5 Roboto, system-ui, sans-serif }}
  form {{ display: grid; gap: 16px; box-sizing: border-box; width: min(368px, 90vw);
          padding: 28px; border-radius: 14px;
          background: var(--surface); border: 1px solid var(--line) }}
  h1 {{ margin: 0; font-size: 20px }} p {{ margin: 0; color: var(--muted) }}
  input, button {{ font: inherit; padding: 10px 12px; border-radius: 8px;
                   border: 1px solid var(--line); background: var(--bg); color: inherit }}
  button {{ cursor: pointer; background: var(--accent); color: var(--on); border: 0;
            font-weight: 500 }}
  :focus-visible {{ outline: 2px solid var(--accent); outline-offset: 2px }}
  .wrong {{ color: var(--bad) }}
</style>
<form method="post" action="/sign-in">
  <h1>Sign in to Recollect</h1>
  <p>The token is in <code>health/token</code> of the data folder.</p>
  {remark}
  <input type="password" name="token" aria-label="Token" placeholder="Token"
         autocomplete="current-password" autofocus>
  <button>Sign in</button>
</form></html>
"""


class Pages:
    """The routes that are always there."""

    def __init__(
        self, manager: HealthManager, exposition: Exposition, doorkeeper: Doorkeeper
    ) -> None:
        self._manager = manager
        self._exposition = exposition
        self._doorkeeper = doorkeeper

    def routes(self) -> list[Route]:
        return [
            Route("/health/live", self.live),
            Route("/health/ready", self.ready),
            Route("/status", self.status),
            Route("/metrics", self.metrics),
            Route(SIGN_IN_PATH, self.sign_in_page),
            Route(SIGN_IN_PATH, self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
        ]

    async def live(self, request: Request) -> Response:
        """Whether this process serves."""
        return _json({"status": "success", "live": True})

    async def ready(self, request: Request) -> Response:
        """Whether there is a memory to work with."""
        state = self._manager.state
        ready = state != "down"
        body = {"ready": ready, "state": state, "reasons": self._manager.reasons()}
        return _json(body, 200 if ready else 503)

    async def status(self, request: Request) -> Response:
        return _json(self._manager.status())

    async def metrics(self, request: Request) -> Response:
        return Response(self._exposition.text(), media_type=CONTENT_TYPE)

    async def sign_in_page(self, request: Request) -> Response:
        return HTMLResponse(SIGN_IN_PAGE.format(remark=""))

    async def sign_in(self, request: Request) -> Response:
        body = b""
        try:
            async with asyncio.timeout(FORM_S_MAX):
                async for part in request.stream():
                    body += part
                    if len(body) > FORM_BYTES_MAX:
                        return Response("The form is too long.", 413)
        except TimeoutError:
            return Response("The form did not come in time.", 408)
        form = parse_qs(body.decode(errors="replace"))
        if not self._doorkeeper.accepts(form.get("token", [""])[0].strip()):
            log.warning("Somebody tried to sign in with a wrong token.", action="sign_in")
            remark = '<p class="wrong" role="alert">That is not the token.</p>'
            return HTMLResponse(SIGN_IN_PAGE.format(remark=remark), 403)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            COOKIE,
            self._doorkeeper.new_cookie(),
            max_age=self._doorkeeper.session_s,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def sign_out(self, request: Request) -> Response:
        self._doorkeeper.sign_out(request.headers)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(COOKIE)
        return answer


async def _front_page(request: Request) -> Response:
    """Where there is no dashboard, `/` leads to what there is."""
    return RedirectResponse("/status")


def make_app(
    manager: HealthManager, settings: Settings, clients: Clients, doorkeeper: Doorkeeper
) -> Starlette:
    """The whole web side, behind its guard; with the dashboard if that is installed."""
    health = settings.health
    pages = Pages(manager, Exposition(manager), doorkeeper)
    guard = Middleware(
        Guard,
        doorkeeper=doorkeeper,
        host=health.host,
        hosts_allowed=health.hosts_allowed,
    )
    app = Starlette(routes=[*pages.routes()], middleware=[guard])
    app.state.doorkeeper = doorkeeper
    if not _mount_dashboard(app, manager, settings, clients):
        app.router.routes.append(Route("/", _front_page))
    return app


def _mount_dashboard(
    app: Starlette, manager: HealthManager, settings: Settings, clients: Clients
) -> bool:
    if not settings.health.dashboard:
        return False
    if find_spec("nicegui") is None or find_spec("recollect.health.dashboard") is None:
        log.info(
            "There is no dashboard: pip install 'recollect[dashboard]' brings it.",
            action="dashboard",
        )
        return False
    # Brought in here, since it takes long and not everybody has it.
    import_module("recollect.health.dashboard").mount(app, manager, clients, settings)
    return True


def _json(body: object, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(msgspec.json.encode(body), status, headers, "application/json")
