"""An orchestrator inside the test's own process: everything but the socket, on any storage."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from recollect.config.settings import (
    EmbeddingSettings,
    RedisSettings,
    Settings,
    StorageSettings,
)
from recollect.orchestrator.access.identities import LOCAL, Identity
from recollect.orchestrator.running.lifecycle import Orchestrator
from recollect.protocol.envelope import PROTOCOL_VERSION, Request, decode_reply
from recollect.protocol.errors import from_body
from recollect.protocol.operation import Operation
from recollect.protocol.operations import Stats

T = TypeVar("T")
NEVER_MS = 60_000
ANSWERED_WITHIN_S = 20.0
NO_REDIS = RedisSettings(url="off")


class ManualClock:
    """A clock that moves when told to, and a microsecond at each look."""

    def __init__(self, now_us: int = 1_800_000_000_000_000) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        self._now_us += 1
        return self._now_us

    def advance(self, seconds: float) -> None:
        self._now_us += int(seconds * 1_000_000)


class World:
    """Calls operations and waits for their answers."""

    def __init__(self, url: str, data: Path, settings: Settings | None = None) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self._runner = asyncio.Runner()
        self._ids = itertools.count(1)
        self.clock = ManualClock()
        chosen = settings or Settings(embedding=EmbeddingSettings(provider="hashed"))
        self.settings = msgspec.structs.replace(
            chosen,
            storage=StorageSettings(url=url, data=str(data)),
            # Accesses are written when a test says so, however long it takes on a busy machine.
            decay=msgspec.structs.replace(chosen.decay, access_flush_ms=NEVER_MS),
            # Thousands of tests need no server of their own: who wants one names it.
            redis=NO_REDIS if chosen.redis == RedisSettings() else chosen.redis,
        )
        self.open()

    def open(self) -> None:
        self.orchestrator = self.run(self._open())
        self.storage = self.orchestrator.parts.storage

    async def _open(self) -> Orchestrator:
        orchestrator = Orchestrator(self.settings, self.clock)
        await orchestrator.start()
        return orchestrator

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(asyncio.wait_for(work, ANSWERED_WITHIN_S))

    def __call__(
        self, operation: Operation[Any], identity: Identity = LOCAL, **envelope: Any
    ) -> Any:
        """The answer to an operation of somebody, or its error raised."""
        encoded = msgspec.msgpack.encode(operation)
        body = self.send(operation.spec.name, encoded, identity, **envelope)
        if body["status"] == "error":
            raise from_body(body["error"])
        return body

    def send(self, name: str, body: bytes, identity: Identity = LOCAL, **envelope: Any) -> Any:
        """The answer to a request, as it is."""
        request = Request(v=PROTOCOL_VERSION, id=next(self._ids), op=name, body=body, **envelope)
        return self.run(self._exchange(msgspec.msgpack.encode(request), identity))

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where it lives; another thread may ask there while the test waits for an answer."""
        return self._runner.get_loop()

    async def ask(
        self, operation: Operation[Any], identity: Identity = LOCAL, **envelope: Any
    ) -> Any:
        """The answer to an operation of somebody, as it is."""
        body = msgspec.msgpack.encode(operation)
        name = operation.spec.name
        request = Request(v=PROTOCOL_VERSION, id=next(self._ids), op=name, body=body, **envelope)
        return await self._exchange(msgspec.msgpack.encode(request), identity)

    async def _exchange(self, frame: bytes, identity: Identity) -> Any:
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.orchestrator.dispatcher.dispatch(frame, answered.set_result, identity)
        return msgspec.msgpack.decode(decode_reply(await answered).body)

    def settle(self) -> None:
        """Wait until every memory has its vector."""
        until = time.monotonic() + ANSWERED_WITHIN_S
        while time.monotonic() < until:
            stats = self(Stats())
            living, waiting = stats["memories"]["total"], stats["embedding"]["waiting"]
            if not waiting and stats["index"]["vectors"] == living:
                return
        raise AssertionError(f"vectors are still missing: {stats}")

    def restart(self) -> None:
        self.run(self.orchestrator.stop())
        self.open()

    def close(self) -> None:
        self.run(self.orchestrator.stop())
        self._runner.close()
