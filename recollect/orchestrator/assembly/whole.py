"""A dispatcher over all services, and the parts they are made of."""

from __future__ import annotations

import time

from recollect.config.settings import Settings
from recollect.orchestrator.access.bearers import Bearers
from recollect.orchestrator.access.own_keys import OwnKeys
from recollect.orchestrator.access.rates import Rates
from recollect.orchestrator.assembly.administration import administration_services
from recollect.orchestrator.assembly.memories import memory_services
from recollect.orchestrator.assembly.parts import Parts
from recollect.orchestrator.assembly.searching import search_services
from recollect.orchestrator.assembly.upkeep import upkeep_services
from recollect.orchestrator.assembly.working import working_services
from recollect.orchestrator.calls import handlers_of
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.serving.dispatch import Dispatcher


def assemble(settings: Settings, clock: Clock, own_keys: OwnKeys | None = None) -> Parts:
    """All services over one storage, reachable through `dispatcher`; nothing is at work yet."""
    parts = Parts(settings, clock, own_keys)
    handlers = handlers_of(
        *memory_services(parts),
        *search_services(parts),
        *working_services(parts),
        *upkeep_services(parts),
        *administration_services(parts),
    )
    parts.dispatcher = Dispatcher(
        handlers,
        parts.storage,
        clock,
        parts.errors,
        settings,
        parts.refusals,
        Rates(time.monotonic),
        parts.validator,
        parts.keyring.check_still_allowed,
        Bearers(parts.keyring, parts.attempts).identity,
        parts.room,
        parts.echoes,
    )
    parts.reembedding.under_way = parts.dispatcher.under_way
    return parts
