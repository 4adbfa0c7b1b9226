"""One request on its way through the orchestrator, and how services offer their handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from recollect.orchestrator.storage.interface import Change, WriteTransaction
from recollect.protocol.errors import DeadlineExceeded
from recollect.protocol.operation import Operation

F = TypeVar("F", bound=Callable[..., Any])

Kind = Literal["read", "write"]


class Call(msgspec.Struct, frozen=True):
    """Who asks, since when and until when."""

    operation: str
    now_us: int
    deadline_us: int
    identity: str
    agent: str | None = None
    session: str | None = None
    trace: str | None = None
    key: str | None = None

    @property
    def author(self) -> str:
        """The name under which a change is recorded on the record itself."""
        return self.agent or self.identity


def record(
    call: Call,
    transaction: WriteTransaction,
    *,
    subject: str,
    namespace: str | None = None,
    version_before: int | None = None,
    version_after: int | None = None,
    operation: str | None = None,
) -> int:
    """Enter a change into the journal; returns its sequence number."""
    seq = transaction.next_seq()
    transaction.changes.append(
        Change(
            seq=seq,
            at_us=call.now_us,
            identity=call.identity,
            agent=call.agent,
            operation=operation or call.operation,
            subject=subject,
            namespace=namespace,
            version_before=version_before,
            version_after=version_after,
            session_id=call.session,
            trace=call.trace,
            request_key=call.key,
        )
    )
    return seq


def expired() -> DeadlineExceeded:
    """Why a request that comes too late is not done."""
    return DeadlineExceeded(
        "The deadline had passed before the request was begun; it was not done."
    )


def reads(operation: type[Operation[Any]]) -> Callable[[F], F]:
    """Mark a handler `(call, operation) -> result or awaitable of it`."""
    return _mark("read", operation)


def writes(operation: type[Operation[Any]]) -> Callable[[F], F]:
    """Mark a handler `(call, operation) -> transaction function or awaitable of it`."""
    return _mark("write", operation)


def _mark(kind: Kind, operation: type[Operation[Any]]) -> Callable[[F], F]:
    def mark(function: F) -> F:
        function.__handles__ = (kind, operation)  # type: ignore[attr-defined]
        return function

    return mark


def handlers_of(*services: object) -> dict[str, tuple[Kind, Callable[..., Any]]]:
    """The marked handlers of some services, by the name of their operation."""
    found: dict[str, tuple[Kind, Callable[..., Any]]] = {}
    for service in services:
        for name in dir(service):
            handler = getattr(service, name)
            if marked := getattr(handler, "__handles__", None):
                kind, operation = marked
                assert operation.spec.name not in found, f"{operation.spec.name} is handled twice"
                found[operation.spec.name] = (kind, handler)
    return found
