"""Sessions, and what happened in one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from recollect.health.dashboard import parts, wording
from recollect.health.dashboard.frame import frame
from recollect.health.dashboard.visit import Visit
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError

SESSIONS_SHOWN = 50
EVENTS_SHOWN = 100
MEMORIES_SHOWN = 20


async def sessions(visit: Visit, request: Request) -> None:
    cursor = request.query_params.get("cursor") or None
    with frame(visit, "Sessions", "Conversations and runs of agents, the newest first."):
        found = await visit.source.ask(ops.ListSessions(limit=SESSIONS_SHOWN, cursor=cursor))
        with parts.card(None, "flush"):
            if isinstance(found, RecollectError):
                parts.trouble(found)
            elif not found["sessions"]:
                parts.empty(
                    "forum",
                    "No sessions yet",
                    "An agent begins one with create_session and tells what happens in it with "
                    "append_event.",
                    'client.create_session("alice")',
                )
            else:
                with parts.box("lines"):
                    for session in found["sessions"]:
                        _line(session)
        if not isinstance(found, RecollectError) and found["cursor"]:
            parts.link("Show more", f"/sessions?cursor={quote(found['cursor'], safe='')}")


def _line(session: Mapping[str, Any]) -> None:
    with parts.box("line", "a") as line:
        line.props["href"] = f"/sessions/{quote(session['id'], safe='')}"
        with parts.box("grow"):
            with parts.box("across wrap"):
                parts.text(session["user_id"], "strong clip", "span")
                parts.state_chip(session["session_status"])
            with parts.box("meta"):
                parts.text(session["session_type"], "clip", "span")
                parts.text(f"· app {session['app']}", "clip", "span")
                parts.text(f"· {wording.plural(session['events'], 'event')}", "num", "span")
        parts.when(session["updated_at"], "muted num small")


async def session(visit: Visit, request: Request) -> None:
    session_id = request.path_params["session_id"]
    of_session = visit.source.ask(ops.GetSession(session_id, events=EVENTS_SHOWN))
    belonging = ops.ListMemories(filters={"session_id": session_id}, limit=MEMORIES_SHOWN)
    of_memories = visit.source.ask(belonging)
    found, memories = await asyncio.gather(of_session, of_memories)
    if isinstance(found, RecollectError):
        with frame(visit, "Session"), parts.card():
            parts.trouble(found)
        return
    about = found["session"]
    with (
        frame(visit, f"Session of {about['user_id']}", f"{about['session_type']} · {session_id}"),
        parts.box("grid"),
    ):
        with parts.box("stack wide c8"):
            _timeline(found["events"], about["events"])
            _memories(memories)
        with parts.box("stack wide c4"):
            with parts.card("About it"):
                parts.facts(
                    {
                        "Status": lambda: parts.state_chip(about["session_status"]),
                        "User": about["user_id"],
                        "App": about["app"],
                        "Type": about["session_type"],
                        "Begun": lambda: parts.when(about["created_at"]),
                        "Changed": lambda: parts.when(about["updated_at"]),
                        "By": about["created_by"],
                        "Version": about["version"],
                    }
                )
                if about["metadata"]:
                    parts.code(wording.as_json(about["metadata"]))
            with parts.card("State"):
                if found["state"]:
                    parts.facts(
                        {key: wording.inline(value) for key, value in found["state"].items()}
                    )
                else:
                    parts.empty("data_object", "No state", "Agents keep it with set_state.")


def _timeline(events: list[Any], total: int) -> None:
    note = wording.plural(total, "event")
    if len(events) < total:
        note = f"the last {len(events)} of {note}"
    with parts.card("What happened", note=note):
        if not events:
            parts.empty("timeline", "Nothing yet", "Events are told with append_event.")
            return
        with parts.box("timeline"):
            for event in reversed(events):
                with parts.box("moment"), parts.box("stack"):
                    with parts.box("across wrap small muted"):
                        parts.text(f"#{event['position']}", "num", "span")
                        if event["author"]:
                            parts.text(event["author"], "strong soft clip", "span")
                        parts.when(event["at"])
                    _event(event["event"])


def _event(event: Any) -> None:
    if isinstance(event, str):
        parts.text(wording.cut(event), "any")
    elif isinstance(event, dict) and all(not isinstance(v, dict | list) for v in event.values()):
        parts.facts({str(key): wording.inline(value, 400) for key, value in event.items()})
    else:
        parts.code(wording.as_json(event))


def _memories(memories: Any) -> None:
    with parts.card("Memories of it", "flush"):
        if isinstance(memories, RecollectError):
            parts.trouble(memories)
        elif not memories["memories"]:
            parts.empty(
                "lightbulb_outline", "None", "set_session_id lets new memories belong here."
            )
        else:
            with parts.box("lines"):
                for memory in memories["memories"]:
                    parts.memory_line(memory, wording.age(memory["created_at"]))
