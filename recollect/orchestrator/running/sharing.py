"""What an orchestrator holds in memory alone, shared with others of its store where there is a line
to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.config.settings import SessionsSettings, TrustSettings
from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.memories.rows import CachedMemory
from recollect.orchestrator.sessions.temporary import TemporaryState
from recollect.orchestrator.trust.echoes import Echoes, echoes_at_hand

if TYPE_CHECKING:
    from recollect.orchestrator.redis.line import Line


def temporary_of(settings: SessionsSettings, line: Line | None) -> TemporaryState:
    """The `temp:` state of sessions."""
    bounds = settings.temp_sessions_max, settings.temp_bytes_max
    if line is None:
        return TemporaryState(*bounds)
    from recollect.orchestrator.sessions.shared_temporary import SharedTemporary  # needs Redis's

    return SharedTemporary(*bounds, settings.temp_hours, line)


def echoes_of(
    settings: TrustSettings, cache: LocalCache[CachedMemory] | None, line: Line | None
) -> Echoes | None:
    """What agents were served, if the settings ask for it, with the cache of what was read if there
    is one."""
    if not settings.echoes:
        return None
    if line is None:
        return echoes_at_hand(settings, cache)
    from recollect.orchestrator.trust.shared_echoes import SharedEchoes  # needs Redis's

    return SharedEchoes(settings, line)
