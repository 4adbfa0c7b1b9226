"""Memories and sessions as resources: whole, however long, for whoever asks for one by name."""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from recollect.client.encoding import Speaker
from recollect.gateway.mcp.answers import for_model
from recollect.gateway.mcp.calling import Ask
from recollect.gateway.mcp.fitting import written
from recollect.protocol.errors import NotFound, RecollectError
from recollect.protocol.operation import Operation
from recollect.protocol.operations import GetMemory, GetSession, ListMemories, ListSessions

MEMORY, SESSION = "memory://", "session://"
JSON: Final = "application/json"
LATEST: Final = 10
"""How many memories and sessions are listed; the rest is found by tools."""
EVENTS: Final = 200
"""How many events a session is shown with."""
NAME_CHARS: Final = 60
NOT_FOUND: Final = -32002
"""The code that MCP gives to a resource that is not there."""

TEMPLATES: Final = [
    types.ResourceTemplate(
        uri_template=MEMORY + "{memory_id}",
        name="memory",
        title="Memory",
        description="One memory, whole: its text, where it comes from and how far it is trusted.",
        mime_type=JSON,
    ),
    types.ResourceTemplate(
        uri_template=SESSION + "{session_id}",
        name="session",
        title="Session",
        description=f"One session with its state and its last {EVENTS} events.",
        mime_type=JSON,
    ),
]


async def latest(ask: Ask, speaker: Speaker, namespace: str | None) -> list[types.Resource]:
    """The newest memories and sessions that the speaker may see."""
    memories = await asked(ask, ListMemories(limit=LATEST, namespace=namespace), speaker)
    sessions = await asked(ask, ListSessions(limit=LATEST), speaker)
    return [
        *(
            types.Resource(
                uri=MEMORY + found["id"],
                name=_name_of(found["content"]),
                description=f"{found['memory_type']} in {found['namespace']}",
                mime_type=JSON,
                annotations=types.Annotations(last_modified=found["updated_at"]),
            )
            for found in memories["memories"]
        ),
        *(
            types.Resource(
                uri=SESSION + found["id"],
                name=f"Session of {found['user_id']}, {found['created_at'][:16]}",
                description=f"{found['session_type']}, {found['session_status']}",
                mime_type=JSON,
                annotations=types.Annotations(last_modified=found["updated_at"]),
            )
            for found in sessions["sessions"]
        ),
    ]


async def read(ask: Ask, speaker: Speaker, uri: str) -> types.ReadResourceResult:
    """A memory or a session by its address."""
    operation: Operation[Any]
    if uri.startswith(MEMORY) and len(uri) > len(MEMORY):
        operation = GetMemory(uri.removeprefix(MEMORY))
    elif uri.startswith(SESSION) and len(uri) > len(SESSION):
        operation = GetSession(uri.removeprefix(SESSION), events=EVENTS)
    else:
        raise MCPError(
            NOT_FOUND, f"There is no resource {uri[:256]!r}: ask for memory://ID or session://ID."
        )
    answer = for_model(await asked(ask, operation, speaker), operation.spec)
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type=JSON, text=written(answer))]
    )


async def asked(ask: Ask, operation: Operation[Any], speaker: Speaker) -> Any:
    """The answer to an operation, where an error has no result to stand in."""
    try:
        return await ask(operation, speaker)
    except RecollectError as error:
        code = NOT_FOUND if isinstance(error, NotFound) else types.INTERNAL_ERROR
        raise MCPError(code, error.message, {**error.body()}) from error


def _name_of(content: str) -> str:
    line = " ".join(content[: 4 * NAME_CHARS].split())
    return line if len(line) <= NAME_CHARS else f"{line[: NAME_CHARS - 1]}…"
