"""The pages about REST: the OpenAPI document, and the one that shows it and tries it out.

What the page needs beside its own few lines comes from a package on this machine (Swagger UI, in
fastapi-offline), so that it works without a network and under a strict policy.
"""

from __future__ import annotations

import gzip
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import structlog
from starlette.types import Scope, Send

from recollect.gateway.rest.answers import SAFE, send_answer, send_problem, takes_gzip
from recollect.gateway.rest.openapi import openapi_document
from recollect.gateway.rest.problems import Header
from recollect.protocol.errors import UnknownOperation

log = structlog.get_logger()

DOCS_PATH = "/docs"
OPENAPI_PATH = "/openapi.json"
SWAGGER_PACKAGE = "fastapi_offline"
SWAGGER_FILES = {"swagger-ui-bundle.js": b"text/javascript", "swagger-ui.css": b"text/css"}
OWN_FILES = {"docs.js": b"text/javascript", "docs.css": b"text/css"}
KEPT_S = 3600
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    b"img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'"
)


class Page(NamedTuple):
    """What is served at a path, made once."""

    content_type: bytes
    body: bytes
    zipped: bytes
    headers: tuple[Header, ...]


class Pages:
    """Everything about REST that is not REST. It is made at the start, and held in memory."""

    def __init__(self) -> None:
        kept = ((b"cache-control", b"max-age=%d" % KEPT_S),)
        self._pages = {OPENAPI_PATH: _page(b"application/json", openapi_document(), ())}
        assets = _assets()
        for name, (kind, body) in assets.items():
            self._pages[f"{DOCS_PATH}/{name}"] = _page(kind, body, kept)
        html = _own("docs.html" if "swagger-ui.css" in assets else "docs_missing.html")
        policy = ((b"content-security-policy", POLICY), (b"x-frame-options", b"DENY"))
        self._pages[DOCS_PATH] = _page(b"text/html; charset=utf-8", html, policy)

    async def __call__(self, scope: Scope, send: Send) -> bool:
        """Answer, if one of the pages was asked for; whether it was."""
        path = scope["path"]
        page = self._pages.get(path)
        if page is None and path not in ("/", f"{DOCS_PATH}/"):
            return False
        if scope["method"] not in ("GET", "HEAD"):
            error = UnknownOperation("Only GET means something here.")
            await send_problem(send, error, [(b"allow", b"GET, HEAD")], status=405)
        elif page is None:
            await send_answer(send, 307, b"", [(b"location", DOCS_PATH.encode())])
        else:
            await _send(page, dict(scope["headers"]).get(b"accept-encoding"), send)
        return True


def _assets() -> dict[str, tuple[bytes, bytes]]:
    found = {name: (kind, _own(name)) for name, kind in OWN_FILES.items()}
    # Looked for and not imported: only its files are wanted.
    spec = find_spec(SWAGGER_PACKAGE)
    if spec is None or spec.origin is None:
        log.info(
            "There is no page to try REST out: pip install 'recollect[gateway]' brings it.",
            action="docs",
        )
        return found
    folder = Path(spec.origin).parent / "static"
    for name, kind in SWAGGER_FILES.items():
        found[name] = (kind, (folder / name).read_bytes())
    return found


def _own(name: str) -> bytes:
    return files("recollect.gateway").joinpath("assets", name).read_bytes()


def _page(kind: bytes, body: bytes, headers: tuple[Header, ...]) -> Page:
    said = dict(headers)
    rest = tuple(header for header in SAFE if header[0] not in said)
    return Page(kind, body, gzip.compress(body, 6, mtime=0), (*rest, *headers))


async def _send(page: Page, accepted: bytes | None, send: Send) -> None:
    body = page.body
    headers = [(b"content-type", page.content_type), *page.headers, (b"vary", b"accept-encoding")]
    if takes_gzip(accepted):
        body = page.zipped
        headers.append((b"content-encoding", b"gzip"))
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
