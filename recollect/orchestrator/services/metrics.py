"""The figures by which the service is watched."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recollect._version import VERSION
from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.embedding.meaning import Meanings
from recollect.orchestrator.memories.counting import Counted, MemoryCounter
from recollect.orchestrator.running.process_figures import process_figures
from recollect.orchestrator.storage.interface import Storage
from recollect.orchestrator.troubles.error_bus import ErrorBus
from recollect.protocol import records
from recollect.protocol.operations import Metrics


class MetricsService:
    """Answers `metrics` from what is at hand; only the first answer waits for memories to be
    counted."""

    def __init__(
        self,
        storage: Storage,
        counter: MemoryCounter,
        meanings: Meanings,
        cache: LocalCache[Any],
        errors: ErrorBus,
        data: Path,
        started_us: int,
        describe_requests: Callable[[], records.RequestFigures],
        describe_redis: Callable[[], dict[str, Any]],
        describe_purges: Callable[[], dict[str, Any]],
        clock_offset_s: Callable[[], float],
    ) -> None:
        self._storage = storage
        self._counter = counter
        self._meanings = meanings
        self._cache = cache
        self._errors = errors
        self._data = data
        self._started_us = started_us
        self._describe_requests = describe_requests
        self._describe_redis = describe_redis
        self._describe_purges = describe_purges
        self._clock_offset_s = clock_offset_s

    @reads(Metrics)
    async def metrics(self, call: Call, operation: Metrics) -> records.Metrics:
        counted = await self._counter.counted()
        store = self._storage.describe()
        disk = shutil.disk_usage(self._data)
        embedding = self._embedding(call, counted)
        redis = self._describe_redis()
        return {
            "status": "success",
            "at": to_iso(call.now_us),
            "uptime_s": max(0, call.now_us - self._started_us) / 1_000_000,
            "version": VERSION,
            "process": process_figures(),
            "requests": self._describe_requests(),
            "writer": {
                "queue_length": store["write_queue_length"],
                "commits": store["commits"],
                "transactions": store["transactions"],
                "lag_s": store["write_lag_s"],
                "last_wait_s": store["write_wait_s"],
            },
            "cache": {
                "entries": len(self._cache),
                "hits": self._cache.hits,
                "misses": self._cache.misses,
            },
            "embedding": embedding,
            "index": self._index(counted),
            "redis": redis,
            "memories": self._counter.memories(counted),
            "disk": {
                "free_bytes": disk.free,
                "total_bytes": disk.total,
                "database_bytes": store.get("bytes", counted.database_bytes),
                "log_bytes": store.get("log_bytes", 0),
            },
            "errors": self._errors.totals(),
            "breakers": _breakers(embedding, redis),
            "seq": self._storage.committed_seq,
            "purges": self._describe_purges(),
            "clock_offset_s": self._clock_offset_s(),
        }

    def _embedding(self, call: Call, counted: Counted) -> dict[str, Any]:
        since_us = counted.waiting_since_us
        return {
            **self._meanings.current.embedding.describe(),
            "waiting": counted.waiting,
            "lag_s": 0.0 if since_us is None else max(0, call.now_us - since_us) / 1_000_000,
        }

    def _index(self, counted: Counted) -> dict[str, Any]:
        meaning = self._meanings.current
        segments = counted.index.get("segments", ())
        return {
            "model": meaning.model,
            "vectors": counted.index["vectors"],
            "head": counted.index["head"],
            "segments": len(segments),
            "building": counted.index["building"],
            # Of the memories that have a vector, those that it is not searched by.
            "lag": max(0, counted.total - counted.waiting - counted.index["vectors"]),
        }


def _breakers(embedding: dict[str, Any], redis: dict[str, Any]) -> dict[str, str]:
    """The circuits between the orchestrator and what it calls."""
    found = {
        "embedding": (embedding.get("provider") or {}).get("breaker"),
        "redis": redis.get("breaker"),
    }
    states = {
        name: breaker["state"] if isinstance(breaker, dict) else breaker
        for name, breaker in found.items()
    }
    return {name: str(state) for name, state in states.items() if state}
