"""Keys over real connections: who is let in, who is not, and what both get to hear."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from recollect import MemoryClient
from recollect.orchestrator.access.own_keys import new_pair
from recollect.protocol import errors, key_files
from recollect.protocol.envelope import decode_reply
from tests.harness.clients import KINDS, client_of
from tests.harness.keys import issue, stranger
from tests.harness.processes import ASK_FOR_KEYS, OrchestratorProcess

ANSWER_WITHIN_MS = 10_000
TOLD_WITHIN = 20


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[OrchestratorProcess]:
    """An orchestrator that asks for keys."""
    with OrchestratorProcess(tmp_path / "data", env={ASK_FOR_KEYS: "true"}) as process:
        yield process


@pytest.fixture
def admin(keyed: OrchestratorProcess) -> Iterator[MemoryClient]:
    """Who has the data folder may do everything."""
    with keyed.client() as client:
        yield client


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_two_identities_each_reach_their_own(
    keyed: OrchestratorProcess, admin: MemoryClient, tmp_path: Path, kind: str
) -> None:
    alice_key = issue(admin, tmp_path / "alice.key", "alice", ("user:alice", "write"))
    bob_key = issue(admin, tmp_path / "bob.key", "bob", ("user:bob", "write"))
    with (
        client_of(kind, keyed.endpoint, key_file=alice_key) as alice,
        client_of(kind, keyed.endpoint, key_file=bob_key) as bob,
    ):
        assert alice.who_am_i()["identity"] == "alice"
        assert bob.who_am_i()["grants"] == [{"pattern": "user:bob", "access": "write"}]
        stored = alice.add_memory("Alice prefers tea", namespace="user:alice")["memory_id"]
        assert alice.get_memory(stored)["memory"]["content"] == "Alice prefers tea"
        assert bob.search_memory("tea")["count"] == 0
        with pytest.raises(errors.NotFound):
            bob.get_memory(stored)
        with pytest.raises(errors.Forbidden):
            bob.add_memory("Bob was here", namespace="user:alice")
        with pytest.raises(errors.Forbidden):
            bob.list_identities()
    assert admin.search_memory("tea")["count"] == 1


def test_what_is_granted_and_revoked_counts_on_connections_that_are_open(
    keyed: OrchestratorProcess, admin: MemoryClient, tmp_path: Path, kind: str
) -> None:
    key_file = issue(admin, tmp_path / "alice.key", "alice")
    with client_of(kind, keyed.endpoint, key_file=key_file) as alice:
        with pytest.raises(errors.Forbidden):
            alice.add_memory("x", namespace="user:alice")
        admin.grant_access("alice", "user:alice", "write")
        alice.add_memory("x", namespace="user:alice")
        admin.revoke_access("alice", "user:alice")
        with pytest.raises(errors.Forbidden):
            alice.add_memory("x", namespace="user:alice")
        admin.revoke_access("alice")
        for _ in range(3):
            with pytest.raises(errors.Unauthenticated, match="recollect keys new"):
                alice.ping()


def test_who_has_no_key_is_told_that_one_is_asked_for(
    keyed: OrchestratorProcess, kind: str
) -> None:
    with client_of(kind, keyed.endpoint) as client:
        for _ in range(3):
            with pytest.raises(errors.Unauthenticated, match="asks for a key"):
                client.ping()
        assert client.get_circuit_breaker_status()["state"] == "closed"


def test_an_unknown_key_is_told_so_and_let_in_once_it_is_known(
    keyed: OrchestratorProcess, admin: MemoryClient, tmp_path: Path, kind: str
) -> None:
    key_file = stranger(admin, tmp_path / "late.key", "late")
    with client_of(kind, keyed.endpoint, key_file=key_file) as client:
        for _ in range(3):
            with pytest.raises(errors.Unauthenticated, match=r"does not know the key in .*late"):
                client.ping()
        admin.create_identity("late", key_files.read(key_file).public_key)
        assert client.who_am_i()["identity"] == "late"


def test_an_orchestrator_with_another_key_is_not_spoken_to(
    keyed: OrchestratorProcess, tmp_path: Path, kind: str
) -> None:
    right = key_files.read(keyed.local_key)
    wrong = msgspec.structs.replace(right, server_key=new_pair("other").public_key)
    key_files.write_new(tmp_path / "wrong.key", wrong)
    with (
        client_of(kind, keyed.endpoint, key_file=tmp_path / "wrong.key") as client,
        pytest.raises(errors.Unreachable, match=r"server_key in .*wrong\.key"),
    ):
        client.ping()


def test_a_key_is_not_shown_to_an_orchestrator_that_asks_for_none(
    orchestrator: OrchestratorProcess, tmp_path: Path, kind: str
) -> None:
    key_files.write_new(tmp_path / "any.key", new_pair("any", new_pair("server").public_key))
    with client_of(kind, orchestrator.endpoint, key_file=tmp_path / "any.key") as client:
        for _ in range(TOLD_WITHIN):
            with pytest.raises((errors.Unauthenticated, errors.Unreachable)) as refused:
                client.ping()
            # Whoever hangs up before its greeting is read has not said why: on a busy machine that
            # may happen, and the next attempt hears it.
            if refused.type is errors.Unauthenticated:
                break
            client.reset_circuit_breaker()
        assert "asks for no key" in str(refused.value)


def test_a_client_goes_on_after_a_restart_and_is_turned_away_if_it_was_revoked_meanwhile(
    keyed: OrchestratorProcess, admin: MemoryClient, tmp_path: Path, kind: str
) -> None:
    key_file = issue(admin, tmp_path / "alice.key", "alice", ("user:alice", "write"))
    with client_of(kind, keyed.endpoint, key_file=key_file, timeout=30) as alice:
        stored = alice.add_memory("kept", namespace="user:alice")["memory_id"]
        assert keyed.stop() == 0
        keyed.start()
        assert alice.get_memory(stored)["memory"]["content"] == "kept"
        assert keyed.stop() == 0
        keyed.start()
        with keyed.client() as again:
            again.revoke_access("alice")
        with pytest.raises(errors.Unauthenticated):
            alice.ping()


def test_writes_in_an_outbox_wait_for_a_key_that_is_known(
    keyed: OrchestratorProcess, admin: MemoryClient, tmp_path: Path
) -> None:
    key_file = stranger(admin, tmp_path / "late.key", "late")
    keyed.stop()
    with MemoryClient(
        keyed.endpoint, key_file=key_file, outbox=tmp_path / "outbox.db", timeout=2
    ) as client:
        queued: Any = client.add_memory("waits", namespace="user:late")
        assert queued["status"] == "queued"
        keyed.start()
        with pytest.raises(errors.RequestTimeout, match="does not know the key"):
            client.flush_outbox(3.0)
        assert client.outbox_status()["refused"] == 0
        with keyed.client() as admin:
            admin.create_identity("late", key_files.read(key_file).public_key)
            admin.grant_access("late", "user:late", "write")
            status = client.flush_outbox(20.0)
            assert (status["queued"], status["refused"]) == (0, 0)
            assert admin.search_memory("waits")["count"] == 1


def test_a_rate_is_kept_and_waited_for(
    keyed: OrchestratorProcess, admin: MemoryClient, tmp_path: Path, kind: str
) -> None:
    key_file = issue(admin, tmp_path / "slow.key", "slow", requests_per_s=0.001)
    with client_of(kind, keyed.endpoint, key_file=key_file) as slow:
        slow.ping()
        with pytest.raises(errors.RateLimited) as caught:
            slow.ping()
        assert caught.value.details["retry_after_ms"] > 0


@pytest.mark.parametrize("socket_type", [zmq.DEALER, zmq.REQ])
def test_any_zeromq_client_with_a_key_is_served(
    keyed: OrchestratorProcess, socket_type: int
) -> None:
    keys = key_files.read(keyed.local_key)
    assert keys.server_key is not None
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(socket_type)
    try:
        socket.linger = 0
        socket.curve_publickey = keys.public_key.encode()
        socket.curve_secretkey = keys.secret_key.encode()
        socket.curve_serverkey = keys.server_key.encode()
        socket.connect(keyed.endpoint)
        for request, status in (
            ({"v": 1, "id": 7, "op": "who_am_i", "body": b"\x80"}, "success"),
            ({"v": 1, "id": 7, "op": "no_such_operation"}, "error"),
        ):
            socket.send(msgspec.msgpack.encode(request))
            assert socket.poll(ANSWER_WITHIN_MS)
            reply = decode_reply(socket.recv())
            assert reply.id == 7
            assert msgspec.msgpack.decode(reply.body)["status"] == status
        if socket_type == zmq.DEALER:
            socket.send_multipart([b"one", b"two", b"three"])
            assert socket.poll(ANSWER_WITHIN_MS)
            assert decode_reply(socket.recv()).id is None
    finally:
        socket.close(0)
        context.term()


def test_other_users_of_the_machine_cannot_read_the_store(
    keyed: OrchestratorProcess, admin: MemoryClient
) -> None:
    admin.add_memory("Alice prefers tea", namespace="user:alice")
    made = [keyed.data, *keyed.data.rglob("*")]
    assert any(path.name == "recollect.db" for path in made)
    assert [path for path in made if path.stat().st_mode & 0o077] == []


def test_without_keys_everything_is_as_it_was(orchestrator: OrchestratorProcess) -> None:
    with orchestrator.client() as client:
        myself = client.who_am_i()
        assert myself["identity"] == "local"
        assert myself["grants"] == [{"pattern": "*", "access": "admin"}]
