"""The service itself: is it there, how is it, what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recollect._version import VERSION
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import PRESENT
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.troubles.error_bus import ErrorBus
from recollect.orchestrator.troubles.error_keeping import ErrorKeeping
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.vectors.late_embedding import LateEmbedding
from recollect.orchestrator.vectors.reembedding import Reembedding
from recollect.protocol import records
from recollect.protocol.envelope import PROTOCOL_VERSION
from recollect.protocol.operations import Ping, RecentErrors, ReportErrors, Stats

COUNT_BY_TIER = f"SELECT tier, count(*) FROM memories WHERE {PRESENT} GROUP BY tier"
COUNT_ARCHIVED = """
SELECT count(*) FROM memories WHERE deleted_us IS NULL AND archived_us IS NOT NULL
"""
COUNT_DELETED = "SELECT count(*) FROM memories WHERE deleted_us IS NOT NULL"


class SystemService:
    """Answers about the orchestrator."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        late: LateEmbedding,
        reembedding: Reembedding,
        errors: ErrorBus,
        keeping: ErrorKeeping,
        validator: Validator,
        started_us: int,
        describe_requests: Callable[[], dict[str, Any]],
        describe_purges: Callable[[], dict[str, Any]],
        describe_redis: Callable[[], dict[str, Any]],
    ) -> None:
        self._storage = storage
        self._store = store
        self._late = late
        self._reembedding = reembedding
        self._errors = errors
        self._keeping = keeping
        self._validator = validator
        self._started_us = started_us
        self._describe_requests = describe_requests
        self._describe_purges = describe_purges
        self._describe_redis = describe_redis

    @reads(Ping)
    def ping(self, call: Call, operation: Ping) -> records.Pong:
        return {
            "status": "success",
            "ready": True,
            "version": VERSION,
            "protocol": PROTOCOL_VERSION,
            "seq": self._storage.committed_seq,
            "uptime_s": self._uptime_s(call),
            "now": to_iso(call.now_us),
        }

    @reads(Stats)
    async def stats(self, call: Call, operation: Stats) -> records.Stats:
        size_sql = self._storage.size_sql

        def read(session: Session) -> dict[str, Any]:
            tiers: dict[str, int] = dict(session.execute(COUNT_BY_TIER))
            [(deleted,)] = session.execute(COUNT_DELETED)
            [(archived,)] = session.execute(COUNT_ARCHIVED)
            return {
                "total": sum(tiers.values()),
                "by_tier": tiers,
                "deleted": deleted,
                "archived": archived,
                "unembedded": self._late.waiting(session),
                "stored": {} if size_sql is None else {"bytes": session.execute(size_sql)[0][0]},
            }

        memories = await self._storage.read(read)
        seq = await self._storage.reached_seq()
        cache, meaning = self._store.cache, self._store.meanings.current
        # Off the loop, since it looks into files.
        index = await self._storage.read(lambda session: meaning.index.seen_by(session).describe())
        waiting, stored = memories.pop("unembedded"), memories.pop("stored")
        return {
            "status": "success",
            "memories": memories,
            "storage": {**self._storage.describe(), **stored},
            "index": {**index, "model": meaning.model},
            "embedding": {
                **meaning.embedding.describe(),
                "waiting": waiting,
                "waiting_reason": self._late.last_error,
                "reembedding": self._reembedding.describe(),
            },
            "requests": self._describe_requests(),
            "purges": self._describe_purges(),
            "cache": {"entries": len(cache), "hits": cache.hits, "misses": cache.misses},
            "redis": self._describe_redis(),
            "seq": seq,
            "uptime_s": self._uptime_s(call),
        }

    @reads(ReportErrors)
    def report_errors(self, call: Call, operation: ReportErrors) -> records.ErrorsReported:
        for report in operation.errors:
            self._validator.metadata(report.context, "context")
            self._errors.report(
                self._validator.cleaned("source", operation.source),
                report.code,
                self._validator.cleaned("message", report.message),
                call.now_us,
                count=report.count,
                context=self._validator.cleaned("context", report.context),
                identity=call.identity,
            )
        return {"status": "success", "accepted": len(operation.errors)}

    @reads(RecentErrors)
    async def recent_errors(self, call: Call, operation: RecentErrors) -> records.ErrorsListed:
        limit = self._validator.page(operation.limit)
        await self._keeping.refresh()
        found = self._errors.recent(limit, operation.source, operation.code)
        return {"status": "success", "errors": found, "count": len(found)}

    def _uptime_s(self, call: Call) -> float:
        return max(0, call.now_us - self._started_us) / 1_000_000
