"""A chat model that words what was learned, if one is wanted.

It words the summary alone. What it says is believed as far as it can be checked; without an answer
that can be used, the plain words stay, and for that call it is not asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from recollect.config.sharing import ConsolidationSettings
from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.consolidation.chat import ChatModel, Invalid, aside
from recollect.orchestrator.learning.extraction import Reword
from recollect.orchestrator.learning.wording import Learned
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

SUMMARY_CHARS_MAX = 2_000
DRAINING_LOOK_S = 0.2
MARGIN_S = 1.0
"""Of a call's time, left for all that comes after."""


class ChatWording:
    """Asks the model that `consolidation.llm_url` names."""

    def __init__(
        self,
        wanted: bool,
        settings: ConsolidationSettings,
        clock: Clock,
        draining: Callable[[], bool],
    ) -> None:
        self._wanted = wanted and settings.llm_url is not None
        self._settings = settings
        self._clock = clock
        self._draining = draining

    def of_call(self) -> Reword | None:
        """How the lessons of one call are worded; None if as they are."""
        if not self._wanted:
            return None
        given_up = False

        async def reword(call: Call, learned: Learned) -> Learned:
            nonlocal given_up
            if given_up:
                return learned
            said = await self._asked(call, learned)
            given_up = said is None
            return learned if said is None else msgspec.structs.replace(learned, summary=said)

        return reword

    async def _asked(self, call: Call, learned: Learned) -> str | None:
        asking = aside(lambda: self._ask(learned))
        until_us = call.deadline_us - int(MARGIN_S * 1_000_000)
        while not asking.done():
            if self._draining() or self._clock.now_us() >= until_us:
                return None
            await asyncio.wait([asking], timeout=DRAINING_LOOK_S)
        try:
            return asking.result()
        except (Invalid, RecollectError) as error:
            log.warning("A lesson keeps its plain words.", action="wording", reason=str(error))
            return None

    def _ask(self, learned: Learned) -> str | None:
        model = ChatModel.of(self._settings)
        try:
            return model.word([learned.summary, *learned.recommended_context], SUMMARY_CHARS_MAX)
        finally:
            model.close()
