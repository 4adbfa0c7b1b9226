"""JSON Schemas for models, from the types of the declarations.

Small on purpose: a model reads all of them before it does anything. What may be absent says so by
not being required, and not by `null` as well; nothing is referred to elsewhere.
"""

from __future__ import annotations

from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import msgspec

from recollect.protocol.operation import Operation, fields_of
from recollect.protocol.operations.fields import INTEGER_MAX
from recollect.protocol.tool import Tool, is_for_models

Schema = dict[str, Any]

NULL = {"type": "null"}
SCALARS = (str, int, float, bool)


def fields_for(
    operation: type[Operation[Any]], tool: Tool
) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields that a model may fill, those that it must first."""
    shown = [
        field
        for field in fields_of(operation)
        if is_for_models(field.type) and (not tool.fields or field.name in tool.fields)
    ]
    return tuple(sorted(shown, key=lambda field: not field.required))


def input_schema(operation: type[Operation[Any]], tool: Tool, namespace: str | None) -> Schema:
    """What a tool takes. `namespace`: the one that is meant where none is given."""
    fields = fields_for(operation, tool)
    properties = {field.name: _property(field) for field in fields}
    if namespace is not None and "namespace" in properties:
        properties["namespace"]["default"] = namespace
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }
    if tool.example:
        schema["examples"] = [dict(tool.example)]
    return schema


def output_schema(result: Any, left_out: frozenset[str]) -> Schema | None:
    """What a tool answers with, where that is plain fields; None where it is records, whose
    shape would take more to read than the records themselves."""
    # Whether a key may be absent is in the hint alone: TypedDict does not see it in a text.
    hints = get_type_hints(result, include_extras=True)
    required = []
    properties = {}
    for name, hint in hints.items():
        if name in left_out:
            continue
        absent = get_origin(hint) is NotRequired
        kind = get_args(hint)[0] if absent else hint
        if not _is_plain(kind):
            return None
        properties[name] = _plain(msgspec.json.schema(kind))
        if not absent and type(None) not in get_args(kind):
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _property(field: msgspec.structs.FieldInfo) -> Schema:
    schema = _plain(msgspec.json.schema(field.type))
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    if default is not msgspec.NODEFAULT and default is not None:
        schema["default"] = default
    return schema


def _plain(schema: Schema) -> Schema:
    """A schema without what says nothing to a model."""
    assert "$ref" not in schema, f"a model is given no references: {schema}"
    found = dict(schema)
    if "anyOf" in found:
        kinds = [_plain(kind) for kind in found["anyOf"] if kind != NULL]
        if len(kinds) == 1:
            found = {**kinds[0], **{name: found[name] for name in found if name != "anyOf"}}
        else:
            found["anyOf"] = kinds
    if "enum" in found:
        found["enum"] = [value for value in found["enum"] if value is not None]
        if all(isinstance(value, str) for value in found["enum"]):
            found["type"] = "string"
    if "items" in found:
        found["items"] = _plain(found["items"])
    if found.get("maximum", 0) >= INTEGER_MAX:
        # The bound of a column, beyond what numbers in JSON hold.
        del found["maximum"]
    return found


def _is_plain(hint: Any) -> bool:
    """Whether a value of this type is a scalar, or a list of some."""
    if hint in (*SCALARS, type(None)):
        return True
    arguments = get_args(hint)
    return get_origin(hint) is not dict and bool(arguments) and all(map(_is_plain, arguments))
