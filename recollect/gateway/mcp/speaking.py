"""For whom a request over MCP is carried out."""

from __future__ import annotations

from typing import Any

import msgspec
from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from recollect.client.encoding import Speaker
from recollect.protocol.envelope import NAME_CHARS_MAX

SPEAKER_IN_SCOPE = "recollect.speaker"
"""Where the endpoint leaves the speaker of an HTTP request for whoever answers it."""

Context = ServerRequestContext[Any, Any]


class Given(msgspec.Struct, frozen=True):
    """What whoever started the server said of those who use it."""

    agent: str | None = None
    session: str | None = None
    bearer: str | None = None
    namespace: str | None = None
    """Where memories are written and looked for, if a call does not say it."""

    def __repr__(self) -> str:
        return f"Given(agent={self.agent!r}, namespace={self.namespace!r})"


def speaker_of(ctx: Context, given: Given) -> Speaker:
    """The speaker of a request: as its headers say, else as was said at the start. An agent that
    nobody named has the name of its client."""
    if isinstance(ctx.request, Request):
        speaker: Speaker = ctx.request.scope[SPEAKER_IN_SCOPE]
    else:
        speaker = Speaker(agent=given.agent, session=given.session, bearer=given.bearer)
    known = ctx.session.client_params
    return named_by_client(speaker, None if known is None else known.client_info.name)


def named_by_client(speaker: Speaker, client: str | None) -> Speaker:
    """A speaker; one that nobody named has the name of its client, if that has one."""
    if speaker.agent or client is None:
        return speaker
    printable = "".join(char for char in client if char.isprintable())
    return msgspec.structs.replace(speaker, agent=printable[:NAME_CHARS_MAX].strip() or None)
