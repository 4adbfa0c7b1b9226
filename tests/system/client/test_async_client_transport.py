"""The asyncio client against the same misbehaving server."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from recollect.client import AsyncMemoryClient, Breaker, Pool, Retry, Timeouts
from recollect.protocol import errors
from tests.harness.ports import free_port
from tests.system.client.standin import WAIT_S, Seen, StandIn, echo, silence


async def arrived(server: StandIn, count: int) -> None:
    await asyncio.to_thread(server.wait_for, count)


def test_a_call_is_answered() -> None:
    async def run(server: StandIn) -> None:
        async with AsyncMemoryClient(server.endpoint, agent_id="me") as client:
            answer: Any = await client.add_memory("text", timeout=5)
            assert answer["fields"] == {"content": "text"}
            assert server.seen[0].request.agent == "me"

    with StandIn() as server:
        asyncio.run(run(server))


def test_200_concurrent_calls_on_one_connection_each_get_their_own_answer() -> None:
    async def run(server: StandIn) -> None:
        async with AsyncMemoryClient(server.endpoint) as client:
            for _ in range(5):
                answers: list[Any] = await asyncio.wait_for(
                    asyncio.gather(*(client.get_memory(str(n)) for n in range(200))), WAIT_S
                )
                found = [answer["fields"]["memory_id"] for answer in answers]
                assert found == [str(n) for n in range(200)]
        assert len({seen.peer for seen in server.seen}) == 1

    with StandIn() as server:
        asyncio.run(run(server))


def test_answers_may_come_in_any_order() -> None:
    held: list[Seen] = []

    def backwards(server: StandIn, seen: Seen) -> None:
        held.append(seen)
        if len(held) == 50:
            for one in reversed(held):
                echo(server, one)

    async def run(server: StandIn) -> None:
        async with AsyncMemoryClient(server.endpoint) as client:
            answers: list[Any] = await asyncio.gather(
                *(client.get_memory(str(n)) for n in range(50))
            )
            found = [answer["fields"]["memory_id"] for answer in answers]
            assert found == [str(n) for n in range(50)]

    with StandIn(backwards) as server:
        asyncio.run(run(server))


def test_no_more_calls_are_in_flight_than_allowed() -> None:
    async def run(server: StandIn) -> None:
        client = AsyncMemoryClient(
            server.endpoint, pool=Pool(in_flight_max=4), breaker=Breaker(fail_max=100)
        )
        async with client:
            calls = [asyncio.create_task(client.get_memory("m", timeout=0.5)) for _ in range(4)]
            await arrived(server, 4)
            with pytest.raises(errors.RequestTimeout, match="in_flight_max"):
                await client.get_memory("m", timeout=0.05)
            assert len(server.seen) == 4
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(result, errors.RequestTimeout) for result in results)
            server.script = echo
            await asyncio.gather(*(client.get_memory("m") for _ in range(40)))

    with StandIn(silence) as server:
        asyncio.run(run(server))


def test_a_cancelled_call_frees_its_place_and_does_not_count_as_a_failure() -> None:
    async def run(server: StandIn) -> None:
        client = AsyncMemoryClient(
            server.endpoint, pool=Pool(in_flight_max=2), breaker=Breaker(fail_max=1)
        )
        async with client:
            for n in range(1, 6):
                call = asyncio.create_task(client.get_memory("m"))
                await arrived(server, n)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            assert client.get_circuit_breaker_status()["failures"] == 0
            server.script = echo
            assert (await client.get_memory("m"))["status"] == "success"

    with StandIn(silence) as server:
        asyncio.run(run(server))


def test_what_was_given_up_before_it_was_sent_is_not_sent() -> None:
    async def run(server: StandIn) -> None:
        async with AsyncMemoryClient(server.endpoint) as client:
            await client.get_memory("first")
            calls = [asyncio.create_task(client.get_memory(str(n))) for n in range(4)]
            # One turn of the loop: all have begun, and what they send leaves at its end.
            await asyncio.sleep(0)
            calls[1].cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert calls[1].cancelled()
            await client.get_memory("last")
        asked = [seen.body["memory_id"] for seen in server.seen]
        assert asked == ["first", "0", "2", "3", "last"]

    with StandIn() as server:
        asyncio.run(run(server))


def test_each_call_has_its_own_time() -> None:
    held: list[Seen] = []

    def script(server: StandIn, seen: Seen) -> None:
        if seen.request.op == "report_errors" or seen.body["memory_id"] == "first":
            echo(server, seen)
        elif seen.body["memory_id"] == "patient":
            held.append(seen)
        elif seen.body["memory_id"] == "go on":
            echo(server, held[0])

    async def run(server: StandIn) -> None:
        async with AsyncMemoryClient(server.endpoint, retry=Retry(attempts_max=1)) as client:
            await client.get_memory("first")
            patient = asyncio.create_task(client.get_memory("patient", timeout=WAIT_S))
            hasty = [client.get_memory(str(n), timeout=0.05 + n / 100) for n in range(3)]
            for failed in await asyncio.gather(*hasty, return_exceptions=True):
                assert isinstance(failed, errors.RequestTimeout)
            assert not patient.done()
            with pytest.raises(errors.RequestTimeout):
                await client.get_memory("go on", timeout=0.05)
            assert (await patient)["status"] == "success"

    with StandIn(script) as server:
        asyncio.run(run(server))


def test_late_replies_are_passed_over() -> None:
    late: list[Seen] = []

    def script(server: StandIn, seen: Seen) -> None:
        if seen.request.op == "report_errors":
            echo(server, seen)
        elif seen.body["memory_id"] == "slow":
            late.append(seen)
        else:
            for forgotten in late:
                echo(server, forgotten)
            echo(server, seen)

    async def run(server: StandIn) -> None:
        async with AsyncMemoryClient(server.endpoint) as client:
            # Connected by now, however busy the machine is.
            await client.get_memory("first")
            for n in range(5):
                with pytest.raises(errors.RequestTimeout):
                    await client.get_memory("slow", timeout=0.02)
                answer: Any = await client.get_memory(f"fast {n}")
                assert answer["fields"]["memory_id"] == f"fast {n}"

    with StandIn(script) as server:
        asyncio.run(run(server))


def test_nobody_listening_is_told_soon() -> None:
    async def run() -> None:
        endpoint = f"tcp://127.0.0.1:{free_port()}"
        async with AsyncMemoryClient(endpoint, timeouts=Timeouts(connect_s=0.2)) as client:
            begin_s = time.monotonic()
            with pytest.raises(errors.Unreachable, match="recollect up"):
                await client.get_memory("m")
            assert time.monotonic() - begin_s < 2.0

    asyncio.run(run())


def test_all_calls_in_flight_survive_a_kill_and_restart_with_the_same_keys() -> None:
    async def run(server: StandIn) -> None:
        async with AsyncMemoryClient(server.endpoint, timeout=WAIT_S) as client:
            calls = [asyncio.create_task(client.add_memory(str(n))) for n in range(50)]
            await arrived(server, 50)
            keys = {seen.request.key for seen in server.seen}
            await asyncio.to_thread(server.stop)
            server.script = echo
            server.start()
            answers: list[Any] = await asyncio.wait_for(asyncio.gather(*calls), WAIT_S)
            assert [a["fields"]["content"] for a in answers] == [str(n) for n in range(50)]
            again = [s for s in server.seen[50:] if s.request.op == "add_memory"]
            assert {seen.request.key for seen in again} == keys

    with StandIn(silence) as server:
        asyncio.run(run(server))


def test_a_dead_server_is_noticed_at_once() -> None:
    async def run(server: StandIn) -> None:
        client = AsyncMemoryClient(server.endpoint, timeout=60, retry=Retry(attempts_max=1))
        async with client:
            call = asyncio.create_task(client.get_memory("m"))
            await arrived(server, 1)
            begin_s = time.monotonic()
            await asyncio.to_thread(server.stop)
            with pytest.raises(errors.ConnectionLost):
                await call
            assert time.monotonic() - begin_s < 1.0

    with StandIn(silence) as server:
        asyncio.run(run(server))


def test_garbage_is_a_broken_line_and_the_call_is_tried_again() -> None:
    count = 0

    def script(server: StandIn, seen: Seen) -> None:
        nonlocal count
        count += 1
        if count == 1:
            server.send_raw(seen, b"garbage")
        else:
            echo(server, seen)

    async def run(server: StandIn) -> None:
        async with AsyncMemoryClient(server.endpoint) as client:
            assert (await client.get_memory("m"))["status"] == "success"
            assert (await client.get_memory("m"))["status"] == "success"

    with StandIn(script) as server:
        asyncio.run(run(server))


def test_closing_ends_the_calls_under_way_and_refuses_new_ones() -> None:
    async def run(server: StandIn) -> None:
        client = AsyncMemoryClient(server.endpoint, timeout=60)
        calls = [asyncio.create_task(client.get_memory("m")) for _ in range(5)]
        await arrived(server, 5)
        await client.close()
        await client.close()
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(result, errors.ClientClosed)
        with pytest.raises(errors.ClientClosed):
            await client.get_memory("m")

    with StandIn(silence) as server:
        asyncio.run(run(server))


def test_a_client_belongs_to_the_loop_that_used_it_first() -> None:
    async def ask(client: AsyncMemoryClient) -> None:
        await client.get_memory("m")

    with StandIn() as server:
        client = AsyncMemoryClient(server.endpoint)
        asyncio.run(ask(client))
        with pytest.raises(RuntimeError, match="event loop"):
            asyncio.run(ask(client))
        asyncio.run(client.close())


def test_errors_are_reported_beside_the_calls() -> None:
    async def run(server: StandIn) -> None:
        async with AsyncMemoryClient(server.endpoint, agent_id="me") as client:
            with pytest.raises(errors.RequestTimeout):
                await client.get_memory("m", timeout=0.05)
            server.script = echo
            await client.get_memory("m")
            await arrived(server, 3)
            assert server.seen[2].request.op == "report_errors"
            assert server.seen[2].body["errors"][0]["code"] == "timeout"

    with StandIn(silence) as server:
        asyncio.run(run(server))


def test_errors_can_be_returned_instead_of_raised() -> None:
    async def run(server: StandIn) -> None:
        async with AsyncMemoryClient(server.endpoint, raise_errors=False) as client:
            answer: Any = await client.get_memory("m", timeout=0.05)
            assert answer["error"]["code"] == "timeout"

    with StandIn(silence) as server:
        asyncio.run(run(server))
