"""What operational memory promises, kept in process or shared through Redis."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis

from recollect.config.settings import (
    CircuitBreakerSettings,
    OperationalSettings,
    RedisSettings,
    Settings,
)
from recollect.orchestrator.clock import IdSource, SystemClock
from recollect.orchestrator.operational import redis, shared_log
from recollect.orchestrator.operational.in_process import InProcess
from recollect.orchestrator.operational.interface import (
    ActiveTask,
    Event,
    Metric,
    OperationalMemory,
)
from recollect.orchestrator.operational.redis import RedisMemory
from recollect.orchestrator.redis.link import RedisLink
from tests.harness.redis import RedisServer, SilentServer

WITHIN_S = 20.0
LIMITS = OperationalSettings(events_max=50, metrics_max=3, active_tasks_max=3)
_numbers = itertools.count(1)


def anywhere(namespace: str) -> bool:
    return True


def event(category: str, **given: Any) -> Event:
    number = next(_numbers)
    fields: dict[str, Any] = {"id": f"e-{number}", "at_us": number, "data": "null"}
    fields |= {"critical": False, "namespace": "app:a", "author": "somebody", **given}
    return Event(category=category, **fields)


def metric(key: str, value: float, namespace: str = "app:a") -> Metric:
    return Metric(namespace, key, value, next(_numbers), "somebody")


def task(task_id: str, state: str = "{}", namespace: str = "app:a") -> ActiveTask:
    at_us = next(_numbers)
    return ActiveTask(namespace, task_id, state, at_us, at_us, "somebody")


def categories(memory: OperationalMemory) -> list[str]:
    return [event.category for event in memory.events(anywhere, 1000)]


def values(memory: OperationalMemory) -> dict[str, Any]:
    return {metric.key: metric.value for metric in memory.metrics(anywhere)}


def active(memory: OperationalMemory) -> list[str]:
    return [task.task_id for task in memory.tasks(anywhere, 1000)]


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


class Members:
    """Makes memories that share what they know, if theirs is such a kind, and stops them."""

    def __init__(self, url: str | None, limits: OperationalSettings = LIMITS) -> None:
        self._url = url
        self._limits = limits
        self.store_id = f"store-{next(_numbers)}"
        self._made: list[OperationalMemory] = []

    async def make(self, *critical: Event, timeout_ms: int = 5_000) -> Any:
        memory: OperationalMemory
        if self._url is None:
            memory = InProcess(self._limits)
        else:
            settings = Settings(
                operational=self._limits,
                redis=RedisSettings(self._url, timeout_ms=timeout_ms),
                circuit_breaker=CircuitBreakerSettings(fail_max=2, reset_timeout_s=0.05),
            )
            link = RedisLink(settings, time.monotonic)
            memory = RedisMemory(self._limits, IdSource(SystemClock()), link)
        self._made.append(memory)
        await memory.start(self.store_id, critical)
        return memory

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            try:
                async with asyncio.timeout(WITHIN_S):
                    await work()
            finally:
                for memory in self._made:
                    await memory.stop()

        asyncio.run(whole())


@pytest.fixture(params=["process", "redis"])
def members(request: pytest.FixtureRequest) -> Members:
    if request.param == "process":
        return Members(None)
    return Members(request.getfixturevalue("server").url)


@pytest.fixture
def sharing(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Members:
    """Some that take only little at once."""
    monkeypatch.setattr(redis, "READ_MAX", 7)
    return Members(server.url)


async def until(holds: Callable[[], bool], memory: OperationalMemory) -> None:
    """Look again and again; the test's own bound ends it."""
    while not holds():
        await memory.refresh()
        await asyncio.sleep(0.005)


def test_what_is_noted_is_seen_at_once_and_after_a_refresh(members: Members) -> None:
    async def work() -> None:
        memory = await members.make()
        memory.push(event("build"))
        memory.push(event("deploy"))
        memory.set_metric(metric("queue", 1))
        memory.set_metric(metric("queue", 2))
        memory.set_task(task("t-1", '{"step":1}'))
        memory.set_task(task("t-1", '{"step":2}'))
        memory.set_task(task("t-2"))
        memory.end_task("app:a", "t-2")
        for _ in range(3):
            assert categories(memory) == ["deploy", "build"]
            assert values(memory) == {"queue": 2}
            [only] = memory.tasks(anywhere, 10)
            assert (only.task_id, only.state) == ("t-1", '{"step":2}')
            assert only.since_us < only.at_us
            assert memory.counts(anywhere).by_category == {"deploy": 1, "build": 1}
            assert memory.degraded() is None
            await memory.refresh()

    members.run(work)


def test_all_is_bounded(members: Members) -> None:
    async def work() -> None:
        memory = await members.make()
        for number in range(200):
            memory.push(event(f"e{number}"))
            memory.set_metric(metric(f"m{number}", number))
            memory.set_task(task(f"t{number}"))
        for _ in range(3):
            assert categories(memory) == [f"e{number}" for number in range(199, 149, -1)]
            assert values(memory) == {"m197": 197, "m198": 198, "m199": 199}
            assert active(memory) == ["t199", "t198", "t197"]
            await memory.refresh()

    members.run(work)


def test_critical_events_of_before_are_taken_up_by_their_time(members: Members) -> None:
    async def work() -> None:
        old = [event("old", critical=True), event("older", critical=True)]
        memory = await members.make(*old)
        memory.push(event("new"))
        assert categories(memory) == ["new", "older", "old"]
        memory.discard([old[0].id])
        await memory.refresh()
        assert categories(memory) == ["new", "older"]

    members.run(work)


def test_orchestrators_share_what_they_note(sharing: Members) -> None:
    async def work() -> None:
        one, other = await sharing.make(), await sharing.make()
        for number in range(30):
            (one if number % 2 else other).push(event(f"e{number}"))
        one.set_metric(metric("queue", 1))
        one.set_task(task("t-1"))
        other.set_task(task("t-2"))
        await one.refresh()
        await other.refresh()
        await one.refresh()
        expected = [f"e{number}" for number in range(29, -1, -1)]
        assert categories(one) == categories(other) == expected
        other.set_metric(metric("queue", 2))
        other.end_task("app:a", "t-1")
        await other.refresh()
        await one.refresh()
        assert values(one) == {"queue": 2}
        assert active(one) == ["t-2"]

    sharing.run(work)


def test_a_newcomer_gets_all_there_is(sharing: Members) -> None:
    async def work() -> None:
        first = await sharing.make()
        for number in range(60):
            first.push(event(f"e{number}"))
        first.set_metric(metric("queue", 1))
        first.set_task(task("t-1"))
        await first.stop()
        late = event("e99", critical=True)
        second = await sharing.make(late)
        assert categories(second) == ["e99", *[f"e{number}" for number in range(59, 10, -1)]]
        assert values(second) == {"queue": 1}
        assert active(second) == ["t-1"]

    sharing.run(work)


def test_two_stores_do_not_mix(server: RedisServer) -> None:
    ours, theirs = Members(server.url), Members(server.url)

    async def work() -> None:
        one, other = await ours.make(), await theirs.make()
        one.push(event("ours"))
        one.set_metric(metric("ours", 1))
        await one.refresh()
        await other.refresh()
        assert (categories(other), values(other)) == ([], {})
        await other.stop()

    ours.run(work)


def test_an_event_that_two_orchestrators_took_by_one_key_is_seen_once(sharing: Members) -> None:
    async def work() -> None:
        one, other = await sharing.make(), await sharing.make()
        one.push(event("build", mark="key"))
        other.push(event("build", mark="key"))
        await one.refresh()
        await other.refresh()
        await one.refresh()
        newcomer = await sharing.make()
        for memory in (one, other, newcomer):
            assert categories(memory) == ["build"]

    sharing.run(work)


def test_a_retry_elsewhere_is_told_of_the_event_that_is_there(members: Members) -> None:
    async def work() -> None:
        first = event("build", mark="key")
        memory = await members.make()
        assert memory.push(first) == first
        if memory.shared:
            await memory.stop()
            memory = await members.make()
        again = event("build", mark="key")
        assert memory.push(again).id == first.id
        assert categories(memory) == ["build"]

    members.run(work)


def test_much_at_once_is_given_without_waiting_for_more(
    sharing: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis, "IDLE_S", 1000.0)

    async def work() -> None:
        one, other = await sharing.make(), await sharing.make()
        for number in range(20):
            one.push(event(f"e{number}", data=f'"{"x" * 60_000}"'))
        await until(lambda: len(categories(other)) == 20, other)

    sharing.run(work)


def test_redis_is_given_no_more_bytes_than_have_room(server: RedisServer) -> None:
    limits = OperationalSettings(bytes_max=1_048_576)
    members = Members(server.url, limits)

    async def work() -> None:
        memory = await members.make()
        for number in range(60):
            memory.set_task(task(f"t{number}", f'"{"x" * 60_000}"'))
            memory.push(event(f"e{number}", data=f'"{"x" * 60_000}"'))
            await memory.refresh()
        newcomer = await members.make()
        for kept in (active(memory), categories(memory), categories(newcomer)):
            assert len(kept) == 17
        for each in (memory, newcomer):
            assert active(each) == [f"t{number}" for number in range(59, 42, -1)]
        client = Redis.from_url(server.url)
        try:
            for name in ("tasks", "changes", "events"):
                used = await client.memory_usage(f"recollect:{{{members.store_id}}}:{name}")
                assert used is not None, name
                assert used < 3 * limits.bytes_max, name
        finally:
            await client.aclose()

    members.run(work)


def test_a_change_that_nobody_can_read_holds_up_no_other(sharing: Members) -> None:
    async def work() -> None:
        one, other = await sharing.make(), await sharing.make()
        for place in ('["app:a","strange"]', "strange"):
            one._give(shared_log.Change("m", place, '{"of":"another version"}'))
        one.set_metric(metric("queue", 1))
        await one.refresh()
        await other.refresh()
        newcomer = await sharing.make()
        for memory in (one, other, newcomer):
            assert values(memory) == {"queue": 1}
            assert memory.degraded() is None

    sharing.run(work)


def test_what_one_erases_is_erased_everywhere(sharing: Members) -> None:
    async def work() -> None:
        one, other = await sharing.make(), await sharing.make()
        secret = event("outage", critical=True, data='"quixotic-zebra"')
        one.push(event("before"))
        one.push(secret)
        await one.refresh()
        await other.refresh()
        assert categories(other) == ["outage", "before"]
        other.discard([secret.id])
        await other.refresh()
        await one.refresh()
        newcomer = await sharing.make()
        for memory in (one, other, newcomer):
            assert categories(memory) == ["before"]

    sharing.run(work)


def test_who_missed_too_many_changes_reads_the_whole_state(
    sharing: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_log, "CHANGES_KEPT_MAX", 1)

    async def work() -> None:
        one, other = await sharing.make(), await sharing.make()
        one.set_metric(metric("first", 0))
        one.set_task(task("t-1"))
        await one.refresh()
        await other.refresh()
        assert active(other) == ["t-1"]
        one.end_task("app:a", "t-1")
        # Streams are trimmed by whole nodes of a hundred entries.
        for number in range(500):
            one.set_metric(metric("queue", number))
            await one.refresh()
        await other.refresh()
        assert values(other) == {"first": 0, "queue": 499}
        assert active(other) == []

    sharing.run(work)


def test_redis_that_lost_everything_is_given_it_again() -> None:
    with RedisServer() as server:
        members = Members(server.url)

        async def work() -> None:
            memory = await members.make()
            memory.push(event("before"))
            memory.set_metric(metric("queue", 1))
            memory.set_task(task("t-1"))
            await memory.refresh()
            server.kill()
            await until(lambda: memory.degraded() is not None, memory)
            memory.push(event("meanwhile"))
            assert categories(memory) == ["meanwhile", "before"]
            server.start()
            await until(lambda: memory.degraded() is None, memory)
            await memory.refresh()
            newcomer = await members.make()
            assert categories(newcomer) == ["meanwhile", "before"]
            assert (values(newcomer), active(newcomer)) == ({"queue": 1}, ["t-1"])

        members.run(work)


def test_redis_that_lost_everything_is_given_what_each_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Nobody catches up unless asked.
    monkeypatch.setattr(redis, "IDLE_S", 1000.0)
    with RedisServer() as server:
        members = Members(server.url)

        async def work() -> None:
            one, other = await members.make(), await members.make()
            other.push(event("known to the other"))
            other.set_metric(metric("queue", 1))
            await other.refresh()
            server.kill()
            for memory in (one, other):
                await until(lambda memory=memory: memory.degraded() is not None, memory)  # type: ignore[misc]
            server.start()
            for memory in (one, other):
                memory.push(event("noted"))
                await until(lambda memory=memory: memory.degraded() is None, memory)  # type: ignore[misc]
                await memory.refresh()
            await one.refresh()
            newcomer = await members.make()
            for memory in (one, other, newcomer):
                assert categories(memory) == ["noted", "noted", "known to the other"]
                assert values(memory) == {"queue": 1}

        members.run(work)


def test_a_redis_that_hangs_is_done_without_and_taken_up_again() -> None:
    with RedisServer() as server:
        members = Members(server.url)

        async def work() -> None:
            one = await members.make(timeout_ms=200)
            one.push(event("before"))
            await one.refresh()
            server.freeze()
            one.push(event("meanwhile"))
            await until(lambda: one.degraded() is not None, one)
            assert categories(one) == ["meanwhile", "before"]
            server.thaw()
            await until(lambda: one.degraded() is None, one)
            other = await members.make()
            assert categories(other) == ["meanwhile", "before"]

        members.run(work)


def test_a_silent_server_in_its_place_holds_up_neither_start_nor_stop() -> None:
    with RedisServer() as server:
        server.kill()
        members = Members(server.url)

        async def work() -> None:
            memory = await members.make(event("old", critical=True), timeout_ms=50)
            memory.push(event("new"))
            await until(lambda: memory.degraded() is not None, memory)
            assert categories(memory) == ["new", "old"]

        with SilentServer(server.socket) as silent:
            members.run(work)
            assert silent.connections
