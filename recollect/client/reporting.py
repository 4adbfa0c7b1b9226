"""What went wrong on the client's side, kept until the orchestrator can be told.

Errors of one kind are counted together, and there is room for so many kinds: a client that is cut
off for a day keeps a hundred lines, not a hundred thousand.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from recollect.client import forking
from recollect.client.encoding import Call
from recollect.protocol.errors import RecollectError
from recollect.protocol.operations import ErrorReport, ReportErrors

REPORT_KINDS_MAX = 100
REPORT_TIMEOUT_S = 0.5
# After a report that arrived, and after one that did not, there is none for so long.
REPORT_INTERVAL_S = 1.0
REPORT_PAUSE_S = 5.0
MESSAGE_CHARS_MAX = 500

_REPORTING = ReportErrors.spec.name
_ONCE = msgspec.structs.replace(ReportErrors.spec, replay=False)


class ErrorBuffer:
    """Errors waiting to be reported. Any thread may add; one at a time takes."""

    def __init__(self, endpoint: str, clock: Callable[[], float]) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._kinds: dict[tuple[str, str], ErrorReport] = {}
        self._taken: dict[tuple[str, str], ErrorReport] = {}
        self._dropped_count = 0
        # Whether there is something to take. Read without the lock after every call.
        self.waiting = False
        self._start()
        forking.register(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._sending = False
        self._pause_until_s = 0.0

    def after_fork(self) -> None:
        # The parent reports its own errors.
        self._kinds, self._dropped_count, self.waiting = {}, 0, False
        self._start()

    def add(self, operation: str, error: RecollectError, **context: Any) -> None:
        """Count an error that a call met."""
        if operation == _REPORTING:
            return
        kind = (error.code, operation)
        with self._lock:
            known = self._kinds.get(kind)
            if known is None and len(self._kinds) >= REPORT_KINDS_MAX - 1:
                self._dropped_count += 1
                return
            self._kinds[kind] = ErrorReport(
                code=error.code,
                message=error.message[:MESSAGE_CHARS_MAX],
                count=known.count + 1 if known is not None else 1,
                context={"operation": operation, "endpoint": self._endpoint, **context},
            )
            self.waiting = True

    def take(self, source: str) -> ReportErrors | None:
        """All that waits, as one operation; None where another thread sends, or it is too early."""
        with self._lock:
            if self._sending or not self._kinds or self._clock() < self._pause_until_s:
                return None
            self._sending = True
            self._taken, self._kinds = self._kinds, {}
            dropped_count, self._dropped_count = self._dropped_count, 0
            self.waiting = False
        errors = list(self._taken.values())
        if dropped_count:
            errors.append(
                ErrorReport(
                    code="reports_dropped",
                    message="More kinds of errors than a client keeps.",
                    count=dropped_count,
                )
            )
        return ReportErrors(source=source, errors=errors, timeout=REPORT_TIMEOUT_S)

    def done(self, arrived: bool) -> None:
        """What was taken has arrived; or it is kept, and the line left in peace for a while."""
        with self._lock:
            self._sending = False
            pause_s = REPORT_INTERVAL_S if arrived else REPORT_PAUSE_S
            self._pause_until_s = self._clock() + pause_s
            if arrived:
                return
            for kind, report in self._taken.items():
                newer = self._kinds.get(kind)
                if newer is not None or len(self._kinds) < REPORT_KINDS_MAX - 1:
                    count = report.count + (newer.count if newer is not None else 0)
                    self._kinds[kind] = ErrorReport(
                        report.code, report.message, count, report.context
                    )
                else:
                    self._dropped_count += report.count
            self.waiting = bool(self._kinds)


def once(call: Call) -> Call:
    """A report that is sent one time and not again, so that it delays nobody for long."""
    return msgspec.structs.replace(call, spec=_ONCE)


def source_name(agent_id: str | None) -> str:
    """Who reports: the agent, or at least its process."""
    return f"client:{agent_id or f'pid-{os.getpid()}'}"[:256]
