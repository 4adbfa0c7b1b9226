"""Clients of several endpoints, over real sockets: they spread, go elsewhere, and come back."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from recollect.client import AsyncMemoryClient, MemoryClient, Retry, Timeouts
from recollect.protocol.errors import ShuttingDown, Unreachable
from tests.faults.polling import wait_for
from tests.harness.children import wait_for_child
from tests.harness.ports import free_port
from tests.harness.processes import ASK_FOR_KEYS, OrchestratorProcess
from tests.system.client.cutting_proxy import CuttingProxy
from tests.system.client.standin import WAIT_S, Seen, StandIn, echo
from tests.system.client.test_client_outbox import no_room_for_threads
from tests.system.client.test_client_retries import PATIENT, executions

# Where nobody listens there is nothing to wait for.
HASTY = Timeouts(connect_s=0.1)


class Threads:
    """A blocking client."""

    def __init__(self, **options: Any) -> None:
        self.client = MemoryClient(**options)

    def ask(self, name: str, *args: Any) -> Any:
        return getattr(self.client, name)(*args)

    def changes(self) -> Iterator[int]:
        """The numbers of the changes from the beginning."""
        return (change["seq"] for change in self.client.subscribe(from_seq=0))

    def close(self) -> None:
        self.client.close()


class Loop:
    """An asyncio client on a loop of its own, which goes on between two calls."""

    def __init__(self, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.client = AsyncMemoryClient(**options)

    def ask(self, name: str, *args: Any) -> Any:
        work = getattr(self.client, name)(*args)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)

    def changes(self) -> Iterator[int]:
        """The numbers of the changes from the beginning."""
        subscription = self.client.subscribe(from_seq=0)
        while True:
            coming = asyncio.run_coroutine_threadsafe(anext(subscription), self._loop)
            yield coming.result(WAIT_S)["seq"]

    def close(self) -> None:
        self.ask("close")
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()


Caller = Threads | Loop
Make = Callable[..., Caller]


@pytest.fixture(params=[Threads, Loop])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes a client of either kind."""
    made: list[Caller] = []

    def make(**options: Any) -> Caller:
        made.append(request.param(timeout=WAIT_S, **options))
        return made[-1]

    yield make
    for caller in made:
        caller.close()


@pytest.fixture
def servers() -> Iterator[list[StandIn]]:
    with ExitStack() as stack:
        yield [stack.enter_context(StandIn()) for _ in range(3)]


def endpoints(servers: list[StandIn]) -> list[str]:
    return [server.endpoint for server in servers]


def healthy(caller: Caller) -> list[bool]:
    status = caller.client.get_circuit_breaker_status()
    return [one["healthy"] for one in status["endpoints"]]


def asked(servers: list[StandIn]) -> list[int]:
    """How many gets each has seen."""
    return [sum(s.request.op == "get_memory" for s in server.seen) for server in servers]


def test_calls_are_spread_over_all(make: Make, servers: list[StandIn]) -> None:
    caller = make(endpoints=endpoints(servers))
    for n in range(30):
        assert caller.ask("get_memory", str(n))["status"] == "success"
    assert asked(servers) == [10, 10, 10]


def test_who_dies_is_left_and_who_comes_back_is_asked_again(
    make: Make, servers: list[StandIn]
) -> None:
    caller = make(endpoints=endpoints(servers))
    for n in range(6):
        caller.ask("get_memory", str(n))
    servers[0].stop()
    for n in range(6):
        assert caller.ask("get_memory", str(n))["status"] == "success"
    assert healthy(caller) == [False, True, True]
    servers[0].start()
    wait_for(lambda: all(healthy(caller)), within_s=WAIT_S, what="the first is back")
    before = asked(servers)[0]
    for n in range(6):
        caller.ask("get_memory", str(n))
    assert asked(servers)[0] == before + 2


def test_one_that_was_never_there_costs_no_call(make: Make, servers: list[StandIn]) -> None:
    nobody = f"tcp://127.0.0.1:{free_port()}"
    caller = make(endpoints=[nobody, *endpoints(servers[:1])])
    for n in range(6):
        assert caller.ask("get_memory", str(n))["status"] == "success"
    assert healthy(caller) == [False, True]


def test_who_is_draining_is_left_at_once_and_for_all_calls(
    make: Make, servers: list[StandIn]
) -> None:
    def drain(server: StandIn, seen: Seen) -> None:
        server.refuse(seen, ShuttingDown("The orchestrator is shutting down."))

    servers[1].script = drain
    caller = make(endpoints=endpoints(servers), retry=Retry(attempts_max=1))
    for n in range(12):
        assert caller.ask("get_memory", str(n))["status"] == "success"
    assert asked(servers)[1] == 1
    servers[1].script = echo
    wait_for(lambda: all(healthy(caller)), within_s=WAIT_S, what="the second is back")


def test_when_nobody_is_there_the_error_says_so_and_the_next_to_come_is_found(
    make: Make, servers: list[StandIn]
) -> None:
    caller = make(endpoints=endpoints(servers), timeouts=HASTY)
    caller.ask("get_memory", "m")
    for server in servers:
        server.stop()
    with pytest.raises(Unreachable, match="recollect up"):
        caller.ask("get_memory", "m")
    servers[2].start()
    assert caller.ask("get_memory", "m")["status"] == "success"


def test_writes_whose_replies_are_cut_off_take_effect_once_wherever_they_go(
    make: Make, servers: list[StandIn]
) -> None:
    with ExitStack() as stack:
        proxies = [
            stack.enter_context(CuttingProxy(server.port, cut_share=0.3, seed=n))
            for n, server in enumerate(servers)
        ]
        caller = make(endpoints=[proxy.endpoint for proxy in proxies], retry=PATIENT)
        for n in range(60):
            assert caller.ask("add_memory", str(n))["status"] == "success"
        by_key: dict[str | None, str] = {}
        for server in servers:
            executions(server)
            for seen in server.seen:
                if seen.request.op == "add_memory":
                    text = by_key.setdefault(seen.request.key, seen.body["content"])
                    assert text == seen.body["content"]
        assert Counter(by_key.values()) == Counter(str(n) for n in range(60))
        assert sum(proxy.cut_count for proxy in proxies) > 5


def test_a_name_stands_for_all_its_addresses(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    addresses = {"127.0.0.1", "127.0.0.2"}
    system = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "memory.internal":
            return system(host, *args, **kwargs)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port)) for a in sorted(addresses)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with (
        StandIn(port=port) as one,
        StandIn(port=port, host="127.0.0.2") as other,
        StandIn(port=port, host="127.0.0.3") as third,
    ):
        caller = make(endpoint=f"tcp://memory.internal:{port}")
        for n in range(10):
            caller.ask("get_memory", str(n))
        assert asked([one, other, third]) == [5, 5, 0]
        # One goes for good and another comes in its place: the name is looked up anew.
        addresses.remove("127.0.0.1")
        addresses.add("127.0.0.3")
        one.stop()

        def moved() -> bool:
            caller.ask("get_memory", "m")
            return asked([third])[0] > 0

        wait_for(moved, within_s=WAIT_S, what="a call at the new address")
        wait_for(lambda: healthy(caller) == [True, True], within_s=WAIT_S, what="two healthy ones")


def test_a_subscription_goes_on_elsewhere(make: Make, servers: list[StandIn]) -> None:
    def feed(server: StandIn, seen: Seen) -> None:
        """Changes without end, two to a page."""
        after = seen.body.get("after_seq") or 0
        changes = [{"seq": after + n, "subject": f"m{after + n}"} for n in (1, 2)]
        server.answer(seen, {"status": "success", "changes": changes, "next_seq": after + 2})

    for server in servers:
        server.script = feed
    caller = make(endpoints=endpoints(servers))
    changes = caller.changes()
    heard = [next(changes) for _ in range(10)]
    (used,) = [server for server in servers if len(server.seen) > 2]
    used.stop()
    heard += [next(changes) for _ in range(10)]
    assert heard == list(range(1, 21))


def test_the_outbox_is_delivered_to_whoever_is_there(
    make: Make, servers: list[StandIn], tmp_path: Path
) -> None:
    for server in servers:
        server.stop()
    caller = make(
        endpoints=endpoints(servers),
        outbox=tmp_path / "outbox.db",
        timeouts=HASTY,
        retry=Retry(attempts_max=1, backoff_ms_max=100),
    )
    for n in range(5):
        assert caller.ask("add_memory", str(n))["status"] == "queued"
    servers[1].start()
    caller.ask("flush_outbox", WAIT_S)
    contents = [s.body["content"] for s in servers[1].seen if s.request.op == "add_memory"]
    assert list(dict.fromkeys(contents)) == [str(n) for n in range(5)]


def test_what_was_left_in_the_outbox_outlasts_that_nobody_is_there(
    make: Make, servers: list[StandIn], tmp_path: Path
) -> None:
    path = tmp_path / "outbox.db"
    for server in servers[:2]:
        server.stop()
    options: dict[str, Any] = {
        "endpoints": endpoints(servers[:2]),
        "outbox": path,
        "timeouts": HASTY,
        "retry": Retry(attempts_max=1, backoff_ms_max=100),
    }
    with MemoryClient(**options) as former:
        for n in range(3):
            answer: Any = former.add_memory(str(n))
            assert answer["status"] == "queued"
    caller = make(**options)
    wait_for(lambda: healthy(caller) == [False, False], within_s=WAIT_S, what="both are found away")
    for server in servers[:2]:
        server.start()

    def delivered() -> list[str]:
        seen = [*servers[0].seen, *servers[1].seen]
        return [s.body["content"] for s in seen if s.request.op == "add_memory"]

    wait_for(lambda: len(delivered()) >= 3, within_s=WAIT_S, what="the delivery")
    assert sorted(set(delivered())) == ["0", "1", "2"]
    # And whom it found away is asked whether it is back, from the first call on at the latest.
    assert caller.ask("get_memory", "m")["status"] == "success"
    wait_for(lambda: all(healthy(caller)), within_s=WAIT_S, what="both are back")


def probing() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "probing" in thread.name]


def test_who_is_away_is_probed_only_as_long_as_it_is_and_the_client_is_there(
    servers: list[StandIn],
) -> None:
    client = MemoryClient(endpoints=endpoints(servers), timeouts=HASTY)
    for n in range(3):
        client.get_memory(str(n))
    servers[0].stop()
    for n in range(3):
        client.get_memory(str(n))
    assert len(probing()) == 1
    servers[0].start()
    wait_for(lambda: not probing(), within_s=WAIT_S, what="nobody to be probed")
    servers[1].stop()
    for n in range(3):
        client.get_memory(str(n))
    assert len(probing()) == 1
    # Nobody closed it, but nobody has it any more.
    del client
    gc.collect()
    wait_for(lambda: not probing(), within_s=WAIT_S, what="no client to probe for")


def test_without_room_for_a_thread_calls_go_on_and_a_later_one_probes(
    servers: list[StandIn],
) -> None:
    with MemoryClient(
        endpoints=endpoints(servers[:2]), timeouts=HASTY, retry=Retry(attempts_max=1)
    ) as client:
        servers[0].stop()
        with no_room_for_threads():
            for n in range(4):
                assert client.get_memory(str(n))["status"] == "success"
        servers[1].stop()
        with pytest.raises(Unreachable):
            client.get_memory("nobody")
        for server in servers[:2]:
            server.start()

        def all_are_back() -> bool:
            found = client.get_circuit_breaker_status()["endpoints"]
            return all(one["healthy"] for one in found)

        wait_for(all_are_back, within_s=WAIT_S, what="both are back")


def test_a_forked_child_finds_all_of_them_for_itself(servers: list[StandIn]) -> None:
    with MemoryClient(endpoints=endpoints(servers), timeouts=HASTY) as client:
        servers[0].stop()
        for n in range(6):
            client.get_memory(f"before {n}")
        child = os.fork()
        if child == 0:
            try:
                answers: list[Any] = [client.get_memory(f"child {n}") for n in range(10)]
                good = all(a["fields"]["memory_id"] == f"child {n}" for n, a in enumerate(answers))
                found = client.get_circuit_breaker_status()["endpoints"]
                os._exit(0 if good and not found[0]["healthy"] else 1)
            except BaseException:
                os._exit(2)
        for n in range(10):
            answer: Any = client.get_memory(f"parent {n}")
            assert answer["fields"]["memory_id"] == f"parent {n}"
        assert wait_for_child(child) == 0
        servers[0].start()


def test_orchestrators_with_the_same_keys_are_one_to_a_key_file(make: Make, tmp_path: Path) -> None:
    asking = {ASK_FOR_KEYS: "true"}
    with OrchestratorProcess(tmp_path / "one", env=asking) as one:
        other = OrchestratorProcess(tmp_path / "other", env=asking)
        shutil.copytree(one.data / "keys", other.data / "keys")
        with other:
            caller = make(endpoints=[one.endpoint, other.endpoint], key_file=one.local_key)
            for _ in range(4):
                assert caller.ask("who_am_i")["identity"] == "local"
            assert healthy(caller) == [True, True]
            for process in (one, other):
                with process.client() as client:
                    assert client.stats()["requests"]["served"]["who_am_i"] == 2
