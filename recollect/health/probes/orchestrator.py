"""Is the orchestrator there, does it keep up, and does it have room?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recollect.config import Settings
from recollect.health.clients import Line
from recollect.health.figures import Sample
from recollect.health.keeping import Sizes
from recollect.health.probes.probe import Sight, said
from recollect.health.states import Finding
from recollect.protocol.errors import ConnectionLost, RecollectError, Unreachable
from recollect.protocol.operations import Metrics, Ping
from recollect.protocol.records import Metrics as MetricsRecord

MB = 1_000_000


class OrchestratorProbe:
    """Pings, then asks for the figures that the other probes read as well."""

    name = "orchestrator"
    through_orchestrator = False

    def __init__(
        self,
        line: Line,
        sight: Sight,
        sizes: Sizes,
        settings: Settings,
        now_s: Callable[[], float],
    ) -> None:
        self._line = line
        self._sight = sight
        self._sizes = sizes
        self._health = settings.health
        self._write_queue_max = settings.storage.write_queue_max
        self._now_s = now_s
        self.interval_s = self._health.probe_interval_s
        # Two questions, each with a time of its own.
        self.timeout_s = 2.5 * self._health.probe_timeout_s

    async def look(self) -> Finding:
        try:
            pong = await self._line.call(Ping(timeout=self._health.probe_timeout_s))
        except RecollectError as error:
            return self._unanswered(error)
        except BaseException:
            self._sight.answers = False
            raise
        self._sight.answers = True
        details: dict[str, Any] = {"version": pong["version"], "endpoint": self._line.endpoint}
        try:
            metrics = await self._line.call(Metrics(timeout=self._health.probe_timeout_s))
        except (ConnectionLost, Unreachable) as error:
            return self._unanswered(error)
        except RecollectError as error:
            reason = f"It answers a ping, but not what its figures are: {said(error)}"
            return Finding("degraded", (reason,), details)
        now_s = self._now_s()
        self._sight.sample = Sample(now_s, metrics)
        database_bytes = metrics["disk"]["database_bytes"]
        self._sizes.note(now_s, database_bytes)
        growth = self._sizes.growth(now_s, database_bytes)
        details = {**details, **_details(metrics), **growth}
        reasons = tuple(self._reasons(metrics, growth["growth_bytes"]))
        return Finding("degraded" if reasons else "healthy", reasons, details)

    def _unanswered(self, error: RecollectError) -> Finding:
        self._sight.answers = False
        return Finding("down", (said(error),), {}, looks=self._health.unanswered_max)

    def _reasons(self, metrics: MetricsRecord, growth_bytes: int) -> list[str]:
        limits, found = self._health, []
        writer, requests, disk = metrics["writer"], metrics["requests"], metrics["disk"]
        if writer["lag_s"] > limits.writer_lag_s_max:
            found.append(
                f"The oldest write waits for {writer['lag_s']:.1f} s "
                f"(health.writer_lag_s_max is {limits.writer_lag_s_max:g})."
            )
        if writer["queue_length"] > limits.queue_share_max * self._write_queue_max:
            found.append(
                f"{writer['queue_length']:,} writes wait, of at most {self._write_queue_max:,}."
            )
        if requests["in_flight"] > limits.queue_share_max * requests["in_flight_max"]:
            found.append(
                f"{requests['in_flight']:,} requests are under way, of at most "
                f"{requests['in_flight_max']:,}."
            )
        if disk["free_bytes"] < limits.disk_free_mb_min * MB:
            found.append(
                f"Only {disk['free_bytes'] // MB:,} MB of the disk are free "
                f"(health.disk_free_mb_min is {limits.disk_free_mb_min:,})."
            )
        if growth_bytes > limits.growth_mb_per_week_max * MB:
            found.append(
                f"The database grew by {growth_bytes // MB:,} MB within a week "
                f"(health.growth_mb_per_week_max is {limits.growth_mb_per_week_max:,})."
            )
        return found

    async def close(self) -> None:
        pass


def _details(metrics: MetricsRecord) -> dict[str, Any]:
    return {
        "uptime_s": metrics["uptime_s"],
        "seq": metrics["seq"],
        "memories": metrics["memories"]["total"],
        "in_flight": metrics["requests"]["in_flight"],
        "writes_waiting": metrics["writer"]["queue_length"],
        "writer_lag_s": metrics["writer"]["lag_s"],
        "disk_free_bytes": metrics["disk"]["free_bytes"],
        "database_bytes": metrics["disk"]["database_bytes"],
        "process": metrics["process"],
    }
