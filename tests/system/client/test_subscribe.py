"""Subscriptions of both clients over real processes: nothing missed or twice, all in order."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recollect import AsyncMemoryClient, MemoryClient
from recollect.client import Retry
from recollect.client.subscribing import Subscription
from recollect.protocol import errors
from tests.harness.processes import OrchestratorProcess

PATIENCE_S = 30.0
QUICK = Retry(backoff_ms_max=100)


@pytest.fixture(scope="module")
def process(
    storage: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OrchestratorProcess]:
    with OrchestratorProcess(tmp_path_factory.mktemp("feed") / "data") as process:
        yield process


class Following:
    """Somebody who takes down what a subscription tells, in a thread of their own."""

    def __init__(self, work: Callable[[list[Any]], None]) -> None:
        self.seen: list[Any] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[list[Any]], None]) -> None:
        try:
            work(self.seen)
        except BaseException as error:
            self.error = error

    def wait_for(self, seq: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not (self.seen and self.seen[-1]["seq"] >= seq):
            assert self.error is None, self.error
            assert time.monotonic() < deadline, f"{seq} did not come: {self.seen[-3:]}"
            time.sleep(0.005)

    def join(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "it does not end"


def follow_blocking(client: MemoryClient, **options: Any) -> Following:
    subscription = client.subscribe(**options)
    return Following(partial(note, subscription))


def note(subscription: Subscription, seen: list[Any]) -> None:
    for change in subscription:
        seen.append(change)


def follow_async(endpoint: str, started: threading.Event, **options: Any) -> Following:
    async def follow(seen: list[Any]) -> None:
        async with (
            AsyncMemoryClient(endpoint, retry=QUICK) as client,
            client.subscribe(**options) as changes,
        ):
            started.set()
            async for change in changes:
                seen.append(change)

    return Following(lambda seen: asyncio.run(follow(seen)))


def test_every_acknowledged_write_is_told_once_and_in_order_over_kills(tmp_path: Path) -> None:
    started = threading.Event()
    acknowledged: list[tuple[int, str]] = []
    with (
        OrchestratorProcess(tmp_path / "data") as process,
        process.client(retry=QUICK) as client,
    ):
        blocking = follow_blocking(client, namespace="user:alice")
        awaiting = follow_async(process.endpoint, started, namespace="user:alice")
        assert started.wait(PATIENCE_S)
        for number in range(45):
            if number % 15 == 10:
                process.kill()
                process.start()
            for home in ("user:alice", "user:bob"):
                added = client.add_memory(f"Fact {number}", namespace=home, timeout=PATIENCE_S)
                if home == "user:alice":
                    acknowledged.append((added["seq"], added["memory_id"]))
        for following in (blocking, awaiting):
            following.wait_for(acknowledged[-1][0])
            told = [(change["seq"], change["subject"]) for change in following.seen]
            assert told == acknowledged
        status = client.get_circuit_breaker_status()
        assert status["state"] == "closed"
    blocking.join()
    assert blocking.error is None


def test_one_goes_on_where_another_ended(process: OrchestratorProcess) -> None:
    with process.client() as client:
        subscription = client.subscribe(namespace="user:resumed")
        ids = []
        for number in range(3):
            ids.append(client.add_memory(f"{number}", namespace="user:resumed")["memory_id"])
            client.add_memory("Elsewhere", namespace="user:other")
        # What was written between `subscribe` and the first look is not missed.
        assert next(subscription)["subject"] == ids[0]
        subscription.close()
        assert list(subscription) == []
        with client.subscribe(subscription.seq, namespace="user:resumed") as rest:
            assert [next(rest)["subject"] for _ in range(2)] == ids[1:]
            # Also behind what was passed by at the end.
            assert rest.seq == client.ping()["seq"]


@pytest.mark.parametrize("close", ["the subscription", "the client"])
def test_closing_ends_it_at_once(process: OrchestratorProcess, close: str) -> None:
    with process.client() as client:
        subscription = client.subscribe(namespace="user:quiet")
        following = Following(partial(note, subscription))
        assert client.ping()["ready"]
        (subscription if close == "the subscription" else client).close()
        following.join()
        assert (following.seen, following.error) == ([], None)


@pytest.mark.parametrize("close", ["the subscription", "the client"])
def test_closing_ends_an_asynchronous_one_at_once(process: OrchestratorProcess, close: str) -> None:
    async def scene() -> list[Any]:
        client = AsyncMemoryClient(process.endpoint)
        async with client.subscribe(namespace="user:quiet") as subscription:

            async def follow() -> list[Any]:
                return [change async for change in subscription]

            following = asyncio.create_task(follow())
            # Other calls go on beside it.
            assert (await client.ping())["ready"]
            if close == "the subscription":
                await subscription.aclose()
            else:
                await client.close()
            seen = await asyncio.wait_for(following, PATIENCE_S)
            await client.close()
            return seen

    assert asyncio.run(scene()) == []


def test_a_task_that_follows_can_be_cancelled(process: OrchestratorProcess) -> None:
    async def scene() -> None:
        async with AsyncMemoryClient(process.endpoint) as client:

            async def follow() -> None:
                async for _ in client.subscribe(namespace="user:quiet"):
                    raise AssertionError("nothing was written")

            following = asyncio.create_task(follow())
            await client.ping()
            following.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(following, PATIENCE_S)
            assert (await client.ping())["ready"]

    asyncio.run(scene())


def test_what_no_retry_can_mend_is_raised(process: OrchestratorProcess) -> None:
    with process.client() as client, client.subscribe(1 << 40) as subscription:
        with pytest.raises(errors.ChangesAhead):
            next(subscription)
        with pytest.raises(errors.InvalidArgument):
            client.subscribe(namespace="nowhere")
