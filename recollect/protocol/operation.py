"""How an operation is declared: one class, from which everything else derives.

An operation is a frozen struct: its fields are the arguments in the order of the published API,
its type parameter is the result, its docstring is its documentation. `@operation` gives it its
wire name, the access it needs and the ways in which it is offered, and enters it in the registry.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin

import msgspec

from recollect.protocol.tool import Tool

R = TypeVar("R")
C = TypeVar("C", bound="type[Operation[Any]]")

Access = Literal["open", "read", "write", "admin"]


class Spec(msgspec.Struct, frozen=True):
    """What is declared of an operation beside its fields."""

    name: str
    access: Access
    http: tuple[str, str]
    mcp: tuple[Tool, ...]
    """The tools that carry it out for a model over MCP."""
    everywhere: bool
    """It is about the whole store, so the access is needed to everything."""
    replay: bool
    """Safe to send again: a read, or a write kept apart by its idempotency key."""
    http_body: str | None = None
    """The field that is the whole body over REST; all that are not in the path if None."""


class Operation(
    msgspec.Struct,
    Generic[R],
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Base of all operations. The options here belong to the call and travel in the envelope."""

    spec: ClassVar[Spec]

    timeout: Annotated[
        float | None,
        msgspec.Meta(description="Seconds to wait for the answer; the client's default if absent."),
    ] = None
    idempotency_key: Annotated[
        str | None,
        msgspec.Meta(
            description="A write with the same key takes effect once; made by the client if absent."
        ),
    ] = None


CALL_OPTIONS = frozenset({"timeout", "idempotency_key"})

REGISTRY: dict[str, type[Operation[Any]]] = {}


def operation(
    *,
    access: Access,
    http: tuple[str, str],
    everywhere: bool = False,
    mcp: Tool | tuple[Tool, ...] = (),
    replay: bool = True,
    http_body: str | None = None,
) -> Callable[[C], C]:
    """Declare an operation under the snake-case form of its class name."""

    def declare(cls: C) -> C:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        assert name not in REGISTRY, f"operation {name} is declared twice"
        assert cls.__doc__, f"operation {name} has no description"
        cls.spec = Spec(
            name=name,
            access=access,
            http=http,
            everywhere=everywhere,
            mcp=mcp if isinstance(mcp, tuple) else (mcp,),
            replay=replay,
            http_body=http_body,
        )
        REGISTRY[name] = cls
        return cls

    return declare


def fields_of(cls: type[Operation[Any]]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields that travel in the body: all but the call options."""
    return tuple(f for f in msgspec.structs.fields(cls) if f.name not in CALL_OPTIONS)


def result_of(cls: type[Operation[Any]]) -> Any:
    """The type of what an operation answers with, as it is declared."""
    for ancestor in cls.__mro__:
        for generic in ancestor.__dict__.get("__orig_bases__", ()):
            if get_origin(generic) is Operation:
                return get_args(generic)[0]
    raise TypeError(f"{cls.__name__} does not say what it results in")
