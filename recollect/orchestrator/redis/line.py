"""A line to the Redis that orchestrators share, for what a request asks there on the event loop.

One task speaks on one connection. What is asked while an answer is under way goes together with the
next, so that many requests at once cost little more than one. Nobody waits longer than a request
may wait for Redis, and whatever goes wrong is a miss.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

from redis.exceptions import ResponseError

from recollect.orchestrator.redis.connecting import on_loop
from recollect.orchestrator.redis.link import RedisLink

WAITING_MAX = 10_000
AT_ONCE_MAX = 200
STOP_S = 1.0
UNKNOWN_SCRIPT = "NOSCRIPT"


class Script:
    """A script, and what Redis calls it once it knows it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


class _Asked(NamedTuple):
    script: Script
    given: tuple[Any, ...]
    """The number of keys, the keys, and what else it is given."""
    turn: asyncio.Future[Any]


class Line:
    """Lives on the event loop, from `start` to `stop`; before and after that all is a miss."""

    def __init__(self, link: RedisLink) -> None:
        assert link.url is not None
        self._link = link
        self._client = on_loop(link.url, link.timeout_s)
        self._waiting: deque[_Asked] = deque()
        self._noted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._prefix = ""

    def start(self, store_id: str) -> None:
        """Speak for a store, whose keys lie in one slot by what is in the braces."""
        self._prefix = f"recollect:{{{store_id}}}:"
        self._task = asyncio.create_task(self._run())

    def key(self, kind: str, name: str) -> str:
        """What something of this store is called."""
        return f"{self._prefix}{kind}:{name}"

    def usable(self) -> bool:
        """Whether it is worth asking."""
        return self._task is not None and self._link.usable()

    async def ask(self, script: Script, keys: list[str], given: list[Any]) -> Any | None:
        """What a script answers; None if Redis does not, or not soon."""
        if not self.usable() or len(self._waiting) >= WAITING_MAX:
            return None
        turn: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Asked(script, (len(keys), *keys, *given), turn))
        self._noted.set()
        done, _ = await asyncio.wait({turn}, timeout=self._link.timeout_s)
        return turn.result() if done else None

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
            self._miss(self._waiting)
        with suppress(Exception):
            async with asyncio.timeout(STOP_S):
                await self._client.aclose()

    async def _run(self) -> None:
        while True:
            await self._noted.wait()
            if not self._waiting:
                self._noted.clear()
                continue
            some = [self._waiting.popleft() for _ in range(min(AT_ONCE_MAX, len(self._waiting)))]
            if not self._link.usable():
                self._miss(some)
                continue
            try:
                await self._speak(some)
            except Exception as error:  # whatever it is, all of them go on without
                self._link.failed(error)
            else:
                self._link.succeeded()
            finally:
                self._miss(some)

    async def _speak(self, some: list[_Asked]) -> None:
        answers = await self._sent([("EVALSHA", one.script.digest, *one.given) for one in some])
        unknown = [
            place
            for place, answer in enumerate(answers)
            if isinstance(answer, Exception) and UNKNOWN_SCRIPT in repr(answer).upper()
        ]
        if unknown:
            # It was started anew, or never heard of it: told once, it knows the script.
            told = [("EVAL", some[place].script.text, *some[place].given) for place in unknown]
            for place, answer in zip(unknown, await self._sent(told), strict=True):
                answers[place] = answer
        refused = None
        for one, answer in zip(some, answers, strict=True):
            if isinstance(answer, Exception):
                refused = answer
            elif not one.turn.done():
                one.turn.set_result(answer)
        if refused is not None:
            raise refused

    async def _sent(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        if len(commands) == 1:
            # Mostly there is one, for which a pipeline takes longer.
            try:
                return [await self._client.execute_command(*commands[0])]
            except ResponseError as error:
                return [error]
        async with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            answers: list[Any] = await pipeline.execute(raise_on_error=False)
            return answers

    def _miss(self, some: deque[_Asked] | list[_Asked]) -> None:
        for one in some:
            if not one.turn.done():
                one.turn.set_result(None)
