"""The vector of a question, or why there is none.

An endpoint that hangs is worse than one that is away: whoever waits for it is answered by nobody,
and holds a place among the requests in flight. So the embedder has a bounded time for a question,
and never more than half of what is left until the answer must be there.
"""

from __future__ import annotations

from typing import NamedTuple

from recollect.orchestrator.clock import Clock
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.protocol.errors import EmbedderUnavailable, Overloaded


class Heard(NamedTuple):
    """What the embedder made of a question."""

    vector: Vectors | None
    lacking: str | None
    """Why there is no vector."""


class Questions:
    """Asks embedders for the vectors of questions."""

    def __init__(self, clock: Clock, wait_s_max: float) -> None:
        self._clock = clock
        self._wait_s_max = wait_s_max

    async def vector(self, meaning: Meaning, text: str, deadline_us: int) -> Vectors:
        """The vector of a text that is asked; `EmbedderUnavailable` if it is not there in time."""
        left_s = (deadline_us - self._clock.now_us()) / 2_000_000
        return await meaning.embedding.query(text, max(0.0, min(self._wait_s_max, left_s)))

    async def heard(self, meaning: Meaning, text: str, deadline_us: int) -> Heard:
        """The same for those who have an answer without a vector too."""
        try:
            return Heard(await self.vector(meaning, text, deadline_us), None)
        except (EmbedderUnavailable, Overloaded) as error:
            return Heard(None, error.message)


def found_by_words(lacking: str | None) -> str | None:
    """What an answer says that was found without a vector."""
    return None if lacking is None else f"Found by words alone: {lacking}"
