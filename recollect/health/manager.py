"""The health manager: runs the probes, keeps how everything stands, and says when that changes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import msgspec
import structlog

from recollect._version import VERSION
from recollect.health.alerts import Alerts
from recollect.health.figures import Figures, Sample, figures_of
from recollect.health.keeping import History
from recollect.health.moments import iso
from recollect.health.probes.probe import NotWatched, Probe, Sight, said
from recollect.health.states import (
    Finding,
    Rules,
    Standing,
    State,
    Transition,
    advance,
    overall,
    unknown,
    worst,
)
from recollect.protocol.errors import RecollectError, TransportError
from recollect.protocol.records import JobRecord

log = structlog.get_logger()

ORCHESTRATOR = "orchestrator"
VITAL = frozenset({ORCHESTRATOR, "canary"})
"""Without these there is no memory; without anything else there is less of it."""
SAMPLES_MAX = 300
WINDOW_S = 30.0
HISTORY_SHOWN = 50
CLOSE_S_MAX = 3.0


class ComponentReport(TypedDict):
    name: str
    state: State
    since: str
    reasons: list[str]
    details: dict[str, Any]


class ChangeReport(TypedDict):
    at: str
    component: str
    before: State | None
    after: State
    reasons: list[str]


class StatusReport(TypedDict):
    """How everything stands, for programs and for people."""

    state: State
    since: str
    at: str
    version: str
    endpoint: str
    components: list[ComponentReport]
    figures: Figures | None
    history: list[ChangeReport]


class HealthManager:
    """Watches. Lives on the event loop; what it tells is at hand and never waits."""

    def __init__(
        self,
        probes: Sequence[Probe],
        sight: Sight,
        alerts: Alerts,
        history: History,
        rules: Rules,
        *,
        endpoint: Callable[[], str],
        jobs: Callable[[], Sequence[JobRecord]] = tuple,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._probes = probes
        self._sight = sight
        self._alerts = alerts
        self._history = history
        self._rules = rules
        self._endpoint = endpoint
        self.jobs = jobs
        """The jobs of the scheduler, as they were seen last."""
        self._now_s = now_s
        self.samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)
        """The orchestrator's figures of the last looks, the newest last."""
        self._standings: dict[str, Standing] = {ORCHESTRATOR: unknown(now_s())}
        self._orders = {probe.name: place for place, probe in enumerate(probes)}
        self._take_up()
        self._state: State = overall(self._standings, VITAL)
        self._since_s = now_s()
        self._tasks: list[asyncio.Task[None]] = []
        self.looked = asyncio.Event()
        """Set once the orchestrator was looked at: what is told is seen, not assumed."""

    def _take_up(self) -> None:
        """Go on from how things stood when the process before this one ended."""
        watched = {probe.name for probe in self._probes}
        for name, last in self._history.last_of().items():
            if name in watched:
                self._standings[name] = Standing(last.after, last.at_s, last.reasons)

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._watch(probe)) for probe in self._probes]

    async def stop(self) -> None:
        """End the looks, and let the probes clear up, for a bounded time."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for probe in self._probes:
            try:
                async with asyncio.timeout(CLOSE_S_MAX):
                    await probe.close()
            except (RecollectError, TimeoutError) as error:
                # With an orchestrator that does not answer; the next start clears it up.
                log.warning("A probe left something.", action="stop", reason=str(error))

    @property
    def metrics(self) -> Sample | None:
        """The orchestrator's figures as they were seen last; none while it is down, when they
        would only look as if it were not."""
        if not self.samples or self._standings[ORCHESTRATOR].state == "down":
            return None
        return self.samples[-1]

    @property
    def state(self) -> State:
        """How the whole stands."""
        return self._state

    def reasons(self) -> list[str]:
        """Why the whole is not healthy."""
        return [
            f"{report['name']}: {reason}"
            for report in self._components()
            if report["state"] != "healthy"
            for reason in report["reasons"]
        ]

    def status(self) -> StatusReport:
        """How everything stands."""
        return {
            "state": self._state,
            "since": iso(self._since_s),
            "at": iso(self._now_s()),
            "version": VERSION,
            "endpoint": self._endpoint(),
            "components": self._components(),
            "figures": self.figures(),
            "history": [_change(entry) for entry in self._history.latest(HISTORY_SHOWN)],
        }

    def figures(self, window_s: float = WINDOW_S) -> Figures | None:
        """Rates over the last seconds, and what else is worth knowing at a glance."""
        latest = self.metrics
        if latest is None:
            return None
        earlier = [s for s in self.samples if latest.at_s - window_s <= s.at_s < latest.at_s]
        return figures_of(earlier[0] if earlier else None, latest)

    def _components(self) -> list[ComponentReport]:
        orchestrator = self._standings[ORCHESTRATOR]
        unseen = {
            probe.name
            for probe in self._probes
            if probe.through_orchestrator and orchestrator.state == "down"
        }
        return [
            _report(name, standing, orchestrator.since_s if name in unseen else None)
            for name, standing in sorted(
                self._standings.items(), key=lambda entry: self._orders.get(entry[0], 99)
            )
            if standing.known or name == ORCHESTRATOR
        ]

    async def _watch(self, probe: Probe) -> None:
        while True:
            began_s = time.monotonic()
            if not probe.through_orchestrator or self._sight.answers:
                await self._look(probe)
                pause_s = probe.interval_s - (time.monotonic() - began_s)
            else:
                # As soon as it answers again, whatever the interval.
                pause_s = min(probe.interval_s, self._probes[0].interval_s)
            await asyncio.sleep(max(0.0, pause_s, probe.interval_s / 10))

    async def _look(self, probe: Probe) -> None:
        try:
            async with asyncio.timeout(probe.timeout_s):
                finding = await probe.look()
        except NotWatched:
            self._standings.pop(probe.name, None)
            self._settle()
            return
        except (TransportError, TimeoutError) as error:
            if probe.through_orchestrator:
                return  # The line is what failed, and the orchestrator's own probe tells of that.
            reason = said(error) if isinstance(error, RecollectError) else "It took too long."
            finding = Finding("down", (reason,))
        except RecollectError as error:
            finding = Finding("degraded", (said(error),))
        except Exception as error:  # a defect of a probe must not end the watching
            log.exception("A probe failed by a defect.", action="probe", probe=probe.name)
            finding = Finding("degraded", (f"The probe failed by a defect: {error!r}",))
        if probe.through_orchestrator and not self._sight.answers:
            return  # It has gone meanwhile; what was seen through it says nothing.
        self.take(probe.name, finding)

    def take(self, name: str, finding: Finding) -> None:
        """Take in what a look found."""
        at_s = self._now_s()
        sample = self._sight.sample
        latest = self.samples[-1] if self.samples else None
        if name == ORCHESTRATOR and sample is not None and sample is not latest:
            self.samples.append(sample)
        standing = self._standings.get(name) or unknown(at_s)
        moved, transition = advance(name, standing, finding, at_s, self._rules)
        self._standings[name] = moved
        self._settle()
        if name == ORCHESTRATOR:
            self.looked.set()
        if transition is not None:
            self._history.add(transition)
            self._alerts.changed(transition, self._state)

    def _settle(self) -> None:
        """See how the whole stands now. What was never seen well counts once it is known."""
        known = {
            name: standing
            for name, standing in self._standings.items()
            if standing.known or name == ORCHESTRATOR
        }
        state = overall(known, VITAL)
        if state != self._state:
            self._state, self._since_s = state, self._now_s()


def _report(name: str, standing: Standing, unseen_since_s: float | None) -> ComponentReport:
    details = dict(standing.details)
    if standing.seen_s is not None:
        details["seen_at"] = iso(standing.seen_s)
    report: ComponentReport = {
        "name": name,
        "state": standing.state,
        "since": iso(standing.since_s),
        "reasons": list(standing.reasons),
        "details": details,
    }
    if unseen_since_s is not None:
        report["state"] = worst(("degraded", standing.state))
        report["since"] = iso(unseen_since_s)
        report["reasons"] = ["It is not seen while the orchestrator does not answer."]
    return report


def _change(transition: Transition) -> ChangeReport:
    change: ChangeReport = msgspec.to_builtins(
        {
            "at": iso(transition.at_s),
            "component": transition.component,
            "before": transition.before,
            "after": transition.after,
            "reasons": transition.reasons,
        }
    )
    return change
