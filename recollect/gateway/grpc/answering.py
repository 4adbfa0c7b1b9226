"""Answers: from the result of an operation to its message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recollect.gateway.grpc.descriptors import MAP, MessageClass, Messages
from recollect.gateway.grpc.json_values import to_value
from recollect.gateway.grpc.proto_file import Field, Message

Convert = Callable[[Any], Any]


class Writer:
    """Makes messages of one kind from dicts.

    A message takes texts, numbers, dicts and lists as they are. So only the fields that hold any
    JSON value are touched, and of the records within only those that have such a field.
    """

    def __init__(self, message: Message, messages: Messages) -> None:
        self._made: MessageClass = messages[message.name]
        self._names = frozenset(field.name for field in message.fields)
        self._quick: list[tuple[str, Convert]] = []
        self._thorough: list[tuple[str, Convert]] = []
        shapes = {shape.name: shape for shape in messages.file.messages}
        value = messages["google.protobuf.Value"]
        for field in message.fields:
            inner = field.kind.removeprefix(MAP).removesuffix(">")
            if inner == "google.protobuf.Value":
                convert = _for_each(field, lambda part: to_value(part, value))
                self._quick.append((field.name, convert))
                self._thorough.append((field.name, convert))
            elif inner in shapes:
                writer = Writer(shapes[inner], messages)
                if writer._quick:
                    self._quick.append((field.name, _for_each(field, writer.write)))
                self._thorough.append((field.name, _for_each(field, writer._write_known)))

    def write(self, result: dict[str, Any]) -> Any:
        """The message that says the same; keys that it has no field for are left out."""
        try:
            return self._made(**_converted(result, self._quick))
        except ValueError:
            # A newer orchestrator tells more than this file knows of.
            return self._write_known(result)

    def _write_known(self, result: dict[str, Any]) -> Any:
        known = {name: part for name, part in result.items() if name in self._names}
        return self._made(**_converted(known, self._thorough))


def _converted(result: dict[str, Any], converts: list[tuple[str, Convert]]) -> dict[str, Any]:
    """What is null is left as it is: in a message it is absent."""
    if not converts:
        return result
    fields = dict(result)
    for name, convert in converts:
        part = fields.get(name)
        if part is not None:
            fields[name] = convert(part)
    return fields


def _for_each(field: Field, convert: Convert) -> Convert:
    """The same for what holds many of them."""
    if field.label == "repeated":
        return lambda parts: [convert(part) for part in parts]
    if field.kind.startswith(MAP):
        return lambda parts: {name: convert(part) for name, part in parts.items()}
    return convert
