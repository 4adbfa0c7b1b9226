"""What is known of every operation before the first request comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from recollect.orchestrator.calls import Kind
from recollect.protocol.operation import Access, Operation, Spec, fields_of
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
    access: Access
    everywhere: bool
    has_min_seq: bool
    has_namespace: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Of an operation that changes something: its fields that hold one name each."""
        return _names_of(REGISTRY[self.spec.name])


class Routes(dict[str, Route]):
    """The route of every declared operation, made when it is first asked for.

    What decodes an operation takes most of a millisecond to make, and few orchestrators are asked
    for all of them.
    """

    def __init__(self, handlers: Mapping[str, tuple[Kind, Callable[..., Any]]]) -> None:
        """An operation without a handler, or the reverse, is a defect."""
        super().__init__()
        missing, foreign = REGISTRY.keys() - handlers.keys(), handlers.keys() - REGISTRY.keys()
        if missing or foreign:
            raise AssertionError(f"operations without handler: {missing}; unknown: {foreign}")
        self._handlers = handlers

    def __missing__(self, name: str) -> Route:
        route = self[name] = _route(name, *self._handlers[name])
        return route


def _route(name: str, kind: Kind, handler: Callable[..., Any]) -> Route:
    operation = REGISTRY[name]
    fields = operation.__struct_fields__
    changes = operation.spec.access in ("write", "admin")
    return Route(
        spec=operation.spec,
        kind=kind,
        decode=msgspec.msgpack.Decoder(operation).decode,
        handler=handler,
        access=operation.spec.access,
        everywhere=operation.spec.everywhere,
        has_min_seq="min_seq" in fields,
        has_namespace=changes and "namespace" in fields,
    )


@cache
def _names_of(operation: type[Operation[Any]]) -> tuple[str, ...]:
    # Looked up when it is first asked for: for all operations it takes longer than a start should.
    if operation.spec.access not in ("write", "admin"):
        return ()
    kinds = {field.name: repr(field.type) for field in fields_of(operation)}
    several = ("dict[", "list[", "Any", "float", "Unset")
    return tuple(
        name
        for name, kind in kinds.items()
        if "str" in kind and name not in PROSE and not any(part in kind for part in several)
    )
