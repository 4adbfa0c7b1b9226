"""What the endpoint tells the transport of names, sessions and keys."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from recollect.config.gateway import GatewaySettings
from recollect.gateway.mcp.http import holder_of, opens_session, refused, security_of
from recollect.protocol.errors import Unauthenticated, Unreachable


def test_the_names_of_the_address_and_the_given_ones_are_let_through() -> None:
    security = security_of(
        GatewaySettings(hosts_allowed=("Memory.example.org",), origins_allowed=("https://a.org",))
    )
    assert security.enable_dns_rebinding_protection
    assert {"127.0.0.1:*", "localhost:*", "[::1]:*", "memory.example.org:*"} <= {
        *security.allowed_hosts
    }
    assert security.allowed_origins == ["https://a.org"]


@pytest.mark.parametrize(("host", "listed"), [("192.0.2.7", True), ("0.0.0.0", False)])
def test_only_where_no_list_can_hold_all_names_is_it_left_to_the_guard(
    host: str, listed: bool
) -> None:
    assert security_of(GatewaySettings(host=host)).enable_dns_rebinding_protection is listed


def test_a_session_is_opened_by_a_request_that_has_none() -> None:
    assert opens_session(Headers({}))
    assert opens_session(Headers({"mcp-protocol-version": "2025-06-18"}))
    assert not opens_session(Headers({"mcp-session-id": "1"}))
    # This version knows no sessions: each request stands alone.
    assert not opens_session(Headers({"mcp-protocol-version": "2026-07-28"}))


def test_holders_are_told_apart_without_keeping_their_keys() -> None:
    one, other = holder_of("key-of-one"), holder_of("key-of-another")
    assert one.access_token.client_id == holder_of("key-of-one").access_token.client_id
    assert one.access_token.client_id != other.access_token.client_id
    assert "key-of-one" not in one.access_token.model_dump_json()


def test_a_refusal_says_what_to_send_or_when_to_come_back() -> None:
    unknown = refused(Unauthenticated("Send a key."))
    assert (unknown.status_code, unknown.headers["www-authenticate"][:6]) == (401, "Bearer")
    away = refused(Unreachable("Nobody is there."))
    assert (away.status_code, away.headers["retry-after"]) == (503, "1")
