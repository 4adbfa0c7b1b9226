"""The pages by their paths."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request

from recollect.health.dashboard.pages.analytics import analytics
from recollect.health.dashboard.pages.graph import graph
from recollect.health.dashboard.pages.jobs import jobs
from recollect.health.dashboard.pages.learning import learning
from recollect.health.dashboard.pages.memories import memories
from recollect.health.dashboard.pages.memory import memory
from recollect.health.dashboard.pages.namespaces import namespaces
from recollect.health.dashboard.pages.overview import overview
from recollect.health.dashboard.pages.sessions import session, sessions
from recollect.health.dashboard.visit import Visit

PAGES: dict[str, Callable[[Visit, Request], Awaitable[None]]] = {
    "/": overview,
    "/memories": memories,
    "/memories/{memory_id}": memory,
    "/graph": graph,
    "/namespaces": namespaces,
    "/sessions": sessions,
    "/sessions/{session_id}": session,
    "/jobs": jobs,
    "/learning": learning,
    "/analytics": analytics,
}
