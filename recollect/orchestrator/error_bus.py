"""The error bus: what went wrong anywhere in the system, counted by kind, the latest kept."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from recollect.orchestrator.clock import to_iso
from recollect.protocol.records import ErrorSeen

COUNT_MAX = (1 << 63) - 1  # the largest number that everyone who reads it can hold


class ErrorBus:
    """A bounded set of kinds of errors. Touched by the event loop's thread alone."""

    def __init__(self, kinds_max: int) -> None:
        self._kinds_max = kinds_max
        self._seen: OrderedDict[tuple[str, str, str], dict[str, Any]] = OrderedDict()

    def report(
        self,
        source: str,
        code: str,
        message: str,
        now_us: int,
        *,
        count: int = 1,
        context: dict[str, Any] | None = None,
    ) -> None:
        """Count an error; the kind seen longest ago makes room."""
        kind = (source, code, message)
        seen = self._seen.pop(kind, None) or {"count": 0, "first_us": now_us}
        seen["count"] = min(COUNT_MAX, seen["count"] + count)
        seen["last_us"] = now_us
        seen["context"] = context or {}
        self._seen[kind] = seen
        if len(self._seen) > self._kinds_max:
            self._seen.popitem(last=False)

    def recent(self, limit: int, source: str | None, code: str | None) -> list[ErrorSeen]:
        """The kinds of errors, the latest first."""
        found: list[ErrorSeen] = []
        for (seen_source, seen_code, message), seen in reversed(self._seen.items()):
            if source in (None, seen_source) and code in (None, seen_code):
                found.append(
                    {
                        "source": seen_source,
                        "code": seen_code,
                        "message": message,
                        "context": seen["context"],
                        "count": seen["count"],
                        "first_at": to_iso(seen["first_us"]),
                        "last_at": to_iso(seen["last_us"]),
                    }
                )
                if len(found) == limit:
                    break
        return found
