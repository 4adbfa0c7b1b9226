"""The services by which a store is tended: what fades, moves, is merged, kept, copied, checked."""

from __future__ import annotations

from pathlib import Path

from recollect.orchestrator.assembly.parts import Parts
from recollect.orchestrator.consolidation.looking import Looking
from recollect.orchestrator.consolidation.performing import Performing
from recollect.orchestrator.consolidation.taking_back import TakingBack
from recollect.orchestrator.decay.planning import FadePlanning
from recollect.orchestrator.maintenance.ages import Ages
from recollect.orchestrator.maintenance.agreement import Agreement
from recollect.orchestrator.services.backups import BackupService
from recollect.orchestrator.services.consolidation import ConsolidationService
from recollect.orchestrator.services.decay import DecayService
from recollect.orchestrator.services.embedding import EmbeddingService
from recollect.orchestrator.services.exchange import ExchangeService
from recollect.orchestrator.services.forgetting import ForgettingService
from recollect.orchestrator.services.integrity import IntegrityService
from recollect.orchestrator.services.retention import RetentionService
from recollect.orchestrator.services.runs import RunService
from recollect.orchestrator.services.tiers import TierService
from recollect.orchestrator.services.trimming import TrimmingService
from recollect.orchestrator.services.upkeep import UpkeepService
from recollect.orchestrator.tiers.moving import Moving
from recollect.orchestrator.tiers.planning import Planning


def upkeep_services(parts: Parts) -> tuple[object, ...]:
    """Decay, tiers, consolidation, retention, backups, exchange, upkeep and checks."""
    settings, storage, store, writes = parts.settings, parts.storage, parts.store, parts.writes
    validator, clock, draining = parts.validator, parts.clock, parts.draining
    planning = Planning(storage, store, parts.fading, validator, settings.tiers)
    moving = Moving(writes, store, parts.drafting, clock)
    ages = Ages(clock.now_us(), settings.storage.clock_margin_hours)
    agreement = Agreement(storage, writes, store, parts.late)
    return (
        DecayService(
            storage,
            writes,
            store,
            FadePlanning(storage, planning, settings.decay),
            moving,
            parts.running,
            parts.drafting,
            validator,
            draining,
        ),
        TierService(storage, planning, moving, parts.running, validator, draining),
        ConsolidationService(
            storage,
            Looking(storage, store, parts.scoping, settings.consolidation),
            Performing(storage, writes, store, parts.lexical, clock),
            parts.running,
            parts.fading,
            validator,
            settings.consolidation,
            draining,
        ),
        ForgettingService(
            storage,
            TakingBack(storage, writes, store, parts.drafting, clock),
            parts.running,
            validator,
        ),
        RunService(storage, parts.running, parts.undoing, validator),
        RetentionService(
            storage,
            writes,
            parts.deletion,
            parts.scrubbing.finished,
            ages,
            settings,
            draining,
        ),
        TrimmingService(storage, writes, ages, draining),
        BackupService(storage, Path(settings.storage.data)),
        ExchangeService(storage, store, validator, parts.states, parts.secrets),
        EmbeddingService(parts.providers, parts.meanings, parts.reembedding),
        UpkeepService(
            storage,
            writes,
            store,
            parts.lexical,
            parts.late,
            agreement,
            validator,
            clock,
            draining,
        ),
        IntegrityService(storage, parts.lexical, agreement, clock),
    )
