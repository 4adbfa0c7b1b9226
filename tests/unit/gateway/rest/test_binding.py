"""Path, query and body become the fields of an operation, or a refusal that says what to do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from recollect.gateway.rest.binding import Binding
from recollect.gateway.rest.routing import names_of
from recollect.protocol import operations as ops
from recollect.protocol.errors import InvalidArgument, MalformedRequest, RecollectError
from recollect.protocol.operation import Operation


def bind(
    cls: type[Operation[Any]], *values: str, query: bytes = b"", body: bytes = b""
) -> Operation[Any]:
    return Binding(cls, names_of(cls.spec.http[1])).bind(values, query, body)


def test_a_body_is_the_operation() -> None:
    body = msgspec.json.encode({"content": "x", "tags": ["a"], "metadata": {"n": 1}})
    assert bind(ops.AddMemory, body=body) == ops.AddMemory("x", tags=["a"], metadata={"n": 1})


def test_the_path_fills_its_fields_beside_the_body() -> None:
    made = bind(ops.Put, "user:a", "k", body=b'{"value": [1], "expected_version": 2}')
    assert made == ops.Put("user:a", "k", [1], expected_version=2)


def test_the_body_may_be_one_field_and_the_rest_is_asked() -> None:
    made = bind(ops.UpdateMemory, "m1", query=b"expected_version=3", body=b'{"content": "new"}')
    assert made == ops.UpdateMemory("m1", {"content": "new"}, expected_version=3)


def test_the_query_says_numbers_truths_and_objects_as_text() -> None:
    query = b"limit=5&include_deleted=true&filters=%7B%22importance%22%3A%7B%22gte%22%3A0.5%7D%7D"
    made = bind(ops.ListMemories, query=query)
    filters = {"importance": {"gte": 0.5}}
    assert made == ops.ListMemories(limit=5, include_deleted=True, filters=filters)


def test_a_text_that_looks_like_a_number_or_nothing_stays_a_text() -> None:
    assert bind(ops.ListMemories, query=b"cursor=5") == ops.ListMemories(cursor="5")
    assert bind(ops.ListMemories, query=b"cursor=null") == ops.ListMemories(cursor="null")
    assert bind(ops.ListMemories, query=b"cursor=") == ops.ListMemories(cursor="")


def test_a_moment_may_be_a_number_or_a_text() -> None:
    assert bind(ops.GetMemory, "m", query=b"as_of=1700000000.5") == ops.GetMemory(
        "m", as_of=1700000000.5
    )
    text = "2026-01-01T00:00:00Z"
    made = bind(ops.GetMemory, "m", query=f"as_of={text}".encode())
    assert made == ops.GetMemory("m", as_of=text)


@pytest.mark.parametrize(
    "query", [b"operations=put&operations=purge", b"operations=%5B%22put%22%2C%22purge%22%5D"]
)
def test_a_list_is_given_as_json_or_by_saying_it_again(query: bytes) -> None:
    assert bind(ops.ReadChanges, query=query) == ops.ReadChanges(operations=["put", "purge"])


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (lambda: bind(ops.AddMemory, body=b'{"content": "x", "nope": 1}'), "nope"),
        (lambda: bind(ops.AddMemory, body=b'{"content": 1}'), "content"),
        (lambda: bind(ops.AddMemory, body=b"{}"), "content"),
        (lambda: bind(ops.AddMemory, body=b'{"content": "x", "timeout": 1}'), "timeout"),
        (lambda: bind(ops.Put, "user:a", "k", body=b'{"value": 1, "key": "other"}'), "key"),
        (lambda: bind(ops.AddMemory, query=b"content=x"), "content"),
        (lambda: bind(ops.ListMemories, query=b"lim=1"), "lim"),
        (lambda: bind(ops.ListMemories, query=b"limit=1&limit=2"), "limit"),
        (lambda: bind(ops.ListMemories, query=b"limit=x"), "limit"),
        (lambda: bind(ops.ListMemories, query=b"limit=0"), "limit"),
        (lambda: bind(ops.ListMemories, query=b"filters=%7B"), "filters"),
        (lambda: bind(ops.ListMemories, query=b"idempotency_key=x"), "idempotency_key"),
        (lambda: bind(ops.ReadChanges, query=b"wait_s=nan"), "wait_s"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(made: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        made()
    assert refused.value.details["field"] == field
    assert field in refused.value.message


def test_an_unknown_field_is_told_what_there_is() -> None:
    with pytest.raises(InvalidArgument) as refused:
        bind(ops.GetMemory, "m", query=b"verson=1")
    assert "version" in refused.value.message


@pytest.mark.parametrize(
    "body",
    [b"[1]", b'"x"', b"{", b"\xff", b"null", b"{" * 5, b"[" * 100_000, b'{"content": "\\ud800"}'],
)
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    for cls, values in ((ops.AddMemory, ()), (ops.Put, ("user:a", "k"))):
        with pytest.raises(RecollectError) as refused:
            bind(cls, *values, body=body)
        assert isinstance(refused.value, InvalidArgument | MalformedRequest)


@pytest.mark.parametrize("query", [b"a=%ff", b"limit=" + b"1" * 70_000, b"&".join([b"a=1"] * 1001)])
def test_a_query_without_measure_is_refused(query: bytes) -> None:
    with pytest.raises(RecollectError):
        bind(ops.ListMemories, query=query)
