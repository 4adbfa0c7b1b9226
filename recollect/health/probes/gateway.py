"""Does the gateway answer, where one is configured or has left word of itself?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec

from recollect.health.probes.probe import NotWatched
from recollect.health.states import Finding

WORD_NAME = "gateway.json"
READY_PATH = "/health/ready"


def announced_url(folder: Path) -> str | None:
    """Where to ask the gateway of a data folder; None if none has said that it is there.

    One that was killed has taken nothing back: so it is asked, and is seen to be down.
    """
    try:
        return str(msgspec.json.decode((folder / WORD_NAME).read_bytes())["url"]) + READY_PATH
    except (OSError, ValueError, LookupError, TypeError):
        return None


class GatewayProbe:
    """Asks it over HTTP, as whoever uses it does."""

    name = "gateway"
    through_orchestrator = False

    def __init__(
        self,
        where: Callable[[], str | None],
        *,
        interval_s: float,
        timeout_s: float,
        certified: bool = True,
    ) -> None:
        """`where` says what to ask. `certified`: whether its certificate must be good; the one of
        our own data folder is known by its place."""
        self._where = where
        self._certified = certified
        self._timeout_s = timeout_s
        self.interval_s = interval_s
        self.timeout_s = 2 * timeout_s
        self._client: httpx.AsyncClient | None = None

    async def look(self) -> Finding:
        url = self._where()
        if url is None:
            raise NotWatched
        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=self._timeout_s, trust_env=False, verify=self._certified
            )
        try:
            # Only what it answers with counts: a body could be endless.
            async with self._client.stream("GET", url) as answer:
                code = answer.status_code
        except httpx.HTTPError as error:
            return Finding("down", (f"It does not answer ({type(error).__name__}).",))
        details = {"url": url, "status_code": code}
        if code >= 500:
            return Finding("degraded", (f"It answers with {code}.",), details)
        return Finding("healthy", (), details)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
