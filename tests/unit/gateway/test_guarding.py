"""Pages of others do not get in, by whatever name they lead here."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.config import GatewaySettings
from recollect.gateway.guarding import Guard
from recollect.gateway.rest.problems import Refusal

OWN = "127.0.0.1:7333"
APP = "https://app.example.org"


def status(headers: list[tuple[str, str]], path: str = "/v1/ping", **settings: Any) -> int:
    """The status with which a request is turned away; 0 if it is let in."""
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    try:
        Guard(GatewaySettings(**settings)).check(path, raw)
    except Refusal as refused:
        return refused.status
    return 0


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("Host", OWN)], 0),
        ([("Host", "localhost:7333")], 0),
        ([("Host", OWN), ("Origin", f"http://{OWN}")], 0),
        ([("Host", OWN), ("Sec-Fetch-Site", "same-origin")], 0),
        ([("Host", OWN), ("Sec-Fetch-Site", "none")], 0),
        ([], 421),
        ([("Host", "rebound.example:7333")], 421),
        ([("Host", OWN), ("Host", OWN)], 421),
        ([("Host", "")], 421),
        ([("Host", OWN), ("Origin", "http://evil.example")], 403),
        ([("Host", OWN), ("Origin", "null")], 403),
        ([("Host", OWN), ("Origin", "http://[::1")], 403),
        ([("Host", OWN), ("Origin", "http://127.0.0.1:8080")], 403),
        ([("Host", OWN), ("Origin", f"http://{OWN}"), ("Origin", "http://evil.example")], 403),
        ([("Host", OWN), ("Sec-Fetch-Site", "cross-site")], 403),
        ([("Host", OWN), ("Sec-Fetch-Site", "same-site")], 403),
        ([("Host", OWN), ("Authorization", "Bearer a")], 0),
        ([("Host", OWN), ("Authorization", "Bearer a"), ("Authorization", "Bearer b")], 401),
        ([("Host", OWN), ("Authorization", ""), ("Authorization", "Bearer b")], 401),
    ],
)
def test_only_its_own_pages_may_ask(headers: list[tuple[str, str]], expected: int) -> None:
    assert status(headers) == expected


def test_a_page_of_an_allowed_origin_may_ask() -> None:
    headers = [("Host", OWN), ("Origin", APP), ("Sec-Fetch-Site", "cross-site")]
    assert status(headers) == 403
    assert status(headers, origins_allowed=(APP,)) == 0


def test_anybody_may_lead_to_the_page_about_it() -> None:
    assert status([("Host", OWN), ("Sec-Fetch-Site", "cross-site")], "/docs") == 0


def test_a_proxy_is_let_in_by_its_name() -> None:
    headers = [("Host", "memory.example")]
    assert status(headers) == 421
    assert status(headers, hosts_allowed=("memory.example",)) == 0
