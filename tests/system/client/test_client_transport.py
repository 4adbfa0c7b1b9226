"""The blocking client against a server that misbehaves in every way we could think of."""

from __future__ import annotations

import os
import socket as plain_socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from recollect.client import Breaker, MemoryClient, Pool, Retry, Timeouts
from recollect.protocol import errors
from recollect.protocol.envelope import Reply
from tests.harness.children import wait_for_child
from tests.harness.ports import free_port
from tests.system.client.standin import WAIT_S, Seen, StandIn, echo, silence


def in_turn(*scripts: Callable[[StandIn, Seen], None]) -> Callable[[StandIn, Seen], None]:
    """Answer the first request by the first script, and so on; all further ones by the last."""
    left = list(scripts)

    def script(server: StandIn, seen: Seen) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(server, seen)

    return script


def seconds(work: Callable[[], Any]) -> float:
    begin_s = time.monotonic()
    work()
    return time.monotonic() - begin_s


def test_a_call_carries_its_fields_and_who_speaks() -> None:
    with StandIn() as server, MemoryClient(server.endpoint, agent_id="me") as client:
        client.set_session_id("talk")
        answer: Any = client.add_memory("text", tags=["a"], timeout=5)
        assert answer == {
            "status": "success",
            "op": "add_memory",
            "fields": {"content": "text", "tags": ["a"]},
        }
        request = server.seen[0].request
        assert (request.agent, request.session) == ("me", "talk")
        assert request.key is not None
        assert request.deadline_ms is not None
        assert abs(request.deadline_ms - (time.time() + 5) * 1000) < 2000


def test_an_error_is_raised_as_its_type_or_returned_as_its_dict() -> None:
    def missing(server: StandIn, seen: Seen) -> None:
        server.refuse(seen, errors.NotFound("no such memory", memory_id="m"))

    with StandIn(missing) as server:
        with MemoryClient(server.endpoint) as client:
            with pytest.raises(errors.NotFound) as caught:
                client.get_memory("m")
            assert caught.value.details == {"memory_id": "m"}
        with MemoryClient(server.endpoint, raise_errors=False) as client:
            answer: Any = client.get_memory("m")
            assert answer["status"] == "error"
            assert answer["error"]["code"] == "not_found"


def test_nobody_listening_is_told_soon_and_says_what_to_do() -> None:
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    with MemoryClient(endpoint, timeouts=Timeouts(connect_s=0.2)) as client:
        begin_s = time.monotonic()
        with pytest.raises(errors.Unreachable, match="recollect up"):
            client.get_memory("m")
        assert time.monotonic() - begin_s < 2.0


def test_a_server_that_is_no_zeromq_server_is_unreachable() -> None:
    with plain_socket.create_server(("127.0.0.1", 0)) as mute:
        endpoint = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        with (
            MemoryClient(endpoint, timeouts=Timeouts(connect_s=0.2)) as client,
            pytest.raises(errors.Unreachable),
        ):
            client.get_memory("m")


def test_no_answer_ends_with_the_timeout_and_not_much_later() -> None:
    with StandIn(silence) as server, MemoryClient(server.endpoint) as client:
        begin_s = time.monotonic()
        with pytest.raises(errors.RequestTimeout):
            client.get_memory("m", timeout=0.3)
        assert 0.28 < time.monotonic() - begin_s < 2.0


def test_a_late_reply_is_never_taken_for_the_answer_to_another_call() -> None:
    late: list[Seen] = []

    def script(server: StandIn, seen: Seen) -> None:
        if seen.body.get("memory_id") == "slow":
            late.append(seen)
            return
        for forgotten in late:
            server.answer(forgotten, {"status": "success", "of": "slow"})
        server.answer(seen, {"status": "success", "of": seen.body.get("memory_id")})

    with StandIn(script) as server, MemoryClient(server.endpoint) as client:
        for n in range(20):
            with pytest.raises(errors.RequestTimeout):
                client.get_memory("slow", timeout=0.02)
            answer: Any = client.get_memory(f"fast {n}")
            assert answer["of"] == f"fast {n}"
            client.reset_circuit_breaker()


def test_replies_with_other_ids_are_passed_over() -> None:
    def script(server: StandIn, seen: Seen) -> None:
        for wrong in (987654321, "text", -1):
            body = msgspec.msgpack.encode({"status": "success", "wrong": True})
            reply = Reply(v=1, id=wrong, now_ms=int(time.time() * 1000), body=body)
            server.send_raw(seen, msgspec.msgpack.encode(reply))
        echo(server, seen)

    with StandIn(script) as server, MemoryClient(server.endpoint) as client:
        for _ in range(5):
            assert "wrong" not in client.get_memory("m")


@pytest.mark.parametrize("frame", [b"", b"\xc1", b"garbage", b"\x84\xa1v\x01" * 3, b"\x90"])
def test_garbage_is_a_broken_line_and_the_call_is_tried_again(frame: bytes) -> None:
    def garbage(server: StandIn, seen: Seen) -> None:
        server.send_raw(seen, frame)

    with StandIn(in_turn(garbage, echo)) as server, MemoryClient(server.endpoint) as client:
        assert client.get_memory("m")["status"] == "success"
        assert len(server.seen) >= 2
    with (
        StandIn(garbage) as server,
        MemoryClient(server.endpoint) as client,
        pytest.raises(errors.ConnectionLost, match="Recollect protocol"),
    ):
        client.get_memory("m")


def test_a_write_whose_reply_is_lost_with_the_line_is_sent_again_by_the_same_key() -> None:
    with StandIn(silence) as server, MemoryClient(server.endpoint) as client:
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(client.add_memory, "text")
            server.wait_for(1)
            server.stop()
            server.script = echo
            server.start()
            assert answer.result(WAIT_S)["status"] == "success"
        first, second = (seen.request for seen in server.seen[:2])
        assert first.key == second.key
        assert first.body == second.body


def test_a_dead_server_is_noticed_at_once_and_not_after_the_timeout() -> None:
    with StandIn(silence) as server:
        client = MemoryClient(
            server.endpoint, timeout=60, retry=Retry(attempts_max=1), raise_errors=False
        )
        with client, ThreadPoolExecutor(1) as pool:
            answer = pool.submit(client.get_memory, "m")
            server.wait_for(1)
            begin_s = time.monotonic()
            server.stop()
            error: Any = answer.result(WAIT_S)
            assert error["error"]["code"] == "connection_lost"
            assert time.monotonic() - begin_s < 1.0


def test_an_idle_line_survives_a_restart_of_the_server() -> None:
    with StandIn() as server, MemoryClient(server.endpoint) as client:
        for _ in range(3):
            assert client.get_memory("m")["status"] == "success"
            server.stop()
            server.start()
        # The events of the restarts are stale and must not fail a call that is merely slow.
        release = threading.Event()

        def slow(server: StandIn, seen: Seen) -> None:
            release.wait(0.2)
            echo(server, seen)

        server.script = slow
        assert client.get_memory("m")["status"] == "success"


def test_50_threads_at_once_each_get_their_own_answer() -> None:
    with StandIn() as server, MemoryClient(server.endpoint, pool=Pool(64)) as client:
        barrier = threading.Barrier(50)

        def work(n: int) -> None:
            barrier.wait(WAIT_S)
            for round_ in range(20):
                answer: Any = client.get_memory(f"{n}-{round_}")
                assert answer["fields"]["memory_id"] == f"{n}-{round_}"

        with ThreadPoolExecutor(50) as pool:
            for done in [pool.submit(work, n) for n in range(50)]:
                done.result(WAIT_S)
        assert len(server.seen) == 1000
        assert len({seen.peer for seen in server.seen}) <= 50


def test_no_more_lines_are_opened_than_allowed_and_waiting_ends_with_the_deadline() -> None:
    with StandIn() as server, MemoryClient(server.endpoint, pool=Pool(3)) as client:
        with ThreadPoolExecutor(30) as pool:
            list(pool.map(client.get_memory, ["m"] * 300, timeout=WAIT_S))
        assert len({seen.peer for seen in server.seen}) <= 3

        server.script = silence
        arrived = len(server.seen)
        with ThreadPoolExecutor(3) as pool:
            busy = [pool.submit(client.get_memory, "m", timeout=2.0) for _ in range(3)]
            server.wait_for(arrived + 3)
            with pytest.raises(errors.RequestTimeout, match="connections_max"):
                client.get_memory("m", timeout=0.1)
            assert all(isinstance(job.exception(WAIT_S), errors.RequestTimeout) for job in busy)


def test_a_slow_answer_holds_up_nobody_else() -> None:
    release = threading.Event()
    held: list[Seen] = []

    def script(server: StandIn, seen: Seen) -> None:
        if seen.body["memory_id"] == "slow":
            held.append(seen)
            return
        echo(server, seen)
        if release.is_set() and held:
            echo(server, held.pop())

    with (
        StandIn(script) as server,
        MemoryClient(server.endpoint) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        slow = pool.submit(client.get_memory, "slow")
        server.wait_for(1)
        for _ in range(50):
            client.get_memory("fast")
        assert not slow.done()
        release.set()
        client.get_memory("fast")
        assert slow.result(WAIT_S)["status"] == "success"


def test_closing_ends_the_calls_under_way() -> None:
    with StandIn(silence) as server:
        client = MemoryClient(server.endpoint, timeout=60)
        with ThreadPoolExecutor(5) as pool:
            calls = [pool.submit(client.get_memory, "m") for _ in range(5)]
            server.wait_for(5)
            client.close()
            for call in calls:
                assert isinstance(call.exception(WAIT_S), errors.ClientClosed)


def test_clocks_that_differ_by_hours_cost_one_more_attempt_and_then_none() -> None:
    def strict(server: StandIn, seen: Seen) -> None:
        now_ms = time.time() * 1000 + server.clock_offset_ms
        if seen.request.deadline_ms is None or seen.request.deadline_ms < now_ms:
            server.refuse(seen, errors.DeadlineExceeded("expired"))
        else:
            echo(server, seen)

    with StandIn(strict) as server, MemoryClient(server.endpoint) as client:
        server.clock_offset_ms = 5 * 3600 * 1000
        assert client.get_memory("m")["status"] == "success"
        assert len(server.seen) == 2
        assert client.get_memory("m")["status"] == "success"
        assert len(server.seen) == 3
        server.clock_offset_ms = -5 * 3600 * 1000
        assert client.get_memory("m")["status"] == "success"
        assert len(server.seen) == 4


def test_an_overloaded_server_is_left_alone_as_long_as_it_asks() -> None:
    def busy(server: StandIn, seen: Seen) -> None:
        server.refuse(seen, errors.Overloaded("busy", retry_after_ms=300))

    with StandIn(in_turn(busy, echo)) as server, MemoryClient(server.endpoint) as client:
        assert seconds(lambda: client.get_memory("m")) >= 0.3


def test_the_circuit_opens_for_a_dead_server_and_closes_when_it_is_back() -> None:
    with StandIn() as server:
        client = MemoryClient(
            server.endpoint,
            timeouts=Timeouts(connect_s=0.05),
            breaker=Breaker(fail_max=3, reset_timeout_s=0.3),
        )
        with client:
            client.get_memory("m")
            server.stop()
            for _ in range(3):
                with pytest.raises(errors.TransportError) as caught:
                    client.get_memory("m")
                assert not isinstance(caught.value, errors.CircuitOpen)
            assert client.get_circuit_breaker_status()["state"] == "open"
            with pytest.raises(errors.CircuitOpen):
                client.get_memory("m")
            server.start()
            give_up_at_s = time.monotonic() + WAIT_S
            while time.monotonic() < give_up_at_s:
                try:
                    client.get_memory("m")
                    break
                except errors.TransportError:
                    threading.Event().wait(0.05)
            assert client.get_circuit_breaker_status()["state"] == "closed"
            client.get_memory("m")


def test_what_went_wrong_is_reported_once_the_server_is_back() -> None:
    with StandIn() as server:
        client = MemoryClient(
            server.endpoint, agent_id="me", timeouts=Timeouts(connect_s=0.05), raise_errors=False
        )
        with client:
            client.get_memory("m")
            server.stop()
            client.get_memory("m")
            client.get_memory("m")
            server.start()
            give_up_at_s = time.monotonic() + WAIT_S
            while client.get_memory("m")["status"] != "success":
                assert time.monotonic() < give_up_at_s
            (report,) = (seen for seen in server.seen if seen.request.op == "report_errors")
            assert report.body["source"] == "client:me"
            codes = {error["code"]: error.get("count", 1) for error in report.body["errors"]}
            assert codes["unreachable"] >= 2
            assert report.body["errors"][0]["context"]["operation"] == "get_memory"


def test_a_report_that_fails_does_not_fail_the_call() -> None:
    def script(server: StandIn, seen: Seen) -> None:
        if seen.request.op == "report_errors":
            return
        echo(server, seen)

    with StandIn(in_turn(silence, script)) as server, MemoryClient(server.endpoint) as client:
        with pytest.raises(errors.RequestTimeout):
            client.get_memory("m", timeout=0.05)
        begin_s = time.monotonic()
        assert client.get_memory("m")["status"] == "success"
        assert time.monotonic() - begin_s < 2.0
        assert client.get_memory("m")["status"] == "success"
        assert [seen.request.op for seen in server.seen].count("report_errors") == 1


def test_a_forked_child_has_connections_of_its_own() -> None:
    with StandIn() as server, MemoryClient(server.endpoint) as client:
        client.get_memory("before")
        child = os.fork()
        if child == 0:
            try:
                answers: list[Any] = [client.get_memory(f"child {n}") for n in range(10)]
                good = all(a["fields"]["memory_id"] == f"child {n}" for n, a in enumerate(answers))
                os._exit(0 if good else 1)
            except BaseException:
                os._exit(2)
        for n in range(10):
            answer: Any = client.get_memory(f"parent {n}")
            assert answer["fields"]["memory_id"] == f"parent {n}"
        assert wait_for_child(child) == 0
        peers = {
            name: {s.peer for s in server.seen if s.body["memory_id"].startswith(name)}
            for name in ("parent", "child")
        }
        assert peers["parent"].isdisjoint(peers["child"])


def test_many_clients_in_one_process_open_few_descriptors() -> None:
    with StandIn() as server:
        before = len(os.listdir("/proc/self/fd"))
        clients = [MemoryClient(server.endpoint) for _ in range(50)]
        for client in clients:
            client.get_memory("m")
        for client in clients:
            client.close()
        give_up_at_s = time.monotonic() + WAIT_S
        while len(os.listdir("/proc/self/fd")) > before + 15:
            assert time.monotonic() < give_up_at_s, "descriptors are left open"
            threading.Event().wait(0.02)


FEW_DESCRIPTORS = """
import asyncio, os, resource, sys
from recollect.client import AsyncMemoryClient, MemoryClient
from recollect.protocol.errors import Unreachable

kind, endpoint = sys.argv[1:]
runner = asyncio.Runner()

def client():
    if kind == "blocking":
        return MemoryClient(endpoint).get_memory
    asyncio_client = AsyncMemoryClient(endpoint)
    return lambda name: runner.run(asyncio_client.get_memory(name))

before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

def limit(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))

first, second = client(), client()
first("m")
limit(max(map(int, os.listdir("/proc/self/fd"))))
try:
    second("m")
except Unreachable as error:
    assert "Too many open files" in str(error), error
else:
    sys.exit("there was a descriptor left")
first("m")
limit(before)
assert second("m")["status"] == "success"
os._exit(0)
"""


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_without_a_descriptor_left_a_call_fails_as_one_that_cannot_connect(kind: str) -> None:
    with StandIn() as server:
        done = subprocess.run(
            [sys.executable, "-c", FEW_DESCRIPTORS, kind, server.endpoint],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
    assert done.returncode == 0, done.stderr


def test_a_large_payload_goes_and_comes_back_whole() -> None:
    with StandIn() as server, MemoryClient(server.endpoint) as client:
        text = "x" * (8 * 1024 * 1024)
        answer: Any = client.add_memory(text)
        assert answer["fields"]["content"] == text
