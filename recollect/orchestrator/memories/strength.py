"""How memories fade: strength is computed, never stored.

`strength = exp(-(now - last_access) / stability)`. Stability starts from the tier's half-life and
the importance, and grows with every reinforcement and access. The moment at which the strength
crosses the threshold follows from both; it is the one indexed column that decay needs.
"""

from __future__ import annotations

import math

from recollect.config.settings import DecaySettings
from recollect.orchestrator.memories.rows import MemoryRow

DAY_S = 86_400
GROWTH_MAX = 1e15
"""Whatever grows by so much is at its bound: less than a second is no stability."""
MOMENT_US_MAX = 253_402_300_799_000_000  # the year 9999, the last that ISO 8601 text can show


class Fading:
    """The rules of decay under given settings."""

    def __init__(self, settings: DecaySettings) -> None:
        self._base_stability_s = {
            "short": settings.half_life_days_short * DAY_S / math.log(2),
            "medium": settings.half_life_days_medium * DAY_S / math.log(2),
            "long": settings.half_life_days_long * DAY_S / math.log(2),
        }
        self._importance_gain = settings.importance_gain
        self._access_gain = settings.access_gain
        gain = math.log(settings.access_gain)
        self._accesses_max = math.log(GROWTH_MAX) / gain if gain else math.inf
        self._stability_s_max = settings.stability_days_max * DAY_S
        self._lifetimes_us = math.log(1 / settings.fade_threshold) * 1_000_000

    def initial_stability_s(self, tier: str, importance: float) -> float:
        """The stability of a new memory."""
        gain = 1 + self._importance_gain * importance
        return self.bounded(self._base_stability_s[tier] * gain)

    def bounded(self, stability_s: float) -> float:
        """A stability within what is sensible: from a second to the configured maximum."""
        return max(1.0, min(self._stability_s_max, stability_s))

    def fades_us(self, last_access_us: int, stability_s: float) -> int:
        """When the strength will cross the threshold."""
        moment_us = last_access_us + int(stability_s * self._lifetimes_us)
        return moment_us if moment_us < MOMENT_US_MAX else MOMENT_US_MAX

    def reinforce(self, row: MemoryRow, factor: float, now_us: int) -> None:
        """Use a memory once, with effect on its stability."""
        row.stability_s = self.bounded(row.stability_s * factor)
        row.access_count += 1
        row.last_access_us = max(row.last_access_us, now_us)
        row.fades_us = self.fades_us(row.last_access_us, row.stability_s)

    def access(self, row: MemoryRow, now_us: int) -> None:
        """Take one tracked read into account."""
        # As `grown` and `fades_us` say it, without the calls: a search does this for all it shows.
        stability_s = row.stability_s * self._access_gain
        if not 1.0 <= stability_s <= self._stability_s_max:
            stability_s = self.bounded(stability_s)
        row.stability_s = stability_s
        row.access_count += 1
        if now_us > row.last_access_us:
            row.last_access_us = now_us
        fades_us = row.last_access_us + int(stability_s * self._lifetimes_us)
        row.fades_us = fades_us if fades_us < MOMENT_US_MAX else MOMENT_US_MAX

    def grown(self, stability_s: float, accesses: int) -> float:
        """The stability after some tracked reads."""
        if accesses >= self._accesses_max:
            return self._stability_s_max
        return self.bounded(stability_s * self._access_gain**accesses)
