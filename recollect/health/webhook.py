"""Tells somebody's HTTP endpoint of a change of state: one POST of JSON a change, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import msgspec
import structlog

from recollect.config import HealthSettings

log = structlog.get_logger()

BACKOFF_S_MAX = 30.0
RETRYABLE = frozenset({408, 425, 429})


class Webhook:
    """Sends what it is given, a bounded number of times each. Lives on the event loop."""

    def __init__(
        self,
        url: str,
        settings: HealthSettings,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._url = url
        self._timeout_s = settings.webhook_timeout_s
        self._attempts_max = settings.webhook_attempts_max
        self._backoff_s = settings.webhook_backoff_ms / 1000
        self._sleep = sleep
        # Alerts in their order; the oldest make room.
        self._waiting: deque[dict[str, Any]] = deque(maxlen=settings.alerts_waiting_max)
        self._woken = asyncio.Event()
        self.sent = 0
        self.given_up = 0

    def tell(self, alert: dict[str, Any]) -> None:
        if len(self._waiting) == self._waiting.maxlen:
            self.given_up += 1
        self._waiting.append(alert)
        self._woken.set()

    async def run(self) -> None:
        """Send what waits, for as long as this runs."""
        async with httpx.AsyncClient(timeout=self._timeout_s, trust_env=False) as client:
            while True:
                await self._woken.wait()
                self._woken.clear()
                while self._waiting:
                    try:
                        await self._send(client, self._waiting.popleft())
                    except Exception:
                        # Whatever is wrong with one alert, the next is to be told.
                        self.given_up += 1
                        log.exception("An alert could not be sent.", action="webhook")

    async def _send(self, client: httpx.AsyncClient, alert: dict[str, Any]) -> None:
        body = msgspec.json.encode(alert)
        reason = ""
        for attempt in range(self._attempts_max):
            if attempt:
                await self._sleep(min(BACKOFF_S_MAX, self._backoff_s * 2 ** (attempt - 1)))
            try:
                code = await self._post(client, body)
            except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
                reason = type(error).__name__
                continue
            if code < 400:
                self.sent += 1
                return
            reason = f"HTTP {code}"
            if code < 500 and code not in RETRYABLE:
                break
        self.given_up += 1
        log.warning("The webhook did not take an alert.", action="webhook", reason=reason)

    async def _post(self, client: httpx.AsyncClient, body: bytes) -> int:
        headers = {"Content-Type": "application/json"}
        # The whole of it is bounded too: a server may drip, and its answer is not wanted.
        async with (
            asyncio.timeout(self._timeout_s),
            client.stream("POST", self._url, content=body, headers=headers) as answer,
        ):
            return answer.status_code
