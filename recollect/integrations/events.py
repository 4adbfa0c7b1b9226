"""Events of a framework as events of Recollect's sessions, each exactly as it was.

An event is kept as the JSON that it is, so that others can read it. JSON that Recollect refuses,
with NUL characters or nested too deep, is kept as one text.
"""

from __future__ import annotations

import json
from typing import Any

from recollect.integrations.steps import Steps
from recollect.protocol.errors import LimitExceeded
from recollect.protocol.operations import ListEvents
from recollect.protocol.records import SessionEvent

AS_TEXT = "recollect:json"
DEPTH_MAX = 12
"""Less than `limits.depth_max`, for an event stands within something."""
PAGE_EVENTS = 100
PAGES_MAX = 10_000


def packed(value: Any) -> Any:
    """A JSON value as it can be kept."""
    text = json.dumps(value, allow_nan=False)
    if "\\u0000" in text or AS_TEXT in text or _deeper_than(value, DEPTH_MAX):
        return {AS_TEXT: text}
    return value


def unpacked(kept: Any) -> Any:
    """The JSON value that was kept."""
    if isinstance(kept, dict) and AS_TEXT in kept:
        return json.loads(kept[AS_TEXT])
    return kept


def all_events(session_id: str, before: int | None = None) -> Steps[list[SessionEvent]]:
    """The events of a session from its beginning, up to a position if one is given."""
    events: list[SessionEvent] = []
    for _ in range(PAGES_MAX):
        after = events[-1]["position"] if events else 0
        page = yield ListEvents(session_id, PAGE_EVENTS, after)
        events += [
            event for event in page["events"] if before is None or event["position"] < before
        ]
        if page["cursor"] is None or (before is not None and after + PAGE_EVENTS >= before - 1):
            return events
    raise LimitExceeded(
        f"The session has more than {PAGES_MAX * PAGE_EVENTS:,} events; ask for the last of them.",
        limit="PAGES_MAX",
        maximum=PAGES_MAX * PAGE_EVENTS,
    )


def _deeper_than(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        return levels == 0 or any(_deeper_than(item, levels - 1) for item in value.values())
    if isinstance(value, list):
        return levels == 0 or any(_deeper_than(item, levels - 1) for item in value)
    return False
