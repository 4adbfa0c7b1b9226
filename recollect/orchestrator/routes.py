"""What is known of every operation before the first request comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from recollect.orchestrator.calls import Kind
from recollect.protocol.operation import Operation, Spec, fields_of
from recollect.protocol.operations import REGISTRY

# Texts that people read: what secrets they hold can be blotted out where they are stored.
PROSE = frozenset(
    {
        "cause",
        "choice",
        "content",
        "context",
        "description",
        "execution_summary",
        "outcome",
        "reason",
        "reasoning",
        "resolution",
        "summary",
        "task_description",
        "text",
        "title",
    }
)


class Route(msgspec.Struct, frozen=True):
    """What is known of an operation before any request comes."""

    spec: Spec
    kind: Kind
    decode: Callable[[bytes], Operation[Any]]
    handler: Callable[..., Any]
    has_min_seq: bool
    has_namespace: bool
    names: tuple[str, ...]
    """Of an operation that changes something: its fields that hold one name each."""


def routes_of(handlers: Mapping[str, tuple[Kind, Callable[..., Any]]]) -> dict[str, Route]:
    """A route for every declared operation; one without a handler, or the reverse, is a defect."""
    missing, foreign = REGISTRY.keys() - handlers.keys(), handlers.keys() - REGISTRY.keys()
    if missing or foreign:
        raise AssertionError(f"operations without handler: {missing}; unknown: {foreign}")
    return {name: _route(name, *handler) for name, handler in handlers.items()}


def _route(name: str, kind: Kind, handler: Callable[..., Any]) -> Route:
    operation = REGISTRY[name]
    fields = operation.__struct_fields__
    changes = operation.spec.access in ("write", "admin")
    return Route(
        spec=operation.spec,
        kind=kind,
        decode=msgspec.msgpack.Decoder(operation).decode,
        handler=handler,
        has_min_seq="min_seq" in fields,
        has_namespace=changes and "namespace" in fields,
        names=_names_of(operation) if changes else (),
    )


def _names_of(operation: type[Operation[Any]]) -> tuple[str, ...]:
    kinds = {field.name: repr(field.type) for field in fields_of(operation)}
    several = ("dict[", "list[", "Any", "float", "Unset")
    return tuple(
        name
        for name, kind in kinds.items()
        if "str" in kind and name not in PROSE and not any(part in kind for part in several)
    )
