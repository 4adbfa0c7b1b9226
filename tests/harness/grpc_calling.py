"""A gRPC client as somebody else would have it: generated from the kept .proto by protoc.

Messages and dicts are turned into each other by protobuf's own JSON mapping, not by our code.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import MutableSequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

import grpc
import msgspec
from google.protobuf import json_format
from grpc_tools import protoc

from recollect.gateway.grpc.proto_file import PATH
from recollect.protocol.errors import RecollectError, from_body
from recollect.protocol.operation import Operation, fields_of, result_of
from tests.harness.gateway_calling import GatewayCaller

CALLED_WITHIN_S = 30.0
ERROR = "recollect-error-bin"


class Generated(NamedTuple):
    """What protoc makes: the modules of messages and stubs, and the descriptors as bytes."""

    messages: Any
    stubs: Any
    descriptor_set: bytes


@cache
def generated() -> Generated:
    """Made once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-protoc-"))
    described = folder / "recollect.descriptors"
    code = protoc.main(
        [
            "protoc",
            f"-I{PATH.parent}",
            f"-I{Path(protoc.__file__).with_name('_proto')}",
            f"--python_out={folder}",
            f"--grpc_python_out={folder}",
            f"--descriptor_set_out={described}",
            PATH.name,
        ]
    )
    assert code == 0, "protoc does not take the .proto"
    sys.path.insert(0, str(folder))
    try:
        messages = importlib.import_module("recollect_pb2")
        stubs = importlib.import_module("recollect_pb2_grpc")
    finally:
        sys.path.remove(str(folder))
    return Generated(messages, stubs, described.read_bytes())


class GrpcCaller(GatewayCaller):
    """Calls over a channel; headers are its metadata."""

    def __init__(self, channel: grpc.Channel, bearer: str | None = None) -> None:
        super().__init__()
        self._stub = generated().stubs.RecollectStub(channel)
        if bearer is not None:
            self.headers["authorization"] = f"Bearer {bearer}"

    def call(self, operation: Operation[Any]) -> dict[str, Any]:
        cls = type(operation)
        self.called.add(cls.spec.name)
        method = getattr(self._stub, cls.__name__)
        try:
            answer = method(
                request_of(operation),
                timeout=operation.timeout or CALLED_WITHIN_S,
                metadata=tuple(self.headers_of(operation).items()),
            )
        except grpc.RpcError as error:
            raise error_of(error) from error
        return record_of(answer, result_of(cls))


def request_of(operation: Operation[Any]) -> Any:
    """The request message that asks for an operation."""
    cls = type(operation)
    given = {info.name: getattr(operation, info.name) for info in fields_of(cls)}
    plain = msgspec.to_builtins({n: v for n, v in given.items() if v is not msgspec.UNSET})
    return json_format.ParseDict(plain, getattr(generated().messages, f"{cls.__name__}Request")())


def error_of(error: grpc.RpcError) -> RecollectError:
    """The typed error in the trailing metadata of a call that failed; the call's own if none."""
    trailing: Any = getattr(error, "trailing_metadata", tuple)()
    for name, value in trailing or ():
        if name == ERROR:
            return from_body(json.loads(value))
    raise error


def record_of(message: Any, shape: Any) -> dict[str, Any]:
    """A message as the dict of the declared shape."""
    record: dict[str, Any] = {}
    for name, annotation in get_type_hints(shape, include_extras=True).items():
        # Not __optional_keys__: where annotations are texts, it knows of none.
        optional = get_origin(annotation) is NotRequired or name in shape.__optional_keys__
        value = getattr(message, name)
        if message.DESCRIPTOR.fields_by_name[name].has_presence and not message.HasField(name):
            if not optional:
                record[name] = None
        elif not optional or not isinstance(value, MutableSequence) or value:
            record[name] = _part(value, annotation)
    return record


def _part(value: Any, annotation: Any) -> Any:
    descriptor = getattr(value, "DESCRIPTOR", None)
    if descriptor is not None:
        if descriptor.full_name.startswith("google.protobuf."):
            return json_format.MessageToDict(value)
        return record_of(value, _shape_in(annotation))
    if isinstance(value, str | int | float):
        return value
    if hasattr(value, "items"):
        return {key: _part(part, annotation) for key, part in value.items()}
    return [_part(part, annotation) for part in value]


def _shape_in(annotation: Any) -> Any:
    """The record that a declared type speaks of."""
    if is_typeddict(annotation) or get_origin(annotation) is None:
        return annotation
    return next(filter(is_typeddict, map(_shape_in, get_args(annotation))))
