"""The outbox: writes made while the orchestrator is away arrive once, in order, when it is back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recollect.client import AsyncMemoryClient, MemoryClient, Retry, Timeouts
from recollect.client.encoding import Speaker
from recollect.protocol import errors
from recollect.protocol.operations import AddMemory
from tests.system.client.standin import WAIT_S, Seen, StandIn, echo, silence

QUICK = Timeouts(connect_s=0.05)


def written(server: StandIn) -> list[str]:
    return [seen.body["content"] for seen in server.seen if seen.request.op == "add_memory"]


def test_writes_wait_while_the_server_is_away_and_arrive_in_order(tmp_path: Path) -> None:
    with StandIn() as server:
        path = tmp_path / "outbox"
        with MemoryClient(server.endpoint, outbox=path, agent_id="me", timeouts=QUICK) as client:
            assert client.add_memory("0")["status"] == "success"
            server.stop()
            for n in range(1, 6):
                answer: Any = client.add_memory(str(n))
                assert answer["status"] == "queued"
                assert answer["queued"] == n
                assert answer["idempotency_key"]
            assert client.outbox_status()["queued"] == 5
            server.start()
            assert client.flush_outbox(WAIT_S)["queued"] == 0
            assert client.add_memory("6")["status"] == "success"
        assert written(server) == [str(n) for n in range(7)]
        delivered = [seen.request for seen in server.seen if seen.request.op == "add_memory"]
        assert len({request.key for request in delivered}) == 7
        assert {request.agent for request in delivered} == {"me"}


def test_a_write_of_unknown_fate_is_delivered_again_by_its_key(tmp_path: Path) -> None:
    with StandIn(silence) as server:
        with MemoryClient(server.endpoint, outbox=tmp_path / "outbox", timeouts=QUICK) as client:
            answer: Any = client.add_memory("text", timeout=0.1)
            assert answer["status"] == "queued"
            server.wait_for(2)
            server.script = echo
            server.stop()
            server.start()
            client.flush_outbox(WAIT_S)
        keys = {seen.request.key for seen in server.seen if seen.request.op == "add_memory"}
        assert keys == {answer["idempotency_key"]}


def test_reads_and_refusals_do_not_go_to_the_outbox(tmp_path: Path) -> None:
    def refuse(server: StandIn, seen: Seen) -> None:
        server.refuse(seen, errors.InvalidArgument("bad"))

    with (
        StandIn(refuse) as server,
        MemoryClient(server.endpoint, outbox=tmp_path / "outbox", timeouts=QUICK) as client,
    ):
        with pytest.raises(errors.InvalidArgument):
            client.add_memory("text")
        server.stop()
        with pytest.raises(errors.Unreachable):
            client.get_memory("m")
        assert client.outbox_status()["queued"] == 0


def test_what_is_written_under_a_lease_does_not_wait_in_the_outbox(tmp_path: Path) -> None:
    with (
        StandIn() as server,
        MemoryClient(server.endpoint, outbox=tmp_path / "outbox", timeouts=QUICK) as client,
    ):
        client.set_fence("work", 7)
        client.add_memory("in time")
        assert [seen.request.fence for seen in server.seen] == ["work/7"]
        server.stop()
        with pytest.raises(errors.TransportError):
            client.add_memory("too late, when it comes", timeout=0.5)
        assert client.outbox_status()["queued"] == 0
        client.clear_fence()
        answer: Any = client.add_memory("whenever", timeout=0.5)
        assert answer["status"] == "queued"


def test_what_the_server_refuses_is_put_aside_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    def script(server: StandIn, seen: Seen) -> None:
        if seen.request.op == "add_memory" and seen.body["content"] == "bad":
            server.refuse(seen, errors.NotFound("no such parent"))
        else:
            echo(server, seen)

    with StandIn(script) as server:
        with MemoryClient(server.endpoint, outbox=tmp_path / "outbox", timeouts=QUICK) as client:
            server.stop()
            for content in ("one", "bad", "two"):
                client.add_memory(content)
            server.start()
            status = client.flush_outbox(WAIT_S)
            assert (status["queued"], status["refused"]) == (0, 1)
            client.get_memory("m")
            server.wait_for(5)
            reports = [s.body for s in server.seen if s.request.op == "report_errors"]
            codes = {error["code"] for report in reports for error in report["errors"]}
            assert "not_found" in codes
        assert written(server) == ["one", "bad", "two"]


def test_delivery_waits_as_long_as_the_server_asks(tmp_path: Path) -> None:
    came_at_s: list[float] = []

    def limited(server: StandIn, seen: Seen) -> None:
        came_at_s.append(time.monotonic())
        if len(came_at_s) == 1:
            server.refuse(seen, errors.RateLimited("too many", retry_after_ms=300))
        else:
            echo(server, seen)

    with StandIn(limited) as server:
        server.stop()
        with MemoryClient(
            server.endpoint,
            outbox=tmp_path / "outbox",
            timeouts=QUICK,
            retry=Retry(backoff_ms=5, backoff_ms_max=10),
        ) as client:
            client.add_memory("text")
            server.start()
            assert client.flush_outbox(WAIT_S)["queued"] == 0
    assert len(came_at_s) == 2
    assert came_at_s[1] - came_at_s[0] >= 0.3


def test_flushing_in_vain_ends_with_its_timeout(tmp_path: Path) -> None:
    with (
        StandIn() as server,
        MemoryClient(server.endpoint, outbox=tmp_path / "outbox", timeouts=QUICK) as client,
    ):
        server.stop()
        client.add_memory("text")
        with pytest.raises(errors.RequestTimeout) as caught:
            client.flush_outbox(0.2)
        assert caught.value.details["queued"] == 1


def test_what_one_process_left_behind_the_next_one_delivers(tmp_path: Path) -> None:
    with StandIn() as server:
        path = tmp_path / "outbox"
        server.stop()
        script = (
            "import sys\n"
            "from recollect.client import MemoryClient, Timeouts\n"
            "client = MemoryClient(sys.argv[1], outbox=sys.argv[2], "
            "timeouts=Timeouts(connect_s=0.05))\n"
            "for n in range(5): assert client.add_memory(str(n))['status'] == 'queued'\n"
            "import os; os._exit(0)\n"
        )
        subprocess.run(
            [sys.executable, "-c", script, server.endpoint, str(path)], check=True, timeout=WAIT_S
        )
        server.start()
        with MemoryClient(server.endpoint, outbox=path) as client:
            client.flush_outbox(WAIT_S)
        assert written(server) == [str(n) for n in range(5)]


def test_two_clients_on_one_file_deliver_each_write_once_and_in_order(tmp_path: Path) -> None:
    with StandIn() as server:
        path = tmp_path / "outbox"
        retry = Retry(backoff_ms=5, backoff_ms_max=20)
        one = MemoryClient(server.endpoint, outbox=path, timeouts=QUICK, retry=retry)
        two = MemoryClient(server.endpoint, outbox=path, timeouts=QUICK, retry=retry)
        with one, two:
            server.stop()
            for n in range(20):
                (one, two)[n % 2].add_memory(str(n))
            server.start()
            one.flush_outbox(WAIT_S)
            two.flush_outbox(WAIT_S)
        assert written(server) == [str(n) for n in range(20)]


def test_threads_that_write_meanwhile_lose_and_repeat_nothing(tmp_path: Path) -> None:
    with StandIn() as server:
        with MemoryClient(server.endpoint, outbox=tmp_path / "outbox", timeouts=QUICK) as client:
            server.stop()
            answers: list[str] = []

            def write(start: int) -> None:
                for n in range(start, start + 10):
                    answers.append(client.add_memory(str(n))["status"])

            threads = [threading.Thread(target=write, args=(n * 10,)) for n in range(5)]
            for thread in threads:
                thread.start()
            server.start()
            for thread in threads:
                thread.join(WAIT_S)
            client.flush_outbox(WAIT_S)
        assert len(answers) == 50
        keys: dict[Any, str] = {}
        for seen in server.seen:
            if seen.request.op == "add_memory":
                keys[seen.request.key] = seen.body["content"]
        assert sorted(keys.values(), key=int) == [str(n) for n in range(50)]


def test_the_asyncio_client_has_the_same_outbox(tmp_path: Path) -> None:
    async def run(server: StandIn) -> None:
        path = tmp_path / "outbox"
        async with AsyncMemoryClient(server.endpoint, outbox=path, timeouts=QUICK) as client:
            assert (await client.add_memory("0"))["status"] == "success"
            await asyncio.to_thread(server.stop)
            for n in range(1, 4):
                assert (await client.add_memory(str(n)))["status"] == "queued"
            assert (await client.outbox_status())["queued"] == 3
            server.start()
            assert (await client.flush_outbox(WAIT_S))["queued"] == 0

    with StandIn() as server:
        asyncio.run(run(server))
        assert written(server) == ["0", "1", "2", "3"]


def test_a_write_for_somebody_else_keeps_who_that_is(tmp_path: Path) -> None:
    async def run(server: StandIn) -> None:
        path = tmp_path / "outbox"
        async with AsyncMemoryClient(
            server.endpoint, outbox=path, agent_id="gateway", timeouts=QUICK
        ) as client:
            bob = Speaker(agent="bob", task="errand")
            await client.call(AddMemory("at once"), speaker=bob)
            await asyncio.to_thread(server.stop)
            answer: Any = await client.call(AddMemory("later"), speaker=bob)
            assert answer["status"] == "queued"
            # The outbox writes no key down, and knows no lease: these are not for later.
            for speaker in (Speaker(agent="eve", bearer="k"), Speaker(agent="eve", fence="work/7")):
                with pytest.raises(errors.TransportError):
                    await client.call(AddMemory("never", timeout=0.5), speaker=speaker)
            server.start()
            await client.flush_outbox(WAIT_S)

    with StandIn() as server:
        asyncio.run(run(server))
        added = [seen.request for seen in server.seen if seen.request.op == "add_memory"]
        assert [(request.agent, request.task) for request in added] == [("bob", "errand")] * 2


@contextmanager
def no_room_for_threads() -> Iterator[None]:
    """Nobody has memory for a stack as large as this."""
    threading.stack_size(2**47)
    try:
        yield
    finally:
        threading.stack_size(0)


def test_a_thread_that_cannot_start_costs_no_write_and_the_next_one_delivers(
    tmp_path: Path,
) -> None:
    with StandIn() as server:
        with MemoryClient(server.endpoint, outbox=tmp_path / "outbox", timeouts=QUICK) as client:
            server.stop()
            with no_room_for_threads():
                answer: Any = client.add_memory("kept")
            assert answer["status"] == "queued"
            server.start()
            answer = client.add_memory("behind it")
            assert answer["status"] == "queued"
            assert client.flush_outbox(WAIT_S)["queued"] == 0
        assert written(server) == ["kept", "behind it"]
