"""Whose requests are counted together."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from recollect.config import GatewaySettings
from recollect.gateway.admission import Admission
from recollect.gateway.app import GatewayApp
from recollect.gateway.living import Life


async def accept(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands where MCP would."""
    await send({"type": "http.response.start", "status": 202, "headers": []})


def test_over_mcp_a_key_is_one_caller_however_it_is_written() -> None:
    unused: Any = None
    app = GatewayApp(
        GatewaySettings(), Admission(10, 1.0), Life(unused), rest=None, pages=None, mcp=accept
    )

    async def status(key: bytes) -> int:
        statuses: list[int] = []

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        headers = [(b"host", b"localhost"), (b"authorization", key)]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
        await app(scope, unused, send)
        return statuses[0]

    async def main() -> None:
        assert await status(b"Bearer rk_one") == 202
        assert await status(b"Bearer rk_other") == 202
        for spelled in (b"Bearer rk_one", b"bearer rk_one", b"BEARER   rk_one", b"Bearer rk_one "):
            assert await status(spelled) == 429

    asyncio.run(main())
