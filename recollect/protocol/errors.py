"""Every error a caller can meet, in one tree.

RecollectError
├── InvalidRequest
│   ├── InvalidArgument        invalid_argument       a field is missing, wrong or out of range
│   ├── LimitExceeded          limit_exceeded         larger than a configured limit, which is named
│   ├── MalformedRequest       malformed_request      broken frames or MessagePack
│   ├── UnknownOperation       unknown_operation      no operation of that name
│   ├── UnsupportedVersion     unsupported_version    another version of the protocol
│   ├── SecretRefused          secret_refused         it holds a password, key or token
│   ├── PathRefused            path_refused           not a plain file or folder of documents.roots
│   ├── UnreadableDocument     unreadable_document    broken, encrypted, empty, or no text at all
│   └── Unsupported            unsupported            valid, but not on this storage
├── NotFound                   not_found              no such memory, group, session or version
├── AccessError
│   ├── Unauthenticated        unauthenticated        no key, or one that is not known
│   └── Forbidden              forbidden              the identity has no such access there
├── Conflict
│   ├── VersionConflict        version_conflict       somebody changed it since you read it
│   ├── AlreadyExists          already_exists         the key is taken in its namespace
│   ├── CycleRefused           cycle_refused          a memory cannot be its own ancestor
│   ├── TransitionRefused      transition_refused     the status does not lead to that one
│   ├── LeaseLost              lease_lost             somebody else holds the lease by now
│   ├── IdempotencyConflict    idempotency_conflict   the same key came with another payload
│   ├── ChangesGone            changes_gone           those changes were trimmed: read all anew
│   └── ChangesAhead           changes_ahead          the store has not come so far: another store
├── Unavailable
│   ├── Overloaded             overloaded             too many in flight; wait retry_after_ms
│   ├── RateLimited            rate_limited           too many requests; wait retry_after_ms
│   ├── ShuttingDown           shutting_down          the orchestrator is draining
│   ├── NotYetVisible          not_yet_visible        min_seq was not reached before the deadline
│   ├── EmbedderUnavailable    embedder_unavailable   no vectors now; words are still searched
│   ├── ChatUnavailable        chat_unavailable       the chat model did not serve; nothing was done
│   ├── StorageFull            storage_full           the disk is full; nothing was written
│   └── StorageFailed          storage_failed         the storage refused; nothing was written
├── DeadlineExceeded           deadline_exceeded      expired before it was begun; not executed
├── InternalError              internal               a defect of ours; the log has the details
└── TransportError                                    (raised by the client itself)
    ├── Unreachable            unreachable            nobody listens at the endpoint
    ├── ConnectionLost         connection_lost        the line broke before the answer came
    ├── RequestTimeout         timeout                no answer in time; the outcome may be unknown
    ├── CircuitOpen            circuit_open           recent calls failed, so this one was not tried
    └── ClientClosed           client_closed          the client was closed

A code is stable and meant for programs; a message is meant for people.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict


class ErrorBody(TypedDict):
    """An error as it travels: the same on the wire, over REST and over MCP."""

    code: str
    message: str
    retryable: bool
    details: dict[str, Any]


class ErrorReply(TypedDict):
    """What a failed call returns when the client does not raise."""

    status: str
    error: ErrorBody


class RecollectError(Exception):
    """Something went wrong; `code` says what, `retryable` whether trying again can help."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, /, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def body(self) -> ErrorBody:
        """The error as a dict for the wire."""
        return {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            "details": self.details,
        }

    def reply(self) -> ErrorReply:
        """The whole reply dict of a call that failed with this error."""
        return {"status": "error", "error": self.body()}


class InvalidRequest(RecollectError):
    """The request can never succeed as it is."""

    code = "invalid_request"


class InvalidArgument(InvalidRequest):
    code = "invalid_argument"


class LimitExceeded(InvalidRequest):
    code = "limit_exceeded"


class MalformedRequest(InvalidRequest):
    code = "malformed_request"


class UnknownOperation(InvalidRequest):
    code = "unknown_operation"


class UnsupportedVersion(InvalidRequest):
    code = "unsupported_version"


class Unsupported(InvalidRequest):
    code = "unsupported"


class SecretRefused(InvalidRequest):
    code = "secret_refused"


class PathRefused(InvalidRequest):
    code = "path_refused"


class UnreadableDocument(InvalidRequest):
    code = "unreadable_document"


class NotFound(RecollectError):
    code = "not_found"


class AccessError(RecollectError):
    """The caller is not let in, or not so far."""

    code = "access"


class Unauthenticated(AccessError):
    code = "unauthenticated"


class Forbidden(AccessError):
    code = "forbidden"


class Conflict(RecollectError):
    """The request does not fit the present state."""

    code = "conflict"


class VersionConflict(Conflict):
    code = "version_conflict"


class AlreadyExists(Conflict):
    code = "already_exists"


class CycleRefused(Conflict):
    code = "cycle_refused"


class TransitionRefused(Conflict):
    code = "transition_refused"


class LeaseLost(Conflict):
    code = "lease_lost"


class IdempotencyConflict(Conflict):
    code = "idempotency_conflict"


class ChangesGone(Conflict):
    code = "changes_gone"


class ChangesAhead(Conflict):
    code = "changes_ahead"


class Unavailable(RecollectError):
    """The orchestrator cannot do it now; nothing was written."""

    code = "unavailable"
    retryable = True


class Overloaded(Unavailable):
    code = "overloaded"


class RateLimited(Unavailable):
    code = "rate_limited"


class ShuttingDown(Unavailable):
    code = "shutting_down"


class NotYetVisible(Unavailable):
    code = "not_yet_visible"


class EmbedderUnavailable(Unavailable):
    code = "embedder_unavailable"


class ChatUnavailable(Unavailable):
    code = "chat_unavailable"


class StorageFull(Unavailable):
    code = "storage_full"


class StorageFailed(Unavailable):
    code = "storage_failed"


class DeadlineExceeded(RecollectError):
    code = "deadline_exceeded"
    retryable = True


class InternalError(RecollectError):
    code = "internal"


class TransportError(RecollectError):
    """The client could not get an answer."""

    code = "transport"
    retryable = True


class Unreachable(TransportError):
    code = "unreachable"


class ConnectionLost(TransportError):
    code = "connection_lost"


class RequestTimeout(TransportError):
    code = "timeout"


class CircuitOpen(TransportError):
    code = "circuit_open"


class ClientClosed(TransportError):
    code = "client_closed"
    retryable = False


def _tree(root: type[RecollectError]) -> list[type[RecollectError]]:
    return [root, *(leaf for child in root.__subclasses__() for leaf in _tree(child))]


BY_CODE: dict[str, type[RecollectError]] = {error.code: error for error in _tree(RecollectError)}


def from_body(body: ErrorBody) -> RecollectError:
    """The typed error for an error dict; an unknown code becomes a plain RecollectError."""
    known = BY_CODE.get(body["code"], RecollectError)
    error = known(body["message"], **body["details"])
    if known is RecollectError:
        error.__dict__["code"] = body["code"]
        error.__dict__["retryable"] = body["retryable"]
    return error
