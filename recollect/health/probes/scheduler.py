"""Does the scheduler live, and do its jobs run when they should?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from recollect.health.clients import Line
from recollect.health.probes.probe import NotWatched
from recollect.health.states import Finding
from recollect.protocol.errors import UnknownOperation
from recollect.protocol.operations import ListJobs
from recollect.protocol.records import JobRecord, JobsListed

FAILED = ("failed", "timed_out", "lost")


class SchedulerProbe:
    """Reads what the scheduler leaves with the orchestrator: its heartbeat and its runs."""

    name = "scheduler"
    through_orchestrator = True

    def __init__(
        self,
        line: Line,
        *,
        interval_s: float,
        timeout_s: float,
        late_s_max: float,
        now_s: Callable[[], float],
    ) -> None:
        self._line = line
        self._late_s_max = late_s_max
        self._now_s = now_s
        self.interval_s = interval_s
        self.timeout_s = timeout_s
        self.listed: JobsListed | None = None
        """What `list_jobs` said last."""

    async def look(self) -> Finding:
        try:
            listed = await self._line.call(ListJobs(timeout=self.timeout_s))
        except UnknownOperation:
            raise NotWatched from None  # It is an older orchestrator.
        self.listed = listed
        scheduler, jobs = listed["scheduler"], listed["jobs"]
        if not jobs and not scheduler["holder"]:
            raise NotWatched  # There never was one.
        late = [job["name"] for job in jobs if self._is_late(job)]
        failed = [job["name"] for job in jobs if job["enabled"] and _outcome(job) in FAILED]
        details = {"scheduler": scheduler, "jobs": len(jobs), "late": late, "failed": failed}
        if not scheduler["alive"]:
            last = scheduler["renewed_at"]
            seen = f"; the last sign of life was at {last}" if last else ""
            return Finding("down", (f"No scheduler does its jobs{seen}.",), details)
        reasons = []
        if late:
            reasons.append(f"Jobs are late: {', '.join(late)}.")
        if failed:
            reasons.append(f"The last run failed of: {', '.join(failed)}.")
        return Finding("degraded" if reasons else "healthy", tuple(reasons), details)

    def _is_late(self, job: JobRecord) -> bool:
        if not job["enabled"] or job["next_at"] is None or _outcome(job) == "running":
            return False
        due_s = datetime.fromisoformat(job["next_at"]).timestamp()
        return self._now_s() - due_s > self._late_s_max

    async def close(self) -> None:
        pass


def _outcome(job: JobRecord) -> str | None:
    last = job["last"]
    return None if last is None else last["run_status"]
