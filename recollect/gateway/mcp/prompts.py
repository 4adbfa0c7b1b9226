"""The prompt `context_for_task`: a task with what is known for it, to begin a conversation with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from recollect.client.encoding import Speaker
from recollect.gateway.mcp.calling import Ask
from recollect.gateway.mcp.resources import asked
from recollect.protocol.operations import AssembleContext, ListNamespaces

NAME: Final = "context_for_task"
TOKENS_MAX: Final = 1_000_000
COMPLETIONS_MAX: Final = 100
"""As many as MCP lets a completion have."""
NAMESPACES_READ_MAX: Final = 1000
NOTHING_KNOWN: Final = "Nothing is known that helps with it."

PROMPT: Final = types.Prompt(
    name=NAME,
    title="Context for a task",
    description="A task together with what is remembered for it, within a number of tokens.",
    arguments=[
        types.PromptArgument(name="task", description="What is to be done.", required=True),
        types.PromptArgument(
            name="max_tokens", description="How many tokens of context at most; 4000 if absent."
        ),
        types.PromptArgument(
            name="namespace", description="Only this namespace and those below it."
        ),
    ],
)


async def context_for_task(
    ask: Ask, speaker: Speaker, arguments: Mapping[str, str], namespace: str | None
) -> types.GetPromptResult:
    """The prompt with its context."""
    unknown = arguments.keys() - {argument.name for argument in PROMPT.arguments or ()}
    if unknown:
        raise MCPError(types.INVALID_PARAMS, f"{NAME} takes no {sorted(unknown)[0]!r}.")
    task = arguments.get("task", "").strip()
    if not task:
        raise MCPError(types.INVALID_PARAMS, f"{NAME} needs `task`: what is to be done.")
    operation = AssembleContext(
        task,
        _number(arguments.get("max_tokens") or "4000"),
        namespace=arguments.get("namespace") or namespace,
    )
    found = await asked(ask, operation, speaker)
    context = found["context"] or found.get("note") or NOTHING_KNOWN
    return types.GetPromptResult(
        description=f"Context for: {task[:200]}",
        messages=[
            types.PromptMessage(role="user", content=types.TextContent(text=context)),
            types.PromptMessage(role="user", content=types.TextContent(text=f"The task: {task}")),
        ],
    )


async def namespaces(ask: Ask, speaker: Speaker, beginning: str) -> types.Completion:
    """The namespaces that begin so."""
    found = await asked(ask, ListNamespaces(limit=NAMESPACES_READ_MAX), speaker)
    fitting = [
        entry["namespace"]
        for entry in found["namespaces"]
        if entry["namespace"].startswith(beginning)
    ]
    return types.Completion(
        values=fitting[:COMPLETIONS_MAX],
        has_more=len(fitting) > COMPLETIONS_MAX or found["cursor"] is not None,
    )


def _number(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= number <= TOKENS_MAX:
        raise MCPError(
            types.INVALID_PARAMS, f"max_tokens must be a number from 1 to {TOKENS_MAX:,}."
        )
    return number
