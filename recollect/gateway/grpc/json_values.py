"""JSON inside messages: Python's values and `google.protobuf.Value`, both ways.

Numbers in a Value are doubles. One without a fraction is read as an integer, as JSON means it, as
long as a double holds it exactly.
"""

from __future__ import annotations

from typing import Any

from recollect.gateway.grpc.descriptors import MessageClass

EXACT_MAX = 1 << 53
"""Beyond it a double does not hold every integer."""


class NothingGiven(ValueError):
    """A Value that holds nothing, not even null."""


def to_python(value: Any) -> Any:
    """What a Value holds; raises NothingGiven."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "number_value":
        number = value.number_value
        if -EXACT_MAX <= number <= EXACT_MAX and number == (whole := int(number)):
            return whole
        return number
    if kind == "bool_value":
        return value.bool_value
    if kind == "struct_value":
        return struct_to_python(value.struct_value)
    if kind == "list_value":
        return [to_python(part) for part in value.list_value.values]
    if kind == "null_value":
        return None
    raise NothingGiven("a google.protobuf.Value must hold something; for nothing, null")


def struct_to_python(struct: Any) -> dict[str, Any]:
    """What a Struct holds, by its keys in order: their own order is lost on the way."""
    fields = struct.fields
    return {name: to_python(fields[name]) for name in sorted(fields)}


def to_value(value: Any, made: MessageClass) -> Any:
    """A Value of that class which holds this."""
    # bool is an int too, so it is asked for first.
    if isinstance(value, str):
        return made(string_value=value)
    if isinstance(value, bool):
        return made(bool_value=value)
    if isinstance(value, int | float):
        return made(number_value=value)
    if isinstance(value, dict):
        return made(struct_value=value)
    if isinstance(value, list | tuple):
        return made(list_value=value)
    return made(null_value=0)
