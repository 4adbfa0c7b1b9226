"""The envelope around every message: one MessagePack map in one ZeroMQ frame.

The body stays raw bytes, so that an unknown operation or a broken body still gets an answer that
carries its id. `docs/protocol.md` specifies both for speakers of other languages.
"""

from __future__ import annotations

import msgspec

PROTOCOL_VERSION = 1

IDEMPOTENCY_KEY_CHARS_MAX = 128
NAME_CHARS_MAX = 256
BEARER_CHARS_MAX = 256


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a client sends."""

    v: int
    """Protocol version."""
    id: int | str
    """Chosen by the client, echoed in the reply; unique among its requests in flight."""
    op: str
    """Name of the operation."""
    body: bytes = b"\x80"
    """The operation's fields: a MessagePack map."""
    deadline_ms: int | None = None
    """Unix time by the server's clock; past it, the request is not executed."""
    key: str | None = None
    """Idempotency key: a write that carries one takes effect once."""
    trace: str | None = None
    """Goes into logs and the audit, to follow one piece of work through the system."""
    agent: str | None = None
    """Who writes, as the client names itself."""
    session: str | None = None
    """The session that new memories belong to."""
    task: str | None = None
    """The task that the work is done for, for the audit."""
    fence: str | None = None
    """`name/token` of the lease under which it is done: refused once that lease has another."""
    bearer: str | None = None
    """A bearer key: the request is done in the name of whose it is, not of who carries it here."""

    def __repr__(self) -> str:
        return f"Request(id={self.id!r}, op={self.op!r})"


class Reply(msgspec.Struct, frozen=True):
    """What the orchestrator answers."""

    v: int
    id: int | str | None
    """The request's id; null where the request was too broken to have one."""
    now_ms: int
    """The server's clock, from which a client learns how to state its deadlines."""
    body: bytes
    """`{"status": "success", …}` or `{"status": "error", "error": {…}}` as a MessagePack map."""


class Salvage(msgspec.Struct, frozen=True):
    """What can still be read of a request that does not fit this version."""

    v: int | None = None
    id: int | str | None = None


decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
decode_salvage = msgspec.msgpack.Decoder(Salvage).decode
