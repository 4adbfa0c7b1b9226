"""How old a thing must be to go for good.

While an orchestrator runs it measures time by itself, and nothing that happens to the clock of the
machine changes that. At its start it has to believe that clock, and cannot know whether it is
right. So what cannot be brought back goes later by a margin, until it has run for that long: then
whatever was there at the start has that age by its own measure.
"""

from __future__ import annotations

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


class Ages:
    """Says before which moment a thing must lie to have an age."""

    def __init__(self, started_us: int, margin_hours: float) -> None:
        self._started_us = started_us
        self._margin_us = int(margin_hours * HOUR_US)

    def before_us(self, now_us: int, age_us: int = 0) -> int:
        """What lies before this is that old, also if the clock was wrong at the start by as much as
        the margin."""
        sure = now_us - self._started_us >= self._margin_us
        return now_us - age_us - (0 if sure else self._margin_us)
