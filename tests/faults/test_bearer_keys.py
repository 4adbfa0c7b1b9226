"""P13, of bearer keys: a wrong one gets nothing, whatever it asks for, and leaves a line.

Whoever carries it here may do everything, so that whatever is done in the carrier's name shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import zmq

from recollect import MemoryClient
from recollect.orchestrator.access.attempts import ENTRIES_MAX
from recollect.protocol import key_files
from recollect.protocol.bearer_keys import hash_of, key_id_of, new_bearer_key
from recollect.protocol.operations import REGISTRY
from tests.faults.callers import NO_KEY, Caller, Credentials, key_of
from tests.faults.ledger import Trial
from tests.faults.test_keys import CONTENTS, DENIED, DONE, LAST, STRANGER, check_untouched, query
from tests.faults.walls import ABSENT, AIMED, MARKER, Aim
from tests.faults.wire import code_of, request
from tests.harness.keys import issue_bearer
from tests.harness.processes import ASK_FOR_KEYS, OrchestratorProcess

Context = zmq.Context[zmq.Socket[bytes]]


@pytest.fixture(params=["false", "true"], ids=["keys not asked for", "keys asked for"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OrchestratorProcess]:
    with OrchestratorProcess(tmp_path / "data", env={ASK_FOR_KEYS: request.param}) as process:
        yield process


@pytest.fixture
def admin(process: OrchestratorProcess) -> Iterator[MemoryClient]:
    with process.client() as client:
        yield client


@pytest.fixture
def caller(process: OrchestratorProcess) -> Iterator[Caller]:
    """Who carries the requests, and is the machine itself."""
    context: Context = zmq.Context()
    try:
        with Caller(context, process.endpoint, carrier_of(process)) as caller:
            yield caller
    finally:
        context.term()


def carrier_of(process: OrchestratorProcess) -> Credentials:
    if process.env[ASK_FOR_KEYS] == "true":
        return key_of(key_files.read(process.local_key))
    return NO_KEY


@pytest.fixture
def alice(admin: MemoryClient) -> str:
    """The bearer key of somebody who has something to lose."""
    return issue_bearer(admin, "alice", ("user:alice", "admin"))


@pytest.fixture
def aim(process: OrchestratorProcess, alice: str) -> Aim:
    """What she has."""
    with process.client(bearer=alice) as client:
        memory_id = client.add_memory(f"The {MARKER} prefers tea.", namespace="user:alice")
        client.put("user:alice", "drink", {"what": f"{MARKER} tea"})
    return msgspec.structs.replace(
        ABSENT,
        namespace="user:alice",
        key="drink",
        memory_id=memory_id["memory_id"],
        user_id="alice",
    )


def frames(aim: Aim, bearer: str) -> list[tuple[str, bytes]]:
    """A request for every operation that is declared, with a bearer key."""
    assert AIMED.keys() == REGISTRY.keys()
    return [
        (name, request(name, name, msgspec.msgpack.encode(makes[0](aim)), bearer=bearer))
        for name, makes in AIMED.items()
    ]


def shown(bearer: str) -> str:
    return f"bearer:{key_id_of(hash_of(bearer))}"


def test_a_bearer_key_that_is_nobodys_reaches_no_operation(
    process: OrchestratorProcess, admin: MemoryClient, caller: Caller, alice: str, aim: Aim
) -> None:
    issue_bearer(admin, "mallory", ("*", "admin"))
    mallory = issue_bearer(admin, "mallory")
    before, [(last,)] = query(process.data, CONTENTS), query(process.data, LAST)
    admin.revoke_bearer_key("mallory", key_id_of(hash_of(mallory)))
    wrong = {
        "unknown": (new_bearer_key(), STRANGER),
        "a part of hers": (alice[:-1], STRANGER),
        "the hash of hers": (hash_of(alice), STRANGER),
        "empty": ("", STRANGER),
        "her name": ("alice", STRANGER),
        "revoked": (mallory, "mallory"),
    }
    assert len(wrong) * len(REGISTRY) <= ENTRIES_MAX, "beyond these, attempts are counted alone"
    with Trial("P13") as trial:
        for kind, (bearer, _) in wrong.items():
            for name, frame in frames(aim, bearer):
                trial.case()
                caller.send(frame)
                answer = caller.answer()
                case = f"{kind}: {name}"
                trial.check(code_of(answer) == "unauthenticated", f"{case}: {str(answer)[:200]}")
                trial.check(MARKER not in str(answer), f"{case} delivered the marker")
        assert process.stop() == 0, process.log()
        lines = Counter(line[:3] for line in query(process.data, DENIED))
        wanted = Counter(
            (who, name, shown(bearer)) for bearer, who in wrong.values() for name in REGISTRY
        )
        trial.check(lines == wanted, f"lines of the audit: {lines - wanted} / {wanted - lines}")
        check_untouched(trial, process.data, before, last, Counter(revoke_bearer_key=1))
        said = process.log()
        for bearer, _ in wrong.values():
            trial.check(len(bearer) < 20 or bearer not in said, "the log has a key")


def test_the_bearer_key_of_another_gets_nothing_that_is_not_its_own(
    process: OrchestratorProcess, admin: MemoryClient, caller: Caller, aim: Aim
) -> None:
    bob = issue_bearer(admin, "bob")
    before, [(last,)] = query(process.data, CONTENTS), query(process.data, LAST)
    refused: Counter[str] = Counter()
    with Trial("P13") as trial:
        for name, frame in frames(aim, bob):
            trial.case()
            caller.send(frame)
            answer = caller.answer()
            trial.check(MARKER not in str(answer), f"{name} delivered the marker")
            refused[name] += code_of(answer) == "forbidden"
        assert sum(refused.values()) > 10, "the operations that need more than he has"
        assert process.stop() == 0, process.log()
        lines = Counter(line[1] for line in query(process.data, DENIED) if line[0] == "bob")
        for name in refused:
            trial.check(lines[name] >= refused[name], f"{name} has {lines[name]} lines")
        trial.check(query(process.data, CONTENTS) == before, "memories were changed")
        others = [line for line in query(process.data, DONE, last) if line[0] != "bob"]
        trial.check(not others, f"was done: {others}")


def test_the_check_would_notice_what_is_done_in_the_name_of_who_carries_it(
    process: OrchestratorProcess, caller: Caller, aim: Aim, alice: str
) -> None:
    [(last,)] = query(process.data, LAST)
    for envelope in ({}, {"bearer": alice}):
        caller.send(request(1, "get_memory", {"memory_id": aim.memory_id}, **envelope))
        assert MARKER in str(caller.answer())
    caller.send(request(2, "add_memory", {"content": "x", "namespace": "user:bob"}))
    assert code_of(caller.answer()) == "success"
    assert query(process.data, DONE, last) == [("local", "add_memory")]
    caller.send(request(3, "add_memory", {"content": "x", "namespace": "user:bob"}, bearer=alice))
    assert code_of(caller.answer()) == "forbidden"
