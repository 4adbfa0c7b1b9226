"""Who is told of a change of state: the log, the bus, a webhook.

On the bus it is an operational event of the category `health`, and for what got worse an entry
among the errors. While the orchestrator is away, which is when most is to be told, what is for the
bus waits; so much of it, and no more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import structlog

from recollect.health.clients import Line
from recollect.health.moments import iso
from recollect.health.states import State, Transition, worse
from recollect.health.webhook import Webhook
from recollect.protocol.errors import RecollectError
from recollect.protocol.operations import ErrorReport, PushEvent, ReportErrors
from recollect.protocol.own_namespaces import HEALTH_NAMESPACE

log = structlog.get_logger()

SOURCE = "health"
CATEGORY = "health"
MESSAGE_CHARS_MAX = 1000


class Alerts:
    """Passes changes on. Lives on the event loop."""

    def __init__(
        self,
        line: Line,
        webhook: Webhook | None,
        *,
        waiting_max: int,
        retry_s: float,
        timeout_s: float,
    ) -> None:
        self._line = line
        self._webhook = webhook
        self._retry_s = retry_s
        self._timeout_s = timeout_s
        self._waiting: deque[dict[str, Any]] = deque(maxlen=waiting_max)
        self._woken = asyncio.Event()

    def changed(self, transition: Transition, overall: State) -> None:
        """A component is no longer as it was."""
        alert = {
            "kind": "state",
            "at": iso(transition.at_s),
            "component": transition.component,
            "before": transition.before,
            "after": transition.after,
            "reasons": list(transition.reasons),
            "overall": overall,
        }
        getting_worse = worse(transition.after, transition.before or "healthy")
        tell = log.warning if getting_worse else log.info
        tell(
            f"The {transition.component} is {transition.after}.",
            action="health",
            component=transition.component,
            before=transition.before,
            after=transition.after,
            reasons=alert["reasons"],
        )
        self._pass_on(alert)

    def repaired(self, at_s: float, details: dict[str, Any]) -> None:
        """The index was not as the database, and is so again."""
        log.warning("The index was repaired.", action="repair", **details)
        self._pass_on({"kind": "repair", "at": iso(at_s), "component": "index", "details": details})

    def _pass_on(self, alert: dict[str, Any]) -> None:
        self._waiting.append(alert)
        self._woken.set()
        if self._webhook is not None:
            self._webhook.tell(alert)

    async def run(self) -> None:
        """Bring to the bus what waits for it, in order, for as long as this runs."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                alert = self._waiting[0]
                try:
                    await self._to_bus(alert)
                except RecollectError as error:
                    if error.retryable:
                        await asyncio.sleep(self._retry_s)
                        continue
                    log.warning("The bus refused an alert.", action="bus", reason=error.message)
                # While it was told, newer ones may have pushed it out.
                if self._waiting and self._waiting[0] is alert:
                    self._waiting.popleft()

    async def _to_bus(self, alert: dict[str, Any]) -> None:
        # A key of its own: told again after an answer that was lost, it is still one event.
        key = f"health:{alert['at']}:{alert['component']}:{alert.get('after', 'repair')}"
        await self._line.call(
            PushEvent(
                CATEGORY,
                alert,
                namespace=HEALTH_NAMESPACE,
                idempotency_key=key,
                timeout=self._timeout_s,
            )
        )
        error = _error_of(alert)
        if error is not None:
            await self._line.call(ReportErrors(SOURCE, [error], timeout=self._timeout_s))


def _error_of(alert: dict[str, Any]) -> ErrorReport | None:
    """What got worse, as the error bus has it; the same each time, so that it is counted."""
    if alert["kind"] == "repair":
        return ErrorReport(
            "index_repaired", "The vector index was repaired.", context=alert["details"]
        )
    if not worse(alert["after"], alert["before"] or "healthy"):
        return None
    message = f"The {alert['component']} is {alert['after']}."
    context = {"reasons": [reason[:MESSAGE_CHARS_MAX] for reason in alert["reasons"]]}
    return ErrorReport(f"health_{alert['after']}", message, context=context)
