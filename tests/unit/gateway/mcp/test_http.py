"""What the endpoint tells the transport of sessions and keys."""

from __future__ import annotations

from starlette.datastructures import Headers

from recollect.gateway.mcp.http import holder_of, opens_session, refused
from recollect.protocol.errors import Unauthenticated, Unreachable


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
