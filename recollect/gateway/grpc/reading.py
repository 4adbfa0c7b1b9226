"""Requests: from a message to the declared operation.

Only what the message itself cannot hold is checked here. Whether the values are good, the
orchestrator finds out, as for everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from google.protobuf.message import DecodeError

from recollect.gateway.grpc.descriptors import MAP, MessageClass, Messages
from recollect.gateway.grpc.json_values import NothingGiven, struct_to_python, to_python
from recollect.gateway.grpc.proto_file import Field, Message
from recollect.protocol.errors import InvalidArgument, MalformedRequest
from recollect.protocol.operation import Operation, fields_of

R = TypeVar("R")
Read = Callable[[Any], Any]


class Reader:
    """Reads the fields that a message holds; those that it does not hold are left out."""

    def __init__(self, message: Message, messages: Messages) -> None:
        self._made: MessageClass = messages[message.name]
        shapes = {shape.name: shape for shape in messages.file.messages}
        self._reads: dict[str, Read] = {}
        for field in message.fields:
            read = _read_of(field, shapes, messages)
            if read is not None:
                self._reads[field.name] = read

    def parse(self, data: bytes) -> dict[str, Any]:
        """The fields of a message as it came; raises MalformedRequest or InvalidArgument."""
        try:
            message = self._made.FromString(data)
        except DecodeError as error:
            raise MalformedRequest(
                f"The request is no {self._made.DESCRIPTOR.full_name}, or is nested too deeply: "
                f"{error}. Make the client from the recollect.proto of this version."
            ) from error
        return self.read(message)

    def read(self, message: Any) -> dict[str, Any]:
        given: dict[str, Any] = {}
        reads = self._reads
        for descriptor, value in message.ListFields():
            name: str = descriptor.name
            read = reads.get(name)
            if read is None:
                given[name] = value
                continue
            try:
                given[name] = read(value)
            except NothingGiven as error:
                raise InvalidArgument(f"{name}: {error}.", field=name) from error
        return given


def _read_of(field: Field, shapes: dict[str, Message], messages: Messages) -> Read | None:
    """How the value of a field becomes Python's; None if it is so already."""
    kind = field.kind
    one: Read | None
    if kind == "google.protobuf.Value":
        one = to_python
    elif kind == "google.protobuf.Struct":
        one = struct_to_python
    elif kind in shapes:
        one = Reader(shapes[kind], messages).read
    else:
        assert not kind.startswith(MAP), f"no request has a map: {field.name}"
        one = None
    if field.label != "repeated":
        return one
    if one is None:
        return list
    each = one
    return lambda values: [each(value) for value in values]


class OperationReader(Generic[R]):
    """Makes operations of one class from the requests that ask for it."""

    def __init__(self, cls: type[Operation[R]], message: Message, messages: Messages) -> None:
        self._cls = cls
        self._reader = Reader(message, messages)
        repeated = {field.name for field in message.fields if field.label == "repeated"}
        required = {info.name for info in fields_of(cls) if info.required}
        # A list without anything in it leaves no trace in a message.
        self._empty = {name: list[Any] for name in sorted(required & repeated)}
        self._required = required - repeated

    def parse(self, data: bytes, **options: Any) -> Operation[R]:
        """The operation that is asked for; raises MalformedRequest or InvalidArgument."""
        given = self._reader.parse(data)
        if not self._required <= given.keys():
            name = min(self._required - given.keys())
            raise InvalidArgument(
                f"{self._cls.spec.name} needs {name}, which was not given.", field=name
            )
        for name, make in self._empty.items():
            if name not in given:
                given[name] = make()
        return self._cls(**given, **options)
