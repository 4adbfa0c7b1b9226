"""The services for whoever runs it: identities, audit, feed, jobs, figures."""

from __future__ import annotations

import time
from pathlib import Path

from recollect.orchestrator.assembly.parts import Parts
from recollect.orchestrator.clock import offset_s_of
from recollect.orchestrator.jobs.beginning import Beginning
from recollect.orchestrator.jobs.leases import Leases
from recollect.orchestrator.memories.counting import MemoryCounter
from recollect.orchestrator.services.audit import AuditService
from recollect.orchestrator.services.bearer_keys import BearerKeyService
from recollect.orchestrator.services.feed import FeedService
from recollect.orchestrator.services.identities import IdentityService
from recollect.orchestrator.services.jobs import JobService
from recollect.orchestrator.services.leases import LeaseService
from recollect.orchestrator.services.metrics import MetricsService
from recollect.orchestrator.services.system import SystemService


def administration_services(parts: Parts) -> tuple[object, ...]:
    """Identities and keys, the audit and the feed, leases and jobs, state and metrics."""
    settings, storage, validator, clock = (
        parts.settings,
        parts.storage,
        parts.validator,
        parts.clock,
    )
    return (
        IdentityService(
            storage,
            parts.keyring,
            validator,
            parts.own_keys.server.public_key if parts.own_keys else None,
        ),
        BearerKeyService(parts.keyring),
        AuditService(storage, parts.scoping, validator, clock),
        FeedService(parts.feed, validator, clock),
        LeaseService(Leases(time.monotonic)),
        JobService(storage, Beginning(parts.ids), validator, settings.scheduler.history_max),
        SystemService(
            storage,
            parts.store,
            parts.late,
            parts.reembedding,
            parts.errors,
            parts.keeping,
            validator,
            clock.now_us(),
            lambda: parts.dispatcher.describe(),
            parts.scrubbing.describe,
            parts.redis.describe,
        ),
        MetricsService(
            storage,
            MemoryCounter(
                storage,
                lambda session: parts.meanings.current.index.seen_by(session).describe(),
                settings.health.counts_interval_s,
                time.monotonic,
            ),
            parts.meanings,
            parts.cache,
            parts.errors,
            Path(settings.storage.data),
            clock.now_us(),
            lambda: parts.dispatcher.figures(),
            parts.redis.describe,
            parts.scrubbing.describe,
            lambda: offset_s_of(clock),
        ),
    )
