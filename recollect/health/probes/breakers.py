"""Do clients reach the orchestrator, and does the orchestrator reach what it calls?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from recollect.health.clients import OWN_SOURCE, Line
from recollect.health.probes.probe import Sight
from recollect.health.states import Finding
from recollect.protocol.operations import RecentErrors

OPENED = "circuit_open"
CODES = (OPENED, "unreachable", "connection_lost", "timeout")
ERRORS_MAX = 200
SHOWN_MAX = 20


class BreakersProbe:
    """Reads the error bus for what clients met lately. An opened circuit worries; single timeouts
    are shown."""

    name = "breakers"
    through_orchestrator = True

    def __init__(
        self,
        line: Line,
        sight: Sight,
        *,
        interval_s: float,
        timeout_s: float,
        window_s: float,
        now_s: Callable[[], float],
    ) -> None:
        self._line = line
        self._sight = sight
        self._window_s = window_s
        self._now_s = now_s
        self.interval_s = interval_s
        self.timeout_s = timeout_s

    async def look(self) -> Finding:
        answer = await self._line.call(RecentErrors(ERRORS_MAX, timeout=self.timeout_s))
        after_s = self._now_s() - self._window_s
        recent: list[dict[str, Any]] = [
            {key: error[key] for key in ("source", "code", "message", "count", "last_at")}
            for error in answer["errors"]
            if error["code"] in CODES
            and error["source"].startswith("client:")
            and error["source"] != OWN_SOURCE
            and datetime.fromisoformat(error["last_at"]).timestamp() >= after_s
        ]
        own = self._sight.sample.metrics["breakers"] if self._sight.sample else {}
        opened = sorted({error["source"] for error in recent if error["code"] == OPENED})
        reasons = [f"The circuit of {source} opened lately." for source in opened[:SHOWN_MAX]]
        reasons += [
            f"The orchestrator's circuit to its {name} service is {state}."
            for name, state in own.items()
            if state != "closed"
        ]
        details = {"orchestrator": own, "clients": recent[:SHOWN_MAX]}
        return Finding("degraded" if reasons else "healthy", tuple(reasons), details)

    async def close(self) -> None:
        pass
