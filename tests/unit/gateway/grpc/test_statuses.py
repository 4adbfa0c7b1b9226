"""Every error has a status, and its whole self beside it."""

from __future__ import annotations

import json

import pytest
from grpc import StatusCode

from recollect.gateway.grpc.statuses import ERROR, RETRY_AFTER, STATUSES, status_of
from recollect.protocol.errors import BY_CODE, InvalidArgument, Overloaded, RecollectError

TRY_AGAIN = {
    StatusCode.UNAVAILABLE,
    StatusCode.RESOURCE_EXHAUSTED,
    StatusCode.DEADLINE_EXCEEDED,
}


def test_every_code_has_a_status() -> None:
    assert STATUSES.keys() == BY_CODE.keys()
    assert StatusCode.OK not in STATUSES.values()


@pytest.mark.parametrize("code", sorted(BY_CODE.keys() - {"client_closed"}))
def test_a_status_asks_to_try_again_where_that_helps_and_nowhere_else(code: str) -> None:
    assert (STATUSES[code] in TRY_AGAIN) == BY_CODE[code].retryable


def test_the_whole_error_goes_beside_the_status() -> None:
    error = Overloaded("Too much.", limit="gateway.requests_max", retry_after_ms=250)
    status = status_of(error)
    trailing = dict(status.trailing)
    assert (status.code, status.message) == (StatusCode.UNAVAILABLE, "Too much.")
    assert json.loads(trailing[ERROR]) == error.body()
    assert trailing[RETRY_AFTER] == "250"


def test_an_error_that_is_too_large_for_metadata_is_cut() -> None:
    status = status_of(InvalidArgument("x" * 50_000, field="content", seen=["y" * 50_000]))
    told = json.loads(dict(status.trailing)[ERROR])
    assert told["code"] == "invalid_argument"
    assert len(json.dumps(told)) < 4096
    assert len(status.message) == 1000
    assert status.message.endswith("…")


def test_an_error_of_an_unknown_code_is_unknown() -> None:
    error = RecollectError("New.")
    error.__dict__["code"] = "brand_new"
    assert status_of(error).code is StatusCode.UNKNOWN
