"""Which status a session can have after which, and what it takes in each."""

from __future__ import annotations

from recollect.protocol.errors import TransitionRefused

LEADS_TO: dict[str, tuple[str, ...]] = {
    "created": ("active", "terminated"),
    "active": ("paused", "terminated"),
    "paused": ("active", "terminated"),
    "terminated": ("archived",),
    "archived": (),
}
OPEN = ("created", "active", "paused")
"""Not yet ended: only such a session has state that changes."""
TAKES_EVENTS = ("created", "active")


def check_transition(session_id: str, before: str, after: str) -> None:
    """Refuse a step that no session takes."""
    possible = LEADS_TO[before]
    if after in possible:
        return
    choices = f"it can only become {' or '.join(possible)}" if possible else "that is its last one"
    raise TransitionRefused(
        f"Session {session_id} is {before} and cannot become {after}: {choices}.",
        session_id=session_id,
        session_status=before,
        possible=list(possible),
    )


def check_takes_events(session_id: str, status: str) -> None:
    """Refuse an event while a session is paused, and once it has ended."""
    if status in TAKES_EVENTS:
        return
    advice = (
        "make it active again with update_status"
        if "active" in LEADS_TO[status]
        else "begin a new session"
    )
    raise _refused(session_id, status, f"takes no events: {advice}")


def check_open(session_id: str, status: str) -> None:
    """Refuse a change of state once a session has ended."""
    if status not in OPEN:
        raise _refused(session_id, status, "its state can only be read: begin a new session")


def _refused(session_id: str, status: str, why: str) -> TransitionRefused:
    return TransitionRefused(
        f"Session {session_id} is {status} and {why}.",
        session_id=session_id,
        session_status=status,
        possible=list(LEADS_TO[status]),
    )
