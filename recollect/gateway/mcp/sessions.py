"""Whose the sessions of MCP are, so that one caller does not take all of them.

The transport opens and ends them, and tells nobody. What can be known from outside is enough: an
answer names the session that it opened, and one that is idle for longer than it may be has ended.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.types import Message, Send

from recollect.gateway.shares import Shares

SESSION_ID = MCP_SESSION_ID_HEADER.lower().encode()
GONE = 404


class Sessions:
    """Counts the sessions of each caller. Lives on the event loop."""

    def __init__(self, places: Shares, idle_s: float, now_s: Callable[[], float]) -> None:
        """`now_s` is a monotonic clock."""
        self._places = places
        self._idle_s = idle_s
        self._now_s = now_s
        # Whose each is and when it was last used, the longest unused first.
        self._open: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def begin(self, caller: str) -> None:
        """Take a place for a session that is to be opened; raises Overloaded."""
        until_s = self._now_s() - self._idle_s
        while self._open and next(iter(self._open.values()))[1] < until_s:
            self.end(next(iter(self._open)))
        self._places.take(caller)

    def settle(self, caller: str, session_id: bytes | None) -> None:
        """What has come of it: the session, or none and the place is free again."""
        if session_id is None:
            self._places.leave(caller)
        else:
            self._open[session_id] = (caller, self._now_s())

    def use(self, session_id: bytes) -> None:
        """Somebody asks something in it."""
        known = self._open.pop(session_id, None)
        if known is not None:
            self._open[session_id] = (known[0], self._now_s())

    def end(self, session_id: bytes) -> None:
        known = self._open.pop(session_id, None)
        if known is not None:
            self._places.leave(known[0])


class Heard:
    """What an answer says of its session, on its way to the client."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.session_id: bytes | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.session_id = dict(message["headers"]).get(SESSION_ID)
        await self._send(message)
