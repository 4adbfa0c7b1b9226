"""Whether the gateway lives, and whether there is a memory behind it to work with."""

from __future__ import annotations

import msgspec
from starlette.types import Scope, Send

from recollect.gateway.asking import Backend
from recollect.gateway.rest.answers import send_answer, send_problem
from recollect.gateway.rest.problems import Refusal
from recollect.protocol.errors import RecollectError, UnknownOperation

LIVE_PATH = "/health/live"
READY_PATH = "/health/ready"
PING_S_MAX = 0.5


class Life:
    """Answers those who watch; to everybody, because it says nothing of what is remembered."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.stopping = False
        """Set while the last requests are answered: new ones should go elsewhere."""

    async def __call__(self, scope: Scope, send: Send) -> bool:
        """Answer, if that was asked; whether it was."""
        if scope["path"] not in (LIVE_PATH, READY_PATH):
            return False
        if scope["method"] not in ("GET", "HEAD"):
            refused = Refusal(UnknownOperation("Only GET means something here."), 405)
            await send_problem(send, refused.error, [(b"allow", b"GET, HEAD")], status=405)
        elif scope["path"] == LIVE_PATH:
            await _say(send, 200, {"status": "success", "live": True})
        else:
            await self._say_whether_ready(send)
        return True

    async def _say_whether_ready(self, send: Send) -> None:
        reason = "It is being stopped." if self.stopping else await self._trouble()
        if reason is None:
            await _say(send, 200, {"ready": True, "reasons": []})
        else:
            await _say(send, 503, {"ready": False, "reasons": [reason]})

    async def _trouble(self) -> str | None:
        try:
            await self._backend.ping(PING_S_MAX)
        except RecollectError as error:
            return error.message
        return None


async def _say(send: Send, status: int, body: dict[str, object]) -> None:
    await send_answer(send, status, msgspec.json.encode(body))
