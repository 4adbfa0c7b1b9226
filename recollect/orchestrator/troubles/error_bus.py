"""The error bus: what went wrong anywhere in the system, counted by kind, the latest kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from recollect.orchestrator.clock import to_iso
from recollect.protocol.records import ErrorFigures, ErrorSeen

COUNT_MAX = (1 << 63) - 1  # the largest number that everyone who reads it can hold
OWN = "orchestrator"
"""The source, and the identity, of what the orchestrator itself reports."""
TEXT_CHARS_MAX = 2_000


class Kind(NamedTuple):
    """What makes two errors the same. Who reported one cannot be made up, the rest can."""

    source: str
    code: str
    message: str
    identity: str


class Seen(msgspec.Struct, frozen=True):
    """How often and when a kind of error was seen, and what was around it the last time."""

    count: int
    first_us: int
    last_us: int
    context: dict[str, Any]

    def and_later(self, later: Seen) -> Seen:
        """Both together."""
        return Seen(
            min(COUNT_MAX, self.count + later.count),
            min(self.first_us, later.first_us),
            max(self.last_us, later.last_us),
            later.context,
        )


class ErrorBus:
    """A bounded set of kinds of errors. Touched by the event loop's thread alone."""

    def __init__(self, kinds_max: int) -> None:
        self._kinds_max = kinds_max
        # Both in the order in which a kind was last seen.
        self._seen: OrderedDict[Kind, Seen] = OrderedDict()
        self._unwritten: OrderedDict[Kind, Seen] = OrderedDict()

    def report(
        self,
        source: str,
        code: str,
        message: str,
        now_us: int,
        *,
        count: int = 1,
        context: dict[str, Any] | None = None,
        identity: str = OWN,
    ) -> None:
        """Count an error; the kind seen longest ago makes room."""
        kind = Kind(*map(_storable, (source, code, message, identity)))
        seen = Seen(count, now_us, now_us, context or {})
        self._add(self._seen, kind, seen)
        self._add(self._unwritten, kind, seen)

    def _add(self, into: OrderedDict[Kind, Seen], kind: Kind, seen: Seen) -> None:
        known = into.pop(kind, None)
        into[kind] = seen if known is None else known.and_later(seen)
        if len(into) > self._kinds_max:
            into.popitem(last=False)

    def learn(self, kept: Iterable[tuple[Kind, Seen]]) -> None:
        """Know what is kept, in the order in which it was last seen, and what is to be."""
        self._seen.clear()
        for kind, seen in kept:
            self._add(self._seen, kind, seen)
        for kind, seen in self._unwritten.items():
            self._add(self._seen, kind, seen)

    def take_unwritten(self) -> list[tuple[Kind, Seen]]:
        """What was reported since the last time, to be kept."""
        taken = list(self._unwritten.items())
        self._unwritten.clear()
        return taken

    def put_back(self, taken: Iterable[tuple[Kind, Seen]]) -> None:
        """What could not be kept, for the next time."""
        newer, self._unwritten = self._unwritten, OrderedDict()
        for kind, seen in (*taken, *newer.items()):
            self._add(self._unwritten, kind, seen)

    def totals(self) -> ErrorFigures:
        """How many kinds of errors are known, and how often they were seen together."""
        count = sum(seen.count for seen in self._seen.values())
        return {"kinds": len(self._seen), "count": min(COUNT_MAX, count)}

    def recent(self, limit: int, source: str | None, code: str | None) -> list[ErrorSeen]:
        """The kinds of errors, the latest first."""
        found: list[ErrorSeen] = []
        for kind, seen in reversed(self._seen.items()):
            if source in (None, kind.source) and code in (None, kind.code):
                found.append(
                    {
                        "source": kind.source,
                        "code": kind.code,
                        "message": kind.message,
                        "identity": kind.identity,
                        "context": seen.context,
                        "count": seen.count,
                        "first_at": to_iso(seen.first_us),
                        "last_at": to_iso(seen.last_us),
                    }
                )
                if len(found) == limit:
                    break
        return found


def _storable(text: str) -> str:
    """A text that every storage can hold."""
    short = text[:TEXT_CHARS_MAX].replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return short.encode(errors="replace").decode()
