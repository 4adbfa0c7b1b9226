"""The official MCP client, as the tests drive it over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.harness.forks import ROOT
from tests.harness.processes import LIGHT

T = TypeVar("T")
Mode = Literal["auto", "legacy"]
"""How a client greets: as the newest protocol has it, or with the handshake of those before."""

WITHIN_S = 60.0
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
"""How a client greets, without any library."""


class Caller:
    """Calls tools by name; remembers which."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.used: set[str] = set()

    async def result(self, name: str, **arguments: Any) -> types.CallToolResult:
        """The result as it came."""
        self.used.add(name)
        return await self.client.call_tool(name, arguments)

    async def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answered, which must be no error."""
        result = await self.result(name, **arguments)
        assert not result.is_error, result.content
        answer: dict[str, Any] = result.structured_content
        return answer

    async def error(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The error that a tool answered with."""
        result = await self.result(name, **arguments)
        assert result.is_error, result.content
        error: dict[str, Any] = result.structured_content["error"]
        return error


@asynccontextmanager
async def over_stdio(
    folder: Path,
    *options: str,
    mode: Mode = "auto",
    command: list[str] | None = None,
    name: str = "tester",
    log: TextIO | None = None,
    **env: str,
) -> AsyncIterator[Caller]:
    """A client that started `recollect mcp` in a folder."""
    started = command or [sys.executable, "-m", "recollect", "mcp"]
    server = StdioServerParameters(
        command=started[0],
        args=[*started[1:], *options],
        env={"PYTHONPATH": str(ROOT), **LIGHT, **env},
        cwd=folder,
    )
    with log or Path(os.devnull).open("w") as errors:
        async with Client(
            stdio_client(server, errors), mode=mode, client_info=known_as(name), cache=None
        ) as client:
            yield Caller(client)


@asynccontextmanager
async def over_http(
    url: str, *, mode: Mode = "auto", name: str = "tester", **headers: str
) -> AsyncIterator[Caller]:
    """A client of the gateway; `x_recollect_agent=…` is the header X-Recollect-Agent."""
    sent = {header.replace("_", "-"): value for header, value in headers.items()}
    async with (
        create_mcp_http_client(headers=sent) as http,
        Client(
            streamable_http_client(url, http_client=http),
            mode=mode,
            client_info=known_as(name),
            cache=None,
        ) as client,
    ):
        yield Caller(client)


def known_as(name: str) -> types.Implementation:
    return types.Implementation(name=name, version="1")


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Do something on an event loop, within a time."""

    async def bounded() -> T:
        async with asyncio.timeout(WITHIN_S):
            return await work()

    return asyncio.run(bounded())
