"""A cache of bytes in Redis, for threads in which a request may wait.

What it saves takes milliseconds to make, so it is not waited for much longer than that: a fraction
of what a request as a whole may wait for Redis. Once Redis is known to be away it is not asked at
all; see the link, whose breaker all share.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

import structlog

from recollect.orchestrator.redis.connecting import in_threads
from recollect.orchestrator.redis.link import RedisLink

log = structlog.get_logger()

PATIENCE = 0.25
"""Of what a request may wait for Redis."""
PATIENCE_S_MIN = 0.002
CONNECTIONS_MAX = 64
SCAN_AT_ONCE = 1_000


class RedisCache:
    """Entries of one kind and one store, each with an expiry. Any thread may use it."""

    def __init__(self, link: RedisLink, ttl_s: float) -> None:
        assert link.url is not None
        self._link = link
        self._ttl_ms = max(1, int(ttl_s * 1000))
        patience_s = max(PATIENCE_S_MIN, PATIENCE * link.timeout_s)
        self._client = in_threads(link.url, patience_s, CONNECTIONS_MAX)
        # One at a time clears, and a step of that may take as long as any request may wait.
        self._clearing = in_threads(link.url, link.timeout_s, 1)
        self._clearer = threading.Lock()
        self._lock = threading.Lock()
        # How often it was cleared, and whether that is still to be done in Redis. Under the lock.
        self._clears = 0
        self._unclear = False
        # Until the store is known there is no name to keep anything under.
        self._prefix = b""
        self.hits = 0
        self.misses = 0
        self.errors = 0

    def name(self, store_id: str, kind: str) -> None:
        """Say what all keys begin with; the braces put those of a store into one slot."""
        self._prefix = f"recollect:{{{store_id}}}:{kind}:".encode()

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if not keys or not self._usable():
            return [None] * len(keys)
        try:
            found: list[bytes | None] = self._client.mget([self._prefix + key for key in keys])
        except Exception as error:  # whatever it is, it is a miss
            self._failed(error)
            return [None] * len(keys)
        self._link.succeeded()
        hits = sum(value is not None for value in found)
        with self._lock:
            self.hits += hits
            self.misses += len(keys) - hits
        return found

    def keep(self, entries: Mapping[bytes, bytes]) -> None:
        """Keep some, unless all is being cleared meanwhile."""
        if not entries or not self._usable():
            return
        cleared = self._clears
        try:
            if len(entries) == 1:
                # A pipeline of one takes twice as long.
                [(key, value)] = entries.items()
                self._client.set(self._prefix + key, value, px=self._ttl_ms)
            else:
                with self._client.pipeline(transaction=False) as pipeline:
                    for key, value in entries.items():
                        pipeline.set(self._prefix + key, value, px=self._ttl_ms)
                    pipeline.execute()
        except Exception as error:  # then it is made anew some time
            self._failed(error)
            return
        if cleared != self._clears:
            # It may have come behind the clearing.
            self.clear()

    def clear(self) -> bool:
        """Forget what this store has in Redis; if that is away, when it is back."""
        with self._lock:
            self._clears += 1
            self._unclear = True
        return self.clear_if_need_be()

    @property
    def unclear(self) -> bool:
        """Whether a clearing is still to be done; until then nothing is kept and nothing found."""
        return self._unclear

    def clear_if_need_be(self) -> bool:
        """Make up for a clearing that could not be done; whether nothing is left to be done."""
        with self._clearer:
            if not self._unclear:
                return True
            cleared = self._clears
            if not self._prefix or not self._link.usable():
                return False
            try:
                for keys in self._kept():
                    self._clearing.unlink(*keys)
            except Exception as error:
                self._failed(error)
                return False
            with self._lock:
                self._unclear = cleared != self._clears
        return not self._unclear

    def close(self) -> None:
        self._client.close()
        self._clearing.close()

    def describe(self) -> dict[str, int]:
        with self._lock:
            return {"hits": self.hits, "misses": self.misses, "errors": self.errors}

    def _usable(self) -> bool:
        return bool(self._prefix) and not self._unclear and self._link.usable()

    def _kept(self) -> Iterator[list[bytes]]:
        """All keys, some at a time."""
        cursor = 0
        while True:
            cursor, keys = self._clearing.scan(cursor, self._prefix + b"*", SCAN_AT_ONCE)
            if keys:
                yield keys
            if not int(cursor):
                return

    def _failed(self, error: Exception) -> None:
        self._link.failed(error)
        with self._lock:
            self.errors += 1
