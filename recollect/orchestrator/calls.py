"""One request on its way through the orchestrator, and how services offer their handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from recollect.orchestrator.access.grants import EVERYTHING, Grants
from recollect.orchestrator.storage.interface import Change, WriteTransaction
from recollect.protocol.errors import DeadlineExceeded, Forbidden
from recollect.protocol.operation import Access, Operation

F = TypeVar("F", bound=Callable[..., Any])

Kind = Literal["read", "write"]


class Refusal(msgspec.Struct, frozen=True):
    """Something that a call asked for and may not have."""

    subject: str
    namespace: str | None
    detail: str


class Fence(msgspec.Struct, frozen=True):
    """The lease under which something is done, by its name and the token of its holder."""

    name: str
    token: int


class Call(msgspec.Struct, frozen=True):
    """Who asks, since when and until when, and what they may do."""

    operation: str
    now_us: int
    deadline_us: int
    identity: str
    agent: str | None = None
    session: str | None = None
    trace: str | None = None
    key: str | None = None
    task: str | None = None
    fence: Fence | None = None
    """The lease that must still have this token when something is written."""
    access: Access = "admin"
    """What the operation needs."""
    grants: Grants = EVERYTHING
    memories_max: int | None = None
    """How many memories the identity may have stored, if that is bounded."""
    credential: str | None = None
    """What it showed of itself, if keys are asked for or it came with a bearer key."""
    refusals: list[Refusal] = []
    """Filled while the call is worked on; each ends in the audit log."""

    @property
    def author(self) -> str:
        """The name under which a change is recorded on the record itself."""
        return self.agent or self.identity

    def sees(self, namespace: str | None, subject: str = "") -> bool:
        """Whether the caller may know what is in a namespace; if not, that is noted.

        What may not be seen is answered as if it were not there.
        """
        if self.grants.allows(namespace, "read"):
            return True
        self.refusals.append(Refusal(subject, namespace, "not readable"))
        return False

    def require(
        self, namespace: str | None, subject: str = "", access: Access | None = None
    ) -> None:
        """Refuse unless the caller may do there what the operation does; None as in `allows`."""
        needed = access or self.access
        if not self.grants.allows(namespace, needed):
            self.refusals.append(Refusal(subject, namespace, f"needs {needed}"))
            place = "the whole store" if namespace is None else namespace
            pattern = "'*'" if namespace is None else namespace
            raise Forbidden(
                f"The identity {self.identity!r} has no {needed} access to {place}: "
                f"`recollect keys grant {self.identity} {pattern} {needed}` gives it.",
                identity=self.identity,
                namespace=namespace,
                access=needed,
            )


def record(
    call: Call,
    transaction: WriteTransaction,
    *,
    subject: str,
    namespace: str | None = None,
    version_before: int | None = None,
    version_after: int | None = None,
    operation: str | None = None,
    outcome: str | None = None,
    detail: str | None = None,
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
            task_id=call.task,
            outcome=outcome,
            detail=detail,
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
    """Mark a handler `(call, operation) -> transaction function or awaitable of it`.

    What changes nothing in the storage is done at once: such a handler returns its encoded answer.
    """
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
