"""Requests and answers survive their messages, for every operation."""

from __future__ import annotations

import contextlib
import math
import random
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.gateway.grpc.answering import Writer
from recollect.gateway.grpc.declared import may_be_missing
from recollect.gateway.grpc.descriptors import Messages
from recollect.gateway.grpc.json_values import to_python, to_value
from recollect.gateway.grpc.proto_file import Message, kept
from recollect.gateway.grpc.reading import OperationReader
from recollect.protocol.errors import InvalidArgument, MalformedRequest
from recollect.protocol.operation import Operation, fields_of, result_of
from recollect.protocol.operations import (
    REGISTRY,
    AddMemory,
    BatchAddMemories,
    BatchGetMemories,
    Put,
)
from tests.harness.grpc_calling import generated, record_of, request_of

MESSAGES = Messages(kept())
SHAPES = {shape.name: shape for shape in MESSAGES.file.messages}
VALUE = MESSAGES["google.protobuf.Value"]

# What a Value holds exactly: a double holds integers up to 2^53.
EXACT = 1 << 53
NUMBERS = st.integers(-EXACT, EXACT) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
TEXTS = ("", "a", "naïve", "日本", "🙂", "two\nlines", "x" * 300, "\x00", "null", "0")
INTEGERS = (0, 1, -1, 127, 1 << 31, EXACT + 1, (1 << 63) - 1, -(1 << 63))
FLOATS = (0.0, -0.0, 0.5, -1.25, 1e-300, 1.7e308, 3.0, 0.1)
ROUNDS = 20


class Anything:
    """Whatever fits a declared type, its bounds aside: chosen by a seed, and so quickly that every
    operation is tried."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def of(self, annotation: Any, *, exact: bool = False) -> Any:
        """`exact`: it travels in a Value, where integers are not larger than a double holds."""
        choose = self._random.choice
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin in (Annotated, NotRequired):
            return self.of(arguments[0], exact=exact)
        if origin in (Union, UnionType):
            # What may come as bytes elsewhere is a list here.
            arguments = tuple(argument for argument in arguments if argument is not bytes)
            several = len({*arguments} - {NoneType, msgspec.UnsetType}) > 1
            return self.of(choose(arguments), exact=exact or several)
        if origin is Literal:
            return choose(arguments)
        if origin is list:
            return [self.of(arguments[0], exact=exact) for _ in range(choose((0, 1, 3)))]
        if origin is dict:
            return {choose(TEXTS): self.of(arguments[1]) for _ in range(choose((0, 1, 3)))}
        if annotation is Any:
            return self._json(0)
        if annotation in (NoneType, msgspec.UnsetType):
            return None if annotation is NoneType else msgspec.UNSET
        if annotation in (str, float, bool):
            return choose({str: TEXTS, float: FLOATS, bool: (True, False)}[annotation])
        if annotation is int:
            return choose([n for n in INTEGERS if not exact or abs(n) <= EXACT])
        if issubclass(annotation, msgspec.Struct):
            infos = msgspec.structs.fields(annotation)
            return annotation(**{info.name: self.of(info.type) for info in infos})
        return self.record(annotation)

    def record(self, shape: Any) -> dict[str, Any]:
        hints = get_type_hints(shape, include_extras=True)
        wanted = [n for n in hints if not may_be_missing(shape, n, hints[n]) or self.of(bool)]
        return {name: self.of(hints[name]) for name in wanted}

    def _json(self, depth: int) -> Any:
        kind = self._random.choice((str, int, float, bool, NoneType, *([list, dict][: 2 - depth])))
        if kind in (list, dict):
            parts = [self._json(depth + 1) for _ in range(self._random.choice((0, 1, 3)))]
            if kind is list:
                return parts
            return {self._random.choice(TEXTS): part for part in parts}
        return self.of(kind, exact=True)


@pytest.mark.parametrize("cls", REGISTRY.values(), ids=REGISTRY.keys())
def test_an_operation_is_what_its_request_asks_for(cls: type[Operation[Any]]) -> None:
    infos = fields_of(cls)
    anything = Anything(cls.__name__)
    reader = reader_of(cls)
    for _ in range(ROUNDS):
        asked = cls(**{info.name: anything.of(info.type) for info in infos})
        read = reader.parse(request_of(asked).SerializeToString())
        default = cls(**{i.name: getattr(asked, i.name) for i in infos if i.required})
        for info in infos:
            expected = getattr(asked, info.name)
            repeated = info.name in {f.name for f in shape_of(cls).fields if f.label == "repeated"}
            if expected == [] and repeated and not info.required:
                # An empty list is the same as none given.
                expected = getattr(default, info.name)
            assert plain(getattr(read, info.name)) == plain(expected), info.name


def shape_of(cls: type[Operation[Any]]) -> Message:
    return SHAPES[f"{cls.__name__}Request"]


def plain(value: Any) -> Any:
    """A value with its structs as dicts."""
    return value if value is msgspec.UNSET else msgspec.to_builtins(value)


@pytest.mark.parametrize("cls", REGISTRY.values(), ids=REGISTRY.keys())
def test_an_answer_is_what_its_message_says(cls: type[Operation[Any]]) -> None:
    shape = result_of(cls)
    anything = Anything(cls.__name__)
    writer = Writer(SHAPES[f"{cls.__name__}Response"], MESSAGES)
    for _ in range(ROUNDS):
        result = anything.record(shape)
        encoded = writer.write(result).SerializeToString()
        message = getattr(generated().messages, f"{cls.__name__}Response").FromString(encoded)
        assert record_of(message, shape) == _without_empty(result, shape)


def _without_empty(result: dict[str, Any], shape: Any) -> dict[str, Any]:
    """Without what a message cannot tell from nothing: an empty list that may be missing."""
    kept_parts = {}
    for name, annotation in get_type_hints(shape, include_extras=True).items():
        optional = may_be_missing(shape, name, annotation)
        if name not in result or (optional and result[name] in ([], None)):
            continue
        kept_parts[name] = _inner(result[name], annotation)
    return kept_parts


def _inner(value: Any, annotation: Any) -> Any:
    for part in (annotation, *get_args(annotation)):
        if hasattr(part, "__optional_keys__") and isinstance(value, dict):
            return _without_empty(value, part)
        if get_origin(part) in (list, dict, NotRequired, Union, UnionType):
            inner = get_args(part)[-1 if get_origin(part) is dict else 0]
            if get_origin(part) is list and isinstance(value, list):
                return [_inner(item, inner) for item in value]
            if get_origin(part) is dict and isinstance(value, dict):
                return {key: _inner(item, inner) for key, item in value.items()}
    return value


@given(JSON)
@settings(deadline=None, database=None, derandomize=True)
def test_json_survives_a_value(value: Any) -> None:
    assert to_python(VALUE.FromString(to_value(value, VALUE).SerializeToString())) == value


def test_a_number_without_a_fraction_is_an_integer_as_far_as_it_is_exact() -> None:
    assert type(to_python(to_value(3.0, VALUE))) is int
    assert to_python(to_value(1 << 53, VALUE)) == 1 << 53
    assert type(to_python(to_value(1e300, VALUE))) is float
    assert math.isinf(to_python(to_value(math.inf, VALUE)))


def reader_of(cls: type[Operation[Any]]) -> Any:
    return OperationReader(cls, shape_of(cls), MESSAGES)


def test_what_is_needed_and_was_not_given_is_named() -> None:
    with pytest.raises(InvalidArgument, match="needs content") as caught:
        reader_of(AddMemory).parse(b"")
    assert caught.value.details["field"] == "content"


def test_a_value_that_holds_nothing_is_refused_by_name() -> None:
    request = MESSAGES["PutRequest"](namespace="user:a", key="k", value={})
    with pytest.raises(InvalidArgument, match="value") as caught:
        reader_of(Put).parse(request.SerializeToString())
    assert caught.value.details["field"] == "value"


def test_absent_and_default_are_told_apart() -> None:
    absent = reader_of(AddMemory).parse(
        MESSAGES["AddMemoryRequest"](content="x").SerializeToString()
    )
    zero = MESSAGES["AddMemoryRequest"](content="x", importance=0.0, memory_type="")
    given_zero = reader_of(AddMemory).parse(zero.SerializeToString())
    assert (absent.importance, absent.memory_type) == (0.5, "general")
    assert (given_zero.importance, given_zero.memory_type) == (0.0, "")


def test_null_and_absent_are_told_apart_where_both_mean_something() -> None:
    base = {"namespace": "user:a", "key": "k", "value": VALUE(bool_value=True)}
    absent = reader_of(Put).parse(MESSAGES["PutRequest"](**base).SerializeToString())
    null = MESSAGES["PutRequest"](**base, source=VALUE(null_value=0))
    assert absent.source is msgspec.UNSET
    assert reader_of(Put).parse(null.SerializeToString()).source is None


def test_an_empty_list_that_is_needed_is_an_empty_list() -> None:
    assert reader_of(BatchGetMemories).parse(b"").memory_ids == []


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05ab", b"\x0a\x02\xff\xfe"])
def test_bytes_that_are_no_message_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedRequest, match=r"recollect\.proto"):
        reader_of(AddMemory).parse(data)


@given(st.binary(max_size=60))
@settings(deadline=None, database=None, derandomize=True)
def test_whatever_bytes_come_are_an_operation_or_a_typed_error(data: bytes) -> None:
    for cls in (AddMemory, Put, BatchAddMemories):
        with contextlib.suppress(MalformedRequest, InvalidArgument):
            assert isinstance(reader_of(cls).parse(data), cls)


def test_what_an_answer_may_do_without_is_told_from_an_empty_text() -> None:
    writer = Writer(SHAPES["AddMemoryResponse"], MESSAGES)
    assert not writer.write({"status": "success"}).HasField("echo_of")
    assert writer.write({"status": "success", "echo_of": "m"}).HasField("echo_of")


def test_what_a_newer_orchestrator_tells_beyond_the_file_is_left_out() -> None:
    writer = Writer(SHAPES["GetMemoryResponse"], MESSAGES)
    message = writer.write(
        {"status": "success", "new": 1, "memory": {"id": "m", "newer": {"a": 1}, "value": [1]}}
    )
    assert (message.status, message.memory.id) == ("success", "m")
    assert to_python(message.memory.value) == [1]
