"""The methods of both clients, each declared once from its operation.

`Method` is a descriptor that carries the parameters and the result of an operation, so that editors
and type checkers see `client.add_memory(content, …)` with its real signature: it returns the
result on a blocking client, and something to await on an asyncio client.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from types import FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import msgspec

from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation

if TYPE_CHECKING:
    from inspect import Signature

P = ParamSpec("P")
R = TypeVar("R")


class Blocking:
    """Marks a client whose methods return the result."""


class Awaiting:
    """Marks a client whose methods return something to await."""


class Caller(Protocol):
    """What a client must have for its methods to work: the one generic door."""

    def call(self, operation: Operation[Any], /) -> Any: ...


class Method(Generic[P, R]):
    """One operation as a method of both clients."""

    def __init__(self, operation: Callable[P, Operation[R]]) -> None:
        self.operation = cast("type[Operation[R]]", operation)
        self.__doc__ = self.operation.__doc__
        # Made at the first use, because signatures take long to make and most are never used.
        self._function: FunctionType | None = None

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        function = self._function
        if function is None:
            function = self._function = _function_of(self.operation)
        # A plain bound method: the cheapest thing to call, and what help() and inspect expect.
        return function if instance is None else MethodType(function, instance)


def _function_of(operation: type[Operation[Any]]) -> FunctionType:
    def function(self: Caller, /, *args: Any, **kwargs: Any) -> Any:
        return self.call(operation(*args, **kwargs))

    function.__name__ = operation.spec.name
    function.__qualname__ = f"Operations.{operation.spec.name}"
    signature = _signature_of(operation)
    function.__doc__ = _doc_of(operation, signature.parameters)
    function.__dict__["__signature__"] = signature
    return cast(FunctionType, function)


def _signature_of(operation: type[Operation[Any]]) -> Signature:
    from inspect import Parameter, Signature, signature

    plain = get_type_hints(operation)
    declared = [
        parameter.replace(annotation=plain[name])
        for name, parameter in signature(operation).parameters.items()
    ]
    own = Parameter("self", Parameter.POSITIONAL_ONLY)
    return Signature([own, *declared], return_annotation=_result_of(operation))


def _result_of(operation: type[Operation[Any]]) -> Any:
    for ancestor in operation.__mro__:
        for generic in ancestor.__dict__.get("__orig_bases__", ()):
            if get_origin(generic) is Operation:
                return get_args(generic)[0]
    raise TypeError(f"{operation.__name__} does not say what it results in")


def _doc_of(operation: type[Operation[Any]], names: Iterable[str]) -> str:
    """The operation's description, and a line for each argument that has one."""
    lines = [(operation.__doc__ or "").strip(), ""]
    hints = get_type_hints(operation, include_extras=True)
    for name in names:
        for meta in getattr(hints.get(name), "__metadata__", ()):
            if isinstance(meta, msgspec.Meta) and meta.description:
                lines.append(f"{name}: {meta.description}")
    return "\n".join(lines).strip()


def method(operation: Callable[P, Operation[R]]) -> Method[P, R]:
    """The method of both clients that calls this operation."""
    return Method(operation)


class Operations:
    """Every operation as a method; the two clients inherit it."""

    add_memory = method(ops.AddMemory)
    get_memory = method(ops.GetMemory)
    update_memory = method(ops.UpdateMemory)
    delete_memory = method(ops.DeleteMemory)
    restore = method(ops.Restore)
    history = method(ops.History)
    purge = method(ops.Purge)
    reinforce_memory = method(ops.ReinforceMemory)
    get_children = method(ops.GetChildren)
    list_memories = method(ops.ListMemories)
    count = method(ops.Count)

    search_memory = method(ops.SearchMemory)
    semantic_search = method(ops.SemanticSearch)
    recall = method(ops.Recall)

    batch_add_memories = method(ops.BatchAddMemories)
    batch_get_memories = method(ops.BatchGetMemories)

    add_relationship = method(ops.AddRelationship)
    get_related_memories = method(ops.GetRelatedMemories)

    create_context_group = method(ops.CreateContextGroup)
    add_to_group = method(ops.AddToGroup)
    get_memories_by_group = method(ops.GetMemoriesByGroup)

    create_session = method(ops.CreateSession)

    ping = method(ops.Ping)
    stats = method(ops.Stats)
    backup = method(ops.Backup)
    reembed = method(ops.Reembed)
    report_errors = method(ops.ReportErrors)
    recent_errors = method(ops.RecentErrors)

    add = remember = add_memory
    get = get_memory
    update = update_memory
    delete = forget = delete_memory
    search = search_memory
