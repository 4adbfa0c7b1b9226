"""Operations as bytes, and what cannot be sent."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from recollect.client import encoding
from recollect.client.encoding import Call, new_key, prepare
from recollect.protocol.errors import InvalidArgument, LimitExceeded
from recollect.protocol.operation import Operation
from recollect.protocol.operations import (
    AddMemory,
    GetMemory,
    Put,
    ReportErrors,
    SemanticSearch,
)


def prepared(operation: Operation[Any]) -> Call:
    return prepare(operation, now_ms=lambda: 1_700_000_000_000, randomness=random.Random(1))


def test_call_options_travel_in_the_envelope_and_not_in_the_body() -> None:
    call = prepared(AddMemory("text", timeout=2.5, idempotency_key="mine"))
    assert msgspec.msgpack.decode(call.body) == {"content": "text"}
    assert (call.timeout_s, call.key) == (2.5, "mine")


def test_what_is_left_out_does_not_travel() -> None:
    call = prepared(Put("user:a", "k", None))
    assert msgspec.msgpack.decode(call.body) == {"namespace": "user:a", "key": "k", "value": None}


def test_a_write_gets_a_key_and_a_read_does_not() -> None:
    assert prepared(AddMemory("text")).key is not None
    assert prepared(GetMemory("m")).key is None
    assert prepared(GetMemory("m", idempotency_key="k")).key is None
    assert prepared(ReportErrors("me", [])).key is None


def test_keys_sort_by_time_and_never_repeat() -> None:
    randomness = random.Random(2)
    keys = [new_key(1_700_000_000_000 + n, randomness) for n in range(1000)]
    assert keys == sorted(keys)
    assert len({new_key(5, randomness) for _ in range(1000)}) == 1000
    assert {len(key) for key in keys} == {32}


class Strange:
    def __repr__(self) -> str:
        return "<strange>"


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({"a": Strange()}, "metadata.a"),
        ({"a": {"b": [1, 2, Strange()]}}, "metadata.a.b[2]"),
        ({"a": 2**70}, "metadata.a"),
        ({"a": "\ud800"}, "metadata.a"),
        ({"a": 1 + 2j}, "metadata.a"),
    ],
)
def test_what_cannot_be_sent_is_named_by_its_path(metadata: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        prepared(AddMemory("text", metadata=metadata))
    assert caught.value.details["field"] == path
    assert path in caught.value.message


def test_a_value_that_contains_itself_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="metadata"):
        prepared(AddMemory("text", metadata={"loop": LOOP}))


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), "5", True, 2**63])
def test_a_timeout_must_be_a_positive_number(timeout: Any) -> None:
    with pytest.raises(InvalidArgument, match="timeout"):
        prepared(GetMemory("m", timeout=timeout))


@pytest.mark.parametrize("key", ["", "k" * 129, 5])
def test_an_idempotency_key_must_be_a_short_text(key: Any) -> None:
    with pytest.raises(InvalidArgument, match="idempotency_key"):
        prepared(AddMemory("text", idempotency_key=key))


def test_a_payload_over_the_limit_is_refused_by_the_limits_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert encoding.PAYLOAD_BYTES_MAX == 64 * 1024 * 1024
    monkeypatch.setattr(encoding, "PAYLOAD_BYTES_MAX", 100)
    prepared(AddMemory("x" * 80))
    with pytest.raises(LimitExceeded, match="payload_bytes_max") as caught:
        prepared(AddMemory("x" * 200))
    assert caught.value.details["limit"] == "payload_bytes_max"


def test_numbers_may_travel_as_bytes_where_that_is_declared() -> None:
    call = prepared(SemanticSearch("-", vector=b"\x00\x00\x80\x3f"))
    assert msgspec.msgpack.decode(call.body)["vector"] == b"\x00\x00\x80\x3f"
    with pytest.raises(InvalidArgument, match="value is a bytes, which is not JSON"):
        prepared(Put("user:a", "k", b"\x00\x00\x80\x3f"))
    with pytest.raises(InvalidArgument, match="which is not JSON"):
        prepared(SemanticSearch("-", vector=[1.0, b"\x00"]))  # type: ignore[list-item]
