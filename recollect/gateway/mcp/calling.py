"""Carries out a tool: from arguments to an answer that fits."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar

import mcp_types as types
import msgspec
import structlog

from recollect.client.encoding import Speaker
from recollect.gateway.mcp.answers import for_model
from recollect.gateway.mcp.fitting import Fitted, fit, told
from recollect.gateway.mcp.tools import OfferedTool
from recollect.protocol.errors import InternalError, RecollectError
from recollect.protocol.operation import Operation

R = TypeVar("R")

log = structlog.get_logger()

NARROWER = "For the rest ask narrower, or for fewer at a time."
BY_CURSOR = "For the rest call again with the same arguments and this cursor."
# Of the tokens of an answer, those that a text in it may have: the rest is for escapes and fields.
TEXT_SHARE = 0.8
# What a cursor may take.
CURSOR_TOKENS = 80


class Ask(Protocol):
    """Carries out an operation for somebody; raises its error."""

    async def __call__(self, operation: Operation[R], speaker: Speaker, /) -> R: ...


class Told(NamedTuple):
    """What is told of a call: an answer, or an error in its place."""

    fitted: Fitted
    is_error: bool


class Calling:
    """Carries out tools within a number of tokens each."""

    def __init__(self, ask: Ask, tokens_max: int) -> None:
        self._ask = ask
        self._tokens_max = tokens_max

    async def call(
        self, tool: OfferedTool, arguments: dict[str, Any], speaker: Speaker
    ) -> types.CallToolResult:
        """The result of a tool, as the SDK takes it."""
        told = await self.told(tool, arguments, speaker)
        return types.CallToolResult(
            content=[types.TextContent(text=told.fitted.text)],
            structured_content=told.fitted.answer,
            is_error=told.is_error,
        )

    async def told(self, tool: OfferedTool, arguments: dict[str, Any], speaker: Speaker) -> Told:
        """What a tool comes to. An error is a result too, so that the model can see it and act."""
        try:
            operation = self._bounded(tool, tool.made_of(arguments))
            return Told(await self._answer(tool, operation, speaker), is_error=False)
        except RecollectError as error:
            return self._failed(error)
        except Exception:
            log.exception("A tool failed.", action="tool_failed", tool=tool.name)
            return self._failed(InternalError("The gateway failed; its log has the details."))

    def _bounded(self, tool: OfferedTool, operation: Operation[Any]) -> Operation[Any]:
        """The operation, asked for no more tokens than fit."""
        if not tool.takes_tokens:
            return operation
        room = int(self._tokens_max * TEXT_SHARE)
        wanted: int = operation.max_tokens  # type: ignore[attr-defined]
        if not isinstance(wanted, int) or wanted <= room:
            return operation
        return msgspec.structs.replace(operation, max_tokens=room)

    async def _answer(
        self, tool: OfferedTool, operation: Operation[Any], speaker: Speaker
    ) -> Fitted:
        spec = operation.spec
        answer = for_model(await self._ask(operation, speaker), spec)
        fitted = fit(answer, self._tokens_max, NARROWER)
        list_name = fitted.list_name
        size = None if list_name is None else tool.size_field(list_name)
        if list_name is None or size is None:
            return fitted
        # Asked anew for as many as fit, the cursor leads on right behind them.
        room = self._tokens_max - min(CURSOR_TOKENS, self._tokens_max // 4)
        shown = max(1, fit(answer, room, NARROWER).shown)
        fewer = msgspec.structs.replace(operation, **{size: shown})
        again = for_model(await self._ask(fewer, speaker), spec)
        advice = BY_CURSOR if "cursor" in again else NARROWER
        again["cut"] = told(shown, len(answer[list_name]), list_name, advice)
        return fit(again, self._tokens_max, NARROWER)

    def _failed(self, error: RecollectError) -> Told:
        """What a tool that failed comes to: the error as everywhere."""
        return Told(fit({**error.reply()}, self._tokens_max, NARROWER), is_error=True)
