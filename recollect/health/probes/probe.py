"""What a probe is: a look at one component."""

from __future__ import annotations

from typing import Protocol

from recollect.health.figures import Sample
from recollect.health.states import Finding
from recollect.protocol.errors import RecollectError


class NotWatched(Exception):
    """There is nothing to look at: the component is not part of this system."""


class Sight:
    """What the last look at the orchestrator saw; the other probes read it."""

    def __init__(self) -> None:
        self.sample: Sample | None = None
        self.answers = False
        """Whether the orchestrator answered the last time it was asked."""


class Probe(Protocol):
    """Looks at one component."""

    name: str
    interval_s: float
    timeout_s: float
    """A look that takes longer has failed."""
    through_orchestrator: bool
    """Whether it sees nothing while the orchestrator does not answer."""

    async def look(self) -> Finding:
        """What there is to say. Raises NotWatched, or a RecollectError for what failed."""
        ...

    async def close(self) -> None:
        """Leave nothing behind."""
        ...


def said(error: RecollectError) -> str:
    """An error as a reason."""
    return f"{error.message} ({error.code})"
