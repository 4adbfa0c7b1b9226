"""Bearer keys of clients at a real orchestrator, whether it asks for keys or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect import MemoryClient
from recollect.protocol import errors
from recollect.protocol.bearer_keys import hash_of, key_id_of, new_bearer_key
from tests.harness.clients import KINDS, client_of
from tests.harness.keys import issue, issue_bearer
from tests.harness.processes import ASK_FOR_KEYS, OrchestratorProcess

HOME = "user:alice"


@pytest.fixture(params=["false", "true"], ids=["keys not asked for", "keys asked for"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OrchestratorProcess]:
    with OrchestratorProcess(tmp_path / "data", env={ASK_FOR_KEYS: request.param}) as process:
        yield process


@pytest.fixture
def admin(process: OrchestratorProcess) -> Iterator[MemoryClient]:
    with process.client() as client:
        yield client


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def options_of(process: OrchestratorProcess, bearer: str) -> dict[str, Any]:
    """How a client on this machine comes in with a bearer key."""
    keyed = process.env[ASK_FOR_KEYS] == "true"
    return {"bearer": bearer, **({"key_file": process.local_key} if keyed else {})}


def id_of(key: str) -> str:
    return key_id_of(hash_of(key))


def test_a_client_is_whose_bearer_key_it_has_until_that_is_revoked(
    process: OrchestratorProcess, admin: MemoryClient, kind: str
) -> None:
    key = issue_bearer(admin, "alice", (HOME, "write"), label="laptop")
    with client_of(kind, process.endpoint, **options_of(process, key)) as alice:
        assert alice.who_am_i()["identity"] == "alice"
        stored = alice.add_memory("Prefers tea", namespace=HOME)["memory_id"]
        with pytest.raises(errors.Forbidden):
            alice.add_memory("Prefers tea", namespace="user:bob")
        assert admin.get_memory(stored)["memory"]["content"] == "Prefers tea"
        admin.revoke_bearer_key("alice", id_of(key))
        for _ in range(3):
            with pytest.raises(errors.Unauthenticated, match="bearer key") as caught:
                alice.ping()
            assert key not in str(caught.value)
        assert alice.get_circuit_breaker_status()["state"] == "closed"
    assert admin.who_am_i()["identity"] == "local"


def test_a_key_of_ones_own_carries_the_bearer_key_of_another(
    process: OrchestratorProcess, admin: MemoryClient, tmp_path: Path, kind: str
) -> None:
    if process.env[ASK_FOR_KEYS] != "true":
        pytest.skip("nobody is asked for a key of their own")
    path = issue(admin, tmp_path / "bob.key", "bob", ("user:bob", "write"))
    key = issue_bearer(admin, "alice", (HOME, "write"))
    with client_of(kind, process.endpoint, key_file=path, bearer=key) as both:
        assert both.who_am_i()["identity"] == "alice"
        with pytest.raises(errors.Forbidden):
            both.add_memory("x", namespace="user:bob")
        admin.revoke_access("bob")
        with pytest.raises(errors.Unauthenticated):
            both.ping()
    with (
        client_of(kind, process.endpoint, bearer=key) as keyless,
        pytest.raises(errors.Unauthenticated, match="asks for a key"),
    ):
        keyless.ping()


def test_a_subscription_is_read_and_ended_by_the_bearer_key(
    process: OrchestratorProcess, admin: MemoryClient
) -> None:
    key = issue_bearer(admin, "alice", (HOME, "read"))
    with (
        MemoryClient(process.endpoint, **options_of(process, key)) as alice,
        alice.subscribe(0) as changes,
    ):
        admin.add_memory("Hidden", namespace="user:bob")
        told = admin.add_memory("Shown", namespace=HOME)["memory_id"]
        assert next(changes)["subject"] == told
        admin.revoke_bearer_key("alice", id_of(key))
        with pytest.raises(errors.Unauthenticated):
            next(changes)


def test_writes_in_an_outbox_are_delivered_in_the_name_of_the_bearer_key(
    process: OrchestratorProcess, admin: MemoryClient, tmp_path: Path
) -> None:
    key = issue_bearer(admin, "alice", (HOME, "write"))
    process.stop()
    options = options_of(process, key)
    with MemoryClient(
        process.endpoint, outbox=tmp_path / "outbox.db", timeout=1, **options
    ) as client:
        queued: Any = client.add_memory("Waits", namespace=HOME)
        assert queued["status"] == "queued"
        process.start()
        assert client.flush_outbox(20.0)["refused"] == 0
    entries = admin.audit_log(operation="add_memory")["entries"]
    assert [entry["identity"] for entry in entries] == ["alice"]
    assert key.encode() not in (tmp_path / "outbox.db").read_bytes()


def test_the_log_of_the_orchestrator_has_no_key(
    process: OrchestratorProcess, admin: MemoryClient
) -> None:
    keys = [issue_bearer(admin, "alice", (HOME, "write")), new_bearer_key()]
    for key in keys:
        with MemoryClient(process.endpoint, **options_of(process, key)) as client:
            try:
                client.get_memory("no such memory")
            except errors.RecollectError as error:
                assert key not in f"{error!r} {error.details}"
    assert process.stop() == 0
    assert not [key for key in keys if key in process.log()]
