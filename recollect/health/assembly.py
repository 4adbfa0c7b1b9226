"""Puts a health manager together from its settings."""

from __future__ import annotations

import hashlib
import socket
import time
from functools import partial
from pathlib import Path
from typing import Any

from recollect.config import Settings
from recollect.health.alerts import Alerts
from recollect.health.clients import Clients
from recollect.health.keeping import History, Sizes
from recollect.health.manager import HealthManager
from recollect.health.probes.breakers import BreakersProbe
from recollect.health.probes.canary import CanaryProbe
from recollect.health.probes.endpoints import EndpointsProbe
from recollect.health.probes.gateway import GatewayProbe, announced_url
from recollect.health.probes.index import EmbeddingProbe, IndexProbe
from recollect.health.probes.orchestrator import OrchestratorProbe
from recollect.health.probes.probe import Probe, Sight
from recollect.health.probes.redis import RedisProbe
from recollect.health.probes.scheduler import SchedulerProbe
from recollect.health.states import Rules
from recollect.health.webhook import Webhook

BUS_RETRY_S_MIN = 0.1
NAME_CHARS = 8


class Assembly:
    """The manager with all its probes; nothing is at work yet."""

    def __init__(self, settings: Settings, clients: Clients, folder: Path) -> None:
        """`folder` is the health manager's own."""
        health = settings.health
        often = {"interval_s": health.probe_interval_s, "timeout_s": health.probe_timeout_s}
        self.webhook = Webhook(health.webhook_url, health) if health.webhook_url else None
        self.alerts = Alerts(
            clients,
            self.webhook,
            waiting_max=health.alerts_waiting_max,
            retry_s=max(BUS_RETRY_S_MIN, health.probe_interval_s),
            timeout_s=health.probe_timeout_s,
        )
        sight = Sight()
        self.scheduler = SchedulerProbe(
            clients, **often, late_s_max=health.job_late_s_max, now_s=time.time
        )
        probes: list[Probe] = [
            OrchestratorProbe(clients, sight, Sizes(folder), settings, time.time),
            EndpointsProbe(clients.find, **often),
            CanaryProbe(
                clients,
                _name_of(folder),
                interval_s=health.canary_interval_s,
                timeout_s=health.probe_timeout_s,
                slow_ms=health.canary_slow_ms,
            ),
            EmbeddingProbe(
                sight,
                interval_s=health.probe_interval_s,
                lag_s_max=health.embedding_lag_s_max,
            ),
            IndexProbe(
                clients,
                interval_s=health.index_interval_s,
                timeout_s=health.index_timeout_s,
                repaired=self._repaired,
            ),
            RedisProbe(sight, health.probe_interval_s),
            self.scheduler,
            BreakersProbe(
                clients, sight, **often, window_s=health.breaker_window_s, now_s=time.time
            ),
        ]
        if (gateway_url := health.gateway_url) is not None:
            probes.append(GatewayProbe(lambda: gateway_url, **often, certified=True))
        else:
            where = partial(announced_url, Path(settings.storage.data))
            probes.append(GatewayProbe(where, **often, certified=False))
        self.manager = HealthManager(
            probes,
            sight,
            self.alerts,
            History(folder, health.history_max),
            Rules(health.bad_in_a_row, health.good_in_a_row),
            endpoint=lambda: clients.endpoint,
            jobs=lambda: self.scheduler.listed["jobs"] if self.scheduler.listed else [],
        )

    def _repaired(self, details: dict[str, Any]) -> None:
        self.alerts.repaired(time.time(), details)


def _name_of(folder: Path) -> str:
    """The same after every restart, and another for another machine or folder."""
    place = f"{socket.gethostname()}:{folder.resolve()}"
    return hashlib.sha256(place.encode()).hexdigest()[:NAME_CHARS]
