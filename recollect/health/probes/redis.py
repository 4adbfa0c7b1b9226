"""Does Redis answer the orchestrator, where there is one?"""

from __future__ import annotations

from recollect.health.probes.probe import NotWatched, Sight
from recollect.health.states import Finding


class RedisProbe:
    """Reads what the orchestrator says of it: only from there does it matter."""

    name = "redis"
    through_orchestrator = True

    def __init__(self, sight: Sight, interval_s: float) -> None:
        self._sight = sight
        self.interval_s = interval_s
        self.timeout_s = interval_s + 1.0

    async def look(self) -> Finding:
        sample = self._sight.sample
        redis = sample.metrics["redis"] if sample else {}
        state = redis.get("state", "off")
        if state == "off" and not redis.get("reason"):
            raise NotWatched
        if state == "ok":
            return Finding("healthy", (), redis)
        reason = redis.get("reason") or "Redis does not answer."
        # Without it everything goes on, more slowly: that is never `down`.
        return Finding("degraded", (reason,), redis)

    async def close(self) -> None:
        pass
