"""Several orchestrators on one PostgreSQL and one Redis, and agents that use all of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from recollect import AsyncMemoryClient, MemoryClient, RecollectError
from recollect.protocol.operation import Operation
from recollect.protocol.operations import AddMemory, GetMemory, SearchMemory
from tests.faults.polling import wait_for
from tests.faults.tools.threads import Threads
from tests.harness.own_postgres import OwnPostgres
from tests.harness.processes import OrchestratorProcess
from tests.harness.redis import RedisServer

ANSWERED_WITHIN_S = 30.0

Work = Generator[Operation[Any], Any, None]


class Orchestrators:
    """So many orchestrators, all on one database and one Redis."""

    def __init__(self, folder: Path, count: int = 3, env: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._env = env or {}
        self._count = count
        self._stack = ExitStack()
        self.processes: list[OrchestratorProcess] = []

    @property
    def endpoints(self) -> list[str]:
        return [process.endpoint for process in self.processes]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.postgres = stack.enter_context(OwnPostgres())
            self.redis = stack.enter_context(RedisServer())
            env = {
                "RECOLLECT_STORAGE_URL": self.postgres.url,
                "RECOLLECT_REDIS_URL": self.redis.url,
                **self._env,
            }
            for number in range(self._count):
                process = OrchestratorProcess(self._folder / f"data{number}", env=env)
                stack.callback(process.close)
                self.processes.append(process)
                process.start(wait=False)
            for process in self.processes:
                process.wait_ready()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()


class Written(NamedTuple):
    """A memory as an agent was told it is stored."""

    memory_id: str
    content: str


class Agents(Threads):
    """Clients with the settings that they get by themselves: threads with one each, and tasks that
    share one. Each writes, and reads what it wrote. What failed is noted, and asked again until it
    is answered, a write by its key, so that in the end nothing is in doubt."""

    def __init__(
        self, endpoints: list[str], namespace: str, *, threads: int = 3, tasks: int = 3
    ) -> None:
        super().__init__()
        self._endpoints = endpoints
        self.namespace = namespace
        self.written: dict[str, list[Written]] = {}
        """By agent. Each list has one thread that adds to it."""
        self.failed: list[str] = []
        """Calls that failed, and were made again."""
        self.wrong: list[str] = []
        """What must never be."""
        self.clients: list[MemoryClient | AsyncMemoryClient] = []
        self._task_names = [f"task{n}" for n in range(tasks)]
        names = [f"thread{n}" for n in range(threads)]
        for name in (*names, *self._task_names):
            self.written[name] = []
        self._threads = [
            *(threading.Thread(target=self._block, args=(name,), daemon=True) for name in names),
            threading.Thread(target=lambda: asyncio.run(self._await_all()), daemon=True),
        ]

    def _did_not_end(self, name: str) -> None:
        self.wrong.append(f"{name} did not end")

    def wait_for_more(self, count: int) -> None:
        """Return when each of them has written so many more."""
        enough = {name: len(written) + count for name, written in self.written.items()}
        wait_for(
            lambda: (
                bool(self.wrong) or all(len(self.written[name]) >= enough[name] for name in enough)
            ),
            within_s=ANSWERED_WITHIN_S,
            what=f"{count} more of each, after {self.failed[-3:]}",
        )
        assert not self.wrong, self.wrong

    def wait_for_all_healthy(self) -> None:
        """Return when every client thinks well of every endpoint."""
        wait_for(
            lambda: all(
                endpoint["healthy"]
                for client in self.clients
                for endpoint in client.get_circuit_breaker_status()["endpoints"]
            ),
            within_s=ANSWERED_WITHIN_S,
            what="all endpoints healthy again",
        )

    def _block(self, name: str) -> None:
        with MemoryClient(endpoints=self._endpoints, agent_id=name) as client:
            self.clients.append(client)
            work = self._work(name)
            outcome: Any = None
            while (operation := self._next(work, outcome)) is not None:
                try:
                    outcome = client.call(operation)
                except RecollectError as error:
                    outcome = error

    async def _await_all(self) -> None:
        async with AsyncMemoryClient(endpoints=self._endpoints, agent_id="tasks") as client:
            self.clients.append(client)
            await asyncio.gather(*(self._await(client, name) for name in self._task_names))

    async def _await(self, client: AsyncMemoryClient, name: str) -> None:
        work = self._work(name)
        outcome: Any = None
        while (operation := self._next(work, outcome)) is not None:
            try:
                outcome = await client.call(operation)
            except RecollectError as error:
                outcome = error

    def _next(self, work: Work, outcome: Any) -> Operation[Any] | None:
        try:
            return work.send(outcome)
        except StopIteration:
            return None
        except RecollectError as error:
            self.wrong.append(f"{error.code}: {error}")
            return None

    def _work(self, name: str) -> Work:
        """What one agent asks for: it adds, and looks for what it added by id and by word."""
        number = 0
        while not self._stopping.is_set() and not self.wrong:
            number += 1
            content = f"{name}x{number} was written"
            key = f"{self.namespace}-{name}-{number}"
            adding = AddMemory(content, namespace=self.namespace, idempotency_key=key)
            added = yield from self._answered(name, adding)
            written = Written(added["memory_id"], content)
            self.written[name].append(written)
            got = yield from self._answered(name, GetMemory(written.memory_id))
            self._check(got["memory"]["content"], written)
            searching = SearchMemory(content.split()[0], namespace=self.namespace)
            found = yield from self._answered(name, searching)
            self._check(next((one["content"] for one in found["results"]), None), written)

    def _answered(
        self, name: str, operation: Operation[Any]
    ) -> Generator[Operation[Any], Any, dict[str, Any]]:
        """Ask until there is an answer; raises what no retry mends."""
        give_up_s = time.monotonic() + ANSWERED_WITHIN_S
        while True:
            outcome = yield operation
            if not isinstance(outcome, RecollectError):
                answer: dict[str, Any] = outcome
                return answer
            if not outcome.retryable or time.monotonic() > give_up_s:
                raise outcome
            self.failed.append(f"{name}: {outcome.code}: {outcome}")

    def _check(self, found: str | None, written: Written) -> None:
        if found != written.content:
            self.wrong.append(f"{written} was read as {found!r}")


def stored(endpoint: str, namespace: str) -> dict[str, str]:
    """All that is stored, by its id."""
    found: dict[str, str] = {}
    with MemoryClient(endpoint, timeout=ANSWERED_WITHIN_S) as client:
        cursor = None
        while True:
            page = client.list_memories(namespace=namespace, limit=500, cursor=cursor)
            found.update((memory["id"], memory["content"]) for memory in page["memories"])
            cursor = page["cursor"]
            if cursor is None:
                return found
