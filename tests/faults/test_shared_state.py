"""What is in no database is still the same through every orchestrator: `temp:` state of sessions,
and what an agent was served; and Redis, which shares it, may die and hang."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from redis import Redis

from recollect import MemoryClient, RecollectError
from recollect.client import Retry
from recollect.protocol.errors import LimitExceeded
from tests.faults.fleet import Orchestrators
from tests.faults.polling import wait_for
from tests.harness.own_postgres import OwnPostgres
from tests.harness.processes import OrchestratorProcess

KEYS_MAX = 6
WITHIN_S = 20.0
COMMITS = 20
TEA = "Anna prefers green tea, without sugar."
ENV = {
    "RECOLLECT_SESSIONS_STATE_KEYS_MAX": str(KEYS_MAX),
    "RECOLLECT_CIRCUIT_BREAKER_RESET_TIMEOUT_S": "0.2",
    # A machine that is busy is no Redis that is away.
    "RECOLLECT_REDIS_TIMEOUT_MS": "2000",
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestrators]:
    with Orchestrators(tmp_path_factory.mktemp("shared"), env=ENV) as running:
        yield running


@pytest.fixture
def clients(fleet: Orchestrators) -> Iterator[list[MemoryClient]]:
    """One for each orchestrator, all of one agent."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                MemoryClient(endpoint, agent_id="planner", retry=Retry(attempts_max=1))
            )
            for endpoint in fleet.endpoints
        ]


def temporary(client: MemoryClient, session_id: str) -> dict[str, Any]:
    state = client.get_state(session_id)["state"]
    return {key: value for key, value in state.items() if key.startswith("temp:")}


def until_well(clients: list[MemoryClient]) -> None:
    wait_for(
        lambda: all(client.stats()["redis"]["state"] == "ok" for client in clients),
        within_s=WITHIN_S,
        what="all have their Redis",
    )


def test_temporary_state_is_read_through_any_of_them_at_once(clients: list[MemoryClient]) -> None:
    one, two, three = clients
    session_id = one.create_session("alice", state={"temp:cursor": "page-1"})["session_id"]
    assert temporary(two, session_id) == {"temp:cursor": "page-1"}
    for n in range(12):
        writer, reader = clients[n % 3], clients[(n + 1) % 3]
        writer.append_event(session_id, n, {"temp:cursor": n, "temp:of": None if n % 2 else [n]})
        expected = {"temp:cursor": n} if n % 2 else {"temp:cursor": n, "temp:of": [n]}
        assert temporary(reader, session_id) == expected
        assert reader.get_session(session_id)["state"]["temp:cursor"] == n
    three.set_state(session_id, {"temp:cursor": None})
    assert [temporary(client, session_id) for client in clients] == [{}, {}, {}]
    two.set_state(session_id, {"temp:cursor": "again"})
    one.terminate_session(session_id)
    assert [temporary(client, session_id) for client in clients] == [{}, {}, {}]


def test_a_client_that_spreads_its_calls_reads_what_it_has_just_written(
    fleet: Orchestrators,
) -> None:
    with MemoryClient(endpoints=fleet.endpoints) as client:
        session_id = client.create_session("bob")["session_id"]
        for n in range(30):
            client.set_state(session_id, {"temp:n": n, "n": n})
            state = client.get_state(session_id)["state"]
            assert (state["temp:n"], state["n"]) == (n, n)


def test_there_is_no_more_room_for_it_than_with_one_orchestrator(
    clients: list[MemoryClient],
) -> None:
    session_id = clients[0].create_session("carol")["session_id"]
    for n in range(KEYS_MAX):
        clients[n % 3].set_state(session_id, {f"temp:k{n}": n})
    for client in clients:
        with pytest.raises(LimitExceeded):
            client.set_state(session_id, {"temp:more": 1})
    clients[0].set_state(session_id, {"temp:k0": None})
    clients[1].set_state(session_id, {"temp:more": 1})


def test_what_was_committed_by_one_that_died_is_there_after_a_retry_elsewhere(
    fleet: Orchestrators, clients: list[MemoryClient]
) -> None:
    session_id = clients[1].create_session("dora")["session_id"]
    doomed = fleet.processes[0]
    doomed.kill()
    doomed.start(RECOLLECT_FAILPOINTS=f"after_commit:{COMMITS}")
    step = 0
    with doomed.client(retry=Retry(attempts_max=1)) as client, pytest.raises(RecollectError):
        while step < 2 * COMMITS:
            step += 1
            client.set_state(session_id, {"temp:step": step}, idempotency_key=f"step {step}")
    doomed.wait_ended()
    clients[1].set_state(session_id, {"temp:step": step}, idempotency_key=f"step {step}")
    assert temporary(clients[2], session_id) == {"temp:step": step}
    doomed.start()


READS = {
    "get_memory": lambda client, id_: client.get_memory(id_),
    "batch_get_memories": lambda client, id_: client.batch_get_memories([id_]),
    "search_memory": lambda client, id_: client.search_memory("green tea", namespace="user:anna"),
    "recall": lambda client, id_: client.recall("What does Anna drink?", namespace="user:anna"),
    "assemble_context": lambda client, id_: client.assemble_context(
        "What does Anna drink?", namespace="user:anna"
    ),
}


@pytest.mark.parametrize("name", READS)
def test_an_echo_is_noticed_by_another_than_served_it(
    clients: list[MemoryClient], fleet: Orchestrators, name: str
) -> None:
    one, two, three = clients
    text = f"{TEA[:-1]} ({name})."
    with MemoryClient(fleet.endpoints[0], agent_id="archivist") as archivist:
        memory_id = archivist.add_memory(text, namespace="user:anna")["memory_id"]
        # Nobody of this agent was told of it yet.
        other = three.add_memory("Anna drinks something.", namespace=f"user:{name}")
        assert "echo_of" not in other
        READS[name](one, memory_id)
        echo = two.add_memory(f"Remember that {text}", namespace="user:anna")
        assert (echo["echo_of"], echo["memory_id"]) == (memory_id, memory_id)
        batch = three.batch_add_memories(
            [{"content": text, "namespace": "user:anna"}, {"content": f"{text} Or coffee."}]
        )
        assert [item.get("echo_of") for item in batch["results"]] == [memory_id, None]
        # Of another agent it is news.
        assert "echo_of" not in archivist.add_memory(text, namespace="user:anna")
    with Redis.from_url(fleet.redis.url) as redis:
        assert list(redis.scan_iter("*:served:*"))
        two.purge(memory_id)
        assert not list(redis.scan_iter("*:served:*"))


def test_when_redis_is_gone_nothing_fails_and_what_is_known_is_shared_again(
    clients: list[MemoryClient], fleet: Orchestrators
) -> None:
    one, two, three = clients
    session_id = one.create_session("erin", state={"temp:a": 1})["session_id"]
    fleet.redis.kill()
    one.set_state(session_id, {"temp:b": 2})
    assert temporary(one, session_id) == {"temp:a": 1, "temp:b": 2}
    memory_id = one.add_memory("Erin keeps bees.", namespace="user:erin")["memory_id"]
    one.get_memory(memory_id)
    assert one.add_memory("Erin keeps bees.", namespace="user:erin")["echo_of"] == memory_id
    for client in (two, three):
        temporary(client, session_id)
        client.search_memory("bees")
        client.add_memory(f"by {id(client)}")
    fleet.redis.start()
    until_well(clients)
    assert temporary(one, session_id) == {"temp:a": 1, "temp:b": 2}
    assert temporary(two, session_id) == {"temp:a": 1, "temp:b": 2}


def test_when_redis_hangs_nothing_fails(clients: list[MemoryClient], fleet: Orchestrators) -> None:
    one, two, _ = clients
    session_id = one.create_session("fred", state={"temp:a": 1})["session_id"]
    fleet.redis.freeze()
    try:
        one.set_state(session_id, {"temp:b": 2})
        assert temporary(one, session_id) == {"temp:a": 1, "temp:b": 2}
        two.get_state(session_id)
        two.terminate_session(session_id)
        assert temporary(one, session_id) == {}
    finally:
        fleet.redis.thaw()
    until_well(clients)


def test_without_a_shared_redis_it_is_said(fleet: Orchestrators, tmp_path: Any) -> None:
    with fleet.processes[0].client() as client:
        assert client.stats()["redis"]["shared"] is True
    with OwnPostgres() as postgres:
        env = {"RECOLLECT_STORAGE_URL": postgres.url, "RECOLLECT_REDIS_URL": "off"}
        with (
            OrchestratorProcess(tmp_path / "alone", env=env) as process,
            process.client() as client,
        ):
            assert client.stats()["redis"]["shared"] is False
