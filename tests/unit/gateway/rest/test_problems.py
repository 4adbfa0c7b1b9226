"""Every error has its status, and one body."""

from __future__ import annotations

import json
from http import HTTPStatus

import pytest

from recollect.gateway.rest.problems import (
    STATUSES,
    headers_of,
    problem_of,
    status_of,
)
from recollect.protocol import errors


def test_every_code_has_its_status() -> None:
    assert STATUSES.keys() == errors.BY_CODE.keys()


def test_what_a_retry_helps_is_no_fault_of_the_request() -> None:
    for code, cls in errors.BY_CODE.items():
        if cls.retryable:
            assert STATUSES[code] >= 500 or STATUSES[code] == 429, code
        elif issubclass(cls, errors.InvalidRequest | errors.Conflict | errors.AccessError):
            assert 400 <= STATUSES[code] < 500, code


def test_the_body_is_a_problem_with_the_error_as_everywhere() -> None:
    error = errors.LimitExceeded("Too much.", limit="limits.tags_max", maximum=4)
    assert json.loads(problem_of(error, 413)) == {
        "type": "urn:recollect:error:limit_exceeded",
        "title": HTTPStatus(413).phrase,
        "status": 413,
        "detail": "Too much.",
        "error": error.body(),
    }


def test_a_conflict_of_versions_fails_the_condition_if_there_was_one() -> None:
    error = errors.VersionConflict("Changed.")
    assert status_of(error) == 409
    assert status_of(error, conditional=True) == 412


@pytest.mark.parametrize(
    ("details", "seconds"),
    [({"retry_after_ms": 1}, b"1"), ({"retry_after_ms": 1001}, b"2"), ({}, b"1")],
)
def test_who_shall_wait_is_told_how_long_in_whole_seconds(
    details: dict[str, int], seconds: bytes
) -> None:
    assert headers_of(errors.Overloaded("Later.", **details), 503) == [(b"retry-after", seconds)]
    assert dict(headers_of(errors.RateLimited("Later.", **details), 429)) == {
        b"retry-after": seconds
    }


def test_who_has_no_key_is_told_what_kind_is_asked_for() -> None:
    [(name, value)] = headers_of(errors.Unauthenticated("Who?"), 401)
    assert name == b"www-authenticate" and value.startswith(b"Bearer")
