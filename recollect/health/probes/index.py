"""Does the vector index hold what the database holds? If not, it is repaired and told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recollect.health.clients import Line
from recollect.health.probes.probe import NotWatched, Sight
from recollect.health.states import Finding
from recollect.protocol.errors import RequestTimeout, UnknownOperation
from recollect.protocol.operations import CheckIndex

ANSWER_SLACK_S = 1.0


class EmbeddingProbe:
    """How far the index and the embedder are behind, from the orchestrator's figures."""

    name = "embedding"
    through_orchestrator = True

    def __init__(self, sight: Sight, *, interval_s: float, lag_s_max: float) -> None:
        self._sight = sight
        self._lag_s_max = lag_s_max
        self.interval_s = interval_s
        self.timeout_s = interval_s + 1.0

    async def look(self) -> Finding:
        if self._sight.sample is None:
            raise NotWatched
        metrics = self._sight.sample.metrics
        embedding, index = metrics["embedding"], metrics["index"]
        waiting, lag_s = embedding["waiting"], embedding["lag_s"]
        details = {
            "model": index["model"],
            "waiting": waiting,
            "lag_s": lag_s,
            "vectors": index["vectors"],
            "index_lag": index["lag"],
            "available": embedding.get("available", True),
        }
        reasons = []
        if waiting and lag_s > self._lag_s_max:
            reasons.append(
                f"{waiting:,} memories wait for their vector, the first for {lag_s:.0f} s."
            )
        if not embedding.get("available", True):
            reasons.append(f"The embedder cannot be had: {embedding.get('last_error')}")
        return Finding("degraded" if reasons else "healthy", tuple(reasons), details)

    async def close(self) -> None:
        pass


class IndexProbe:
    """Compares index and database, now and then, and has what differs repaired."""

    name = "index"
    through_orchestrator = True

    def __init__(
        self,
        line: Line,
        *,
        interval_s: float,
        timeout_s: float,
        repaired: Callable[[dict[str, Any]], None],
    ) -> None:
        """`repaired` is told of a repair, which is no change of state and yet worth an alert."""
        self._line = line
        self._repaired = repaired
        self._wait_s = timeout_s
        self.interval_s = interval_s
        self.timeout_s = timeout_s + ANSWER_SLACK_S

    async def look(self) -> Finding:
        try:
            found = await self._line.call(CheckIndex(repair=True, timeout=self._wait_s))
        except UnknownOperation:
            raise NotWatched from None  # It is an older orchestrator.
        except RequestTimeout:
            return Finding("degraded", (f"It was not compared within {self._wait_s:g} s.",))
        details = {key: value for key, value in found.items() if key != "status"}
        wrong = found["missing"] + found["surplus"]
        if found["repaired"]:
            self._repaired(details)
        if not found["agrees"]:
            reason = f"{wrong - found['repaired']:,} vectors are not as in the database."
            # Compared so seldom, it is not waited for the next time.
            return Finding("degraded", (reason,), details, looks=1)
        return Finding("healthy", (), details, looks=1)

    async def close(self) -> None:
        pass
