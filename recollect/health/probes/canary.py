"""A memory that is written, searched, read and deleted: does what agents do still work?

There is one such memory. A round brings it back with a new text, finds it by that text, reads it
and deletes it again, softly: a purge wipes files and empties caches, which is too much for every
minute. Its old versions are forgotten now and then. It is purged when this process ends, and what a
killed one left behind when the next begins.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

from recollect.health.clients import Line
from recollect.health.probes.probe import said
from recollect.health.states import Finding
from recollect.protocol.errors import RecollectError, TransportError
from recollect.protocol.operations import (
    AddMemory,
    DeleteMemory,
    GetMemory,
    ListMemories,
    Ping,
    Purge,
    Restore,
    SearchMemory,
    SquashVersions,
    UpdateMemory,
)
from recollect.protocol.own_namespaces import HEALTH_NAMESPACE

MEMORY_TYPE = "canary"
SQUASH_ROUNDS = 30
STEPS_MAX = 13
LOOKS = 2  # enough of what is done so seldom and says so much
LEFT_BEHIND_MAX = 100


class CanaryFailed(Exception):
    """A step was answered, and not as it should be."""


class CanaryProbe:
    """Sends one canary a look."""

    name = "canary"
    through_orchestrator = True

    def __init__(
        self, line: Line, name: str, *, interval_s: float, timeout_s: float, slow_ms: int
    ) -> None:
        """`name` tells this health manager from others that watch over the same store."""
        self._line = line
        self._namespace = f"{HEALTH_NAMESPACE}:{name}"
        self._step_s = timeout_s
        self._slow_ms = slow_ms
        self.interval_s = interval_s
        self.timeout_s = STEPS_MAX * timeout_s
        self._memory_id: str | None = None
        self._deleted = False
        # Whether what is there of earlier canaries is known to be gone.
        self._tidied = False
        # So that no two rounds, also of two processes, look for the same word.
        self._rounds = itertools.count(int(time.time() * 1000))
        self._since_squash = 0
        self._step = "begin"
        self._singing: asyncio.Future[Finding] | None = None

    async def look(self) -> Finding:
        """Send one, after the one before it. A round that was begun comes to its end, whoever
        stops waiting for it: what it wrote would be left behind."""
        await self._ended()
        self._singing = asyncio.ensure_future(self._sing())
        return await asyncio.shield(self._singing)

    async def _ended(self) -> None:
        if self._singing is not None and not self._singing.done():
            await asyncio.wait({self._singing})
            self._singing.exception()  # Nobody else asks for it any more.

    async def _sing(self) -> Finding:
        began_s = time.perf_counter()
        try:
            if not self._tidied:
                await self._purge_all()
                self._tidied = True
            await self._round()
        except RecollectError as error:
            # Whatever was not answered may have been done: the next round begins anew.
            self._tidied = False
            if isinstance(error, TransportError) and not await self._is_there():
                raise  # Nobody is there, and the orchestrator's own probe tells of that.
            reason = f"It failed to {self._step}: {said(error)}"
            return Finding("down", (reason,), looks=LOOKS)
        except CanaryFailed as error:
            return Finding("down", (str(error),), looks=LOOKS)
        took_ms = (time.perf_counter() - began_s) * 1000
        details = {"took_ms": round(took_ms, 1)}
        if took_ms > self._slow_ms:
            reason = f"It took {took_ms:.0f} ms (health.canary_slow_ms is {self._slow_ms:,})."
            return Finding("degraded", (reason,), details)
        return Finding("healthy", (), details, looks=LOOKS)

    async def _is_there(self) -> bool:
        """Whether the orchestrator answers at all."""
        try:
            await self._call(Ping(timeout=self._step_s))
        except RecollectError:
            return False
        return True

    async def _round(self) -> None:
        word = f"canary{next(self._rounds)}"
        text = f"The {word} of the health manager."
        self._step = "write"
        memory_id = await self._written(text)
        self._step = "search"
        found = await self._found(word)
        if memory_id not in found:
            raise CanaryFailed("It was written, and a search does not find it.")
        self._step = "read"
        read = await self._call(GetMemory(memory_id, timeout=self._step_s))
        if read["memory"]["content"] != text:
            raise CanaryFailed("It reads otherwise than it was written.")
        self._step = "delete"
        await self._call(DeleteMemory(memory_id, timeout=self._step_s))
        self._deleted = True
        if memory_id in await self._found(word):
            raise CanaryFailed("It was deleted, and a search still finds it.")
        self._since_squash += 1
        if self._since_squash >= SQUASH_ROUNDS:
            self._since_squash = 0
            self._step = "forget its versions"
            squash = SquashVersions(self._namespace, 0.0, MEMORY_TYPE, timeout=self._step_s)
            await self._call(squash)

    async def _written(self, text: str) -> str:
        if self._memory_id is None:
            added = await self._call(
                AddMemory(
                    text,
                    MEMORY_TYPE,
                    importance=0.0,
                    namespace=self._namespace,
                    timeout=self._step_s,
                )
            )
            self._memory_id = str(added["memory_id"])
            return self._memory_id
        if self._deleted:
            await self._call(Restore(self._memory_id, timeout=self._step_s))
            self._deleted = False
        change = {"content": text}
        await self._call(UpdateMemory(self._memory_id, change, timeout=self._step_s))
        return self._memory_id

    async def _found(self, word: str) -> set[str]:
        given: dict[str, Any] = {"namespace": self._namespace, "timeout": self._step_s}
        answer = await self._call(SearchMemory(word, **given))
        return {str(result["id"]) for result in answer["results"]}

    async def _purge_all(self) -> None:
        """Leave nothing of any canary, also not of one whose process was killed."""
        self._step = "look for what is left of earlier ones"
        listed = await self._call(
            ListMemories(
                namespace=self._namespace,
                memory_type=MEMORY_TYPE,
                include_deleted=True,
                limit=LEFT_BEHIND_MAX,
                timeout=self._step_s,
            )
        )
        for memory in listed["memories"]:
            await self._call(Purge(memory["id"], timeout=self._step_s))
        self._memory_id, self._deleted = None, False

    async def _call(self, operation: Any) -> Any:
        return await self._line.call(operation)

    async def close(self) -> None:
        if self._singing is not None:
            await self._ended()
            await self._purge_all()
