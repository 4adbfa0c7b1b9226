"""Calls of tools in their plainest form, answered without the layers of the SDK.

The SDK judges every request by its headers and its envelope, validates it and its result several
times over, and that takes longer than the operation. What it judges stays the same from one call of
a client to the next, though. So a form in which the SDK has answered a call with a result is
remembered, and further calls in the same form differ only in what is read strictly here: an id, the
name of a tool that there is, and its arguments. Whatever differs in anything else goes to the SDK.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, Literal

import msgspec
from mcp.server.lowlevel import Server
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp_types import CLIENT_INFO_META_KEY, SERVER_INFO_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.types import Message, Send

from recollect.client.encoding import Speaker
from recollect.gateway.mcp.calling import Calling
from recollect.gateway.mcp.speaking import named_by_client
from recollect.gateway.mcp.tools import OfferedTool

FORMS_MAX: Final = 256
FORM_BYTES_MAX: Final = 4096

CALL: Final = b"tools/call"
PARAMETER: Final = b"mcp-param-"
METHOD: Final = MCP_METHOD_HEADER.lower().encode()
NAME: Final = MCP_NAME_HEADER.lower().encode()
VERSION: Final = MCP_PROTOCOL_VERSION_HEADER.lower().encode()
VERSIONS: Final = frozenset(version.encode() for version in MODERN_PROTOCOL_VERSIONS)
JUDGED: Final = frozenset(
    {
        *(b"host", b"origin", b"accept", b"content-type", b"content-encoding"),
        *(b"mcp-session-id", b"last-event-id", METHOD, VERSION),
    }
)
"""What of the headers of a call the SDK may look at, beside the name of the tool."""

Headers = list[tuple[bytes, bytes]]
Form = tuple[Any, ...]


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    meta: msgspec.Raw = msgspec.field(name="_meta")
    arguments: dict[str, Any] = {}


class PlainCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a tool with nothing beside: no progress asked for, nothing resumed."""

    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: Params


class Asked(msgspec.Struct, frozen=True):
    """A plain call of a tool that there is, and the form it came in."""

    call: PlainCall
    tool: OfferedTool
    form: Form


_decode = msgspec.json.Decoder(PlainCall).decode
_encode = msgspec.json.Encoder().encode


class PlainCalls:
    """Tells plain calls from others and answers them. Lives on the event loop."""

    def __init__(
        self, server: Server[Any], calling: Calling, tools: dict[str, OfferedTool]
    ) -> None:
        self._calling = calling
        self._tools = tools
        self._meta = {SERVER_INFO_META_KEY: server.server_info_stamp}
        # The forms that the SDK has answered, each with the name of its client; the one that was
        # used least lately is forgotten first.
        self._known: OrderedDict[Form, str | None] = OrderedDict()

    def read(self, headers: Headers, body: bytes) -> Asked | None:
        """A request as a plain call; None if it is another."""
        judged = []
        name = None
        for header in headers:
            if header[0] in JUDGED:
                judged.append(header)
            elif header[0] == NAME:
                if name is not None:
                    return None
                name = header[1]
            elif header[0].startswith(PARAMETER):
                return None
        said = dict(judged)
        if name is None or said.get(METHOD) != CALL or said.get(VERSION) not in VERSIONS:
            return None
        try:
            call = _decode(body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        tool = self._tools.get(call.params.name)
        if tool is None or call.params.name.encode() != name:
            return None
        return Asked(call, tool, (*judged, bytes(call.params.meta)))

    def knows(self, asked: Asked) -> bool:
        """Whether the SDK has answered a call in this form."""
        return asked.form in self._known

    async def answer(self, asked: Asked, speaker: Speaker) -> bytes:
        """The answer to a call in a form that is known, as the SDK would write it."""
        self._known.move_to_end(asked.form)
        client = self._known[asked.form]
        told = await self._calling.told(
            asked.tool, asked.call.params.arguments, named_by_client(speaker, client)
        )
        result = {
            "content": [{"text": told.fitted.text, "type": "text"}],
            "isError": told.is_error,
            "resultType": "complete",
            "structuredContent": told.fitted.answer,
            "_meta": self._meta,
        }
        return _encode({"jsonrpc": "2.0", "id": asked.call.id, "result": result})

    def learning(self, asked: Asked, send: Send) -> Send:
        """A `send` for the SDK's answer to this call; if that is a result, its form is known."""
        status = 0

        async def heard(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            if status == 200 and _is_result(message):
                self._learn(asked)
            await send(message)

        return heard

    def _learn(self, asked: Asked) -> None:
        meta = asked.call.params.meta
        if len(meta) + sum(len(value) for _, value in asked.form[:-1]) > FORM_BYTES_MAX:
            return
        client = msgspec.json.decode(meta).get(CLIENT_INFO_META_KEY)
        self._known[asked.form] = None if client is None else client["name"]
        if len(self._known) > FORMS_MAX:
            self._known.popitem(last=False)


def _is_result(message: Message) -> bool:
    if message["type"] != "http.response.body" or message.get("more_body", False):
        return False
    try:
        return "result" in msgspec.json.decode(message["body"])
    except (msgspec.MsgspecError, UnicodeError):
        return False
