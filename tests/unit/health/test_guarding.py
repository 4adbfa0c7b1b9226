"""Whoever is led here by a foreign page is turned away, at websockets too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from recollect.health.guarding import Guard
from recollect.health.signing_in import Doorkeeper

OWN = "127.0.0.1:7332"


def answer(
    kind: str, path: str, headers: dict[str, str], *, host: str = "127.0.0.1", names: Any = ()
) -> Any:
    """`let in`, or what was sent instead: a status or a close."""
    sent: list[Any] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        sent.append("let in")

    async def send(message: Any) -> None:
        sent.append(message.get("status") or message.get("code"))

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    guard = Guard(inside, Doorkeeper("token", host=host, session_s=60.0), host, names)
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "path": path, "headers": raw, "method": "GET", "query_string": b""}
    asyncio.run(guard(scope, receive, send))
    return sent[0]


@pytest.mark.parametrize(
    ("headers", "http", "websocket"),
    [
        ({"Host": OWN}, "let in", "let in"),
        ({"Host": "[::1]:7332"}, "let in", "let in"),
        ({"Host": OWN, "Origin": f"http://{OWN}"}, "let in", "let in"),
        ({}, 421, 1008),
        ({"Host": "rebound.example:7332"}, 421, 1008),
        ({"Host": "192.168.1.7:7332"}, 421, 1008),
        ({"Host": OWN, "Origin": "http://rebound.example"}, 403, 1008),
        ({"Host": OWN, "Origin": "http://127.0.0.1:8080"}, 403, 1008),
        ({"Host": OWN, "Origin": "null"}, 403, 1008),
        ({"Host": OWN, "Origin": "http://[::1"}, 403, 1008),
    ],
)
def test_only_pages_of_this_place_may_ask(
    headers: dict[str, str], http: Any, websocket: Any
) -> None:
    assert answer("http", "/status", headers) == http
    assert answer("websocket", "/_nicegui_ws/socket.io/", headers) == websocket


def test_a_proxy_is_let_in_by_its_name() -> None:
    headers = {"Host": "memory.example", "Origin": "https://memory.example"}
    assert answer("http", "/status", headers) == 421
    assert answer("http", "/status", headers, names=("memory.example",)) == "let in"


def test_beyond_loopback_a_browser_is_led_to_sign_in_and_a_program_told() -> None:
    everywhere = {"host": "0.0.0.0"}
    own = {"Host": "192.168.1.7:7332"}
    assert answer("http", "/", own | {"Accept": "text/html"}, **everywhere) == 303
    assert answer("http", "/status", own, **everywhere) == 401
    assert answer("websocket", "/_nicegui_ws/socket.io/", own, **everywhere) == 1008
    assert answer("http", "/health/live", own, **everywhere) == "let in"
    bearer = own | {"Authorization": "Bearer token"}
    assert answer("http", "/status", bearer, **everywhere) == "let in"
    assert answer("http", "/status", bearer | {"Host": "a.example"}, **everywhere) == 421
