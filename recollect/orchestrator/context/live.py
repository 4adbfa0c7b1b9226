"""How things stand right now, in pieces for a context.

What one author noted in one namespace is one piece of each kind. A critical event is a memory, and
is given as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.context.fencing import Quotation, minute, quotation
from recollect.orchestrator.context.neutral import neutral
from recollect.orchestrator.memories.rows import encode_json
from recollect.orchestrator.operational.state import OperationalState
from recollect.protocol.operations.context import ContextTier
from recollect.protocol.records import EventRecord

TIER: ContextTier = "operational"
EVENTS, METRICS, TASKS = 20, 50, 20
"""How many of each are looked at, the latest."""
CRITICAL_MAX = 3
CRITICAL_US = 86_400 * 1_000_000
"""So many critical events come first, of the last day."""
LINE_CHARS_MAX = 400
LINES_MAX = 20
"""In one piece."""


class LivePiece(msgspec.Struct, frozen=True):
    """A part of how things stood; kept in the receipt as it was given."""

    kind: str
    """active_tasks, metrics or events."""
    namespace: str
    author: str
    at: str
    text: str

    @property
    def quotation(self) -> Quotation:
        """It as it is quoted."""
        return quotation(self.text, source=self.kind, author=self.author, time=minute(self.at))


def live_pieces(state: OperationalState, task_id: str | None) -> list[LivePiece]:
    """How things stand, what concerns the task at hand first."""
    tasks = sorted(state.active_tasks, key=lambda task: task["task_id"] != task_id)
    events = [event for event in state.events if not event["critical"]]
    return [
        *_pieces("active_tasks", tasks, lambda t: f"{t['task_id']}: {_json(t['state'])}"),
        *_pieces("metrics", state.metrics, lambda m: f"{m['key']}: {_json(m['value'])}"),
        *_pieces("events", events, _event_line),
    ]


def _event_line(event: EventRecord) -> str:
    line = f"{minute(event['at'])} {event['category']}"
    return line if event["data"] is None else f"{line}: {_json(event['data'])}"


def critical_ids(state: OperationalState, now_us: int) -> list[str]:
    """The ids of the last critical events, which are those of their memories."""
    since = to_iso(now_us - CRITICAL_US)
    recent = [event for event in state.events if event["critical"] and event["at"] >= since]
    return [event["id"] for event in recent[:CRITICAL_MAX]]


def _pieces(kind: str, noted: Iterable[Any], line: Any) -> list[LivePiece]:
    """What was noted, by whom and where; in each piece the first lines."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for record in noted:
        groups.setdefault((record["namespace"], record["author"]), []).append(record)
    return [
        LivePiece(
            kind=kind,
            namespace=namespace,
            author=author,
            at=max(record["at"] for record in records),
            text="\n".join(_short(line(record)) for record in records[:LINES_MAX]),
        )
        for (namespace, author), records in groups.items()
    ]


def _json(value: Any) -> str:
    return value if isinstance(value, str) else encode_json(value).decode()


def _short(line: str) -> str:
    # By itself, so that nothing in one line reaches into another.
    line = " ".join(neutral(line).split())
    return line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}…"
