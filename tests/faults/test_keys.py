"""P13: a wrong key gets nothing, whatever it asks for, and leaves a line in the audit.

A caller that fails before its key could be asked for has no name and no key, so such attempts share
a line and the line that follows tells how many more they were: the sum must cover every one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
import zmq

from recollect import MemoryClient
from recollect.orchestrator.access.own_keys import new_pair
from recollect.protocol import key_files
from recollect.protocol.operations import REGISTRY
from tests.faults.callers import NO_KEY, PASSWORD, Caller, Credentials, key_of
from tests.faults.ledger import Trial
from tests.faults.walls import ABSENT, AIMED, MARKER, Aim
from tests.faults.wire import code_of, request
from tests.harness.keys import issue
from tests.harness.processes import ASK_FOR_KEYS, OrchestratorProcess

DENIED = "SELECT identity, operation, subject, detail FROM journal WHERE outcome = 'denied'"
DONE = "SELECT identity, operation FROM journal WHERE outcome IS NULL AND seq > ?"
CONTENTS = "SELECT id, namespace, version, content, deleted_us FROM memories ORDER BY num"
LAST = "SELECT max(seq) FROM journal"
MORE = re.compile(r": ([\d,]+) more attempts?$")
STRANGER = "(unknown)"
TAKEN_OVER_TRIES = 20

Context = zmq.Context[zmq.Socket[bytes]]


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[OrchestratorProcess]:
    with OrchestratorProcess(tmp_path / "data", env={ASK_FOR_KEYS: "true"}) as process:
        yield process


@pytest.fixture
def context() -> Iterator[Context]:
    made: Context = zmq.Context()
    yield made
    made.term()


@pytest.fixture
def admin(keyed: OrchestratorProcess) -> Iterator[MemoryClient]:
    with keyed.client() as client:
        yield client


@pytest.fixture
def alice(admin: MemoryClient, tmp_path: Path) -> key_files.KeyFile:
    """Somebody who is known, and has something to lose."""
    path = issue(admin, tmp_path / "alice.key", "alice", ("user:alice", "admin"))
    return key_files.read(path)


@pytest.fixture
def aim(keyed: OrchestratorProcess, alice: key_files.KeyFile, tmp_path: Path) -> Aim:
    """What she has."""
    with keyed.client(key_file=tmp_path / "alice.key") as client:
        memory_id = client.add_memory(f"The {MARKER} prefers tea.", namespace="user:alice")
        client.put("user:alice", "drink", {"what": f"{MARKER} tea"})
    return msgspec.structs.replace(
        ABSENT,
        namespace="user:alice",
        key="drink",
        memory_id=memory_id["memory_id"],
        user_id="alice",
    )


def frames(aim: Aim) -> list[tuple[str, bytes]]:
    """A request for every operation that is declared."""
    assert AIMED.keys() == REGISTRY.keys()
    return [
        (name, request(name, name, msgspec.msgpack.encode(make(aim))))
        for name, makes in AIMED.items()
        for make in makes[:1]
    ]


def query(data: Path, sql: str, *params: Any) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(data / "recollect.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [tuple(row) for row in connection.execute(sql, params)]
    finally:
        connection.close()


def served_by(admin: MemoryClient) -> Counter[str]:
    """How often each operation was asked for, by anybody, with whatever success."""
    requests = admin.stats()["requests"]
    return Counter(requests["served"]) + Counter(requests["failed"])


def stopped(keyed: OrchestratorProcess) -> Path:
    """The data folder once all is written down."""
    assert keyed.stop() == 0, keyed.log()
    return keyed.data


def attempts_in(lines: list[tuple[Any, ...]]) -> int:
    """How many attempts some lines tell of."""
    total = 0
    for *_, detail in lines:
        more = MORE.search(detail)
        total += int(more[1].replace(",", "")) if more else 1
    return total


def check_untouched(
    trial: Trial, data: Path, before: list[tuple[Any, ...]], last: int, allowed: Counter[str]
) -> None:
    """Nothing was changed but by the machine itself."""
    trial.check(query(data, CONTENTS) == before, "memories were changed")
    done = Counter(operation for who, operation in query(data, DONE, last) if who == "local")
    others = [line for line in query(data, DONE, last) if line[0] != "local"]
    trial.check(not others, f"was done: {others}")
    trial.check(done == allowed, f"was done by the machine: {done}")


def test_who_has_no_right_key_reaches_no_operation(
    keyed: OrchestratorProcess,
    admin: MemoryClient,
    context: Context,
    alice: key_files.KeyFile,
    aim: Aim,
) -> None:
    served = served_by(admin)
    before, [(last,)] = query(keyed.data, CONTENTS), query(keyed.data, LAST)
    other = new_pair("other")
    anonymous = [
        NO_KEY,
        PASSWORD,
        key_of(alice)._replace(kind="the key of another orchestrator", server_key=other.public_key),
        key_of(alice)._replace(kind="her public key alone", secret_key=other.secret_key),
    ]
    unknown: dict[str, str] = {}
    with Trial("P13") as trial:
        for name, frame in frames(aim):
            stranger = new_pair("stranger", alice.server_key)
            unknown[stranger.public_key] = name
            for credentials in (*anonymous, key_of(stranger)._replace(kind="an unknown key")):
                trial.case()
                with Caller(context, keyed.endpoint, credentials) as caller:
                    caller.send(frame)
                    case = f"{credentials.kind}: {name}"
                    trial.check(not caller.was_let_in(), f"{case} was let in")
                    trial.check(not caller.has_answer(), f"{case} was answered")
        reached = served_by(admin) - served - Counter(stats=1)
        trial.check(not reached, f"the orchestrator worked on {reached}")
        data = stopped(keyed)
        lines = query(data, DENIED)
        by_key = Counter(line[2] for line in lines if line[2])
        for key, name in unknown.items():
            trial.check(by_key[key] == 1, f"an unknown key: {name} has {by_key[key]} lines")
        nameless = [line for line in lines if not line[2]]
        wanted = len(anonymous) * len(unknown)
        told = attempts_in(nameless)
        trial.check(told >= wanted, f"{wanted} attempts without a key, {told} in the audit")
        reasons = {MORE.sub("", line[3]) for line in nameless}
        trial.check(
            {"no key", "not made for the key of this orchestrator"} <= reasons,
            f"the audit tells only of {reasons}",
        )
        strange = [line for line in lines if line[:2] != (STRANGER, "connect")]
        trial.check(not strange, f"the audit names {strange[:3]}")
        check_untouched(trial, data, before, last, Counter())


def test_a_revoked_key_reaches_no_operation_on_a_connection_that_is_open(
    keyed: OrchestratorProcess, admin: MemoryClient, context: Context, aim: Aim, tmp_path: Path
) -> None:
    path = issue(admin, tmp_path / "mallory.key", "mallory", ("*", "admin"))
    mallory = key_files.read(path)
    with Trial("P13") as trial, Caller(context, keyed.endpoint, key_of(mallory)) as caller:
        assert caller.was_let_in()
        caller.send(request(1, "list_identities"))
        assert caller.answer()["count"] == 2, "until then she may do everything"
        before, [(last,)] = query(keyed.data, CONTENTS), query(keyed.data, LAST)
        admin.revoke_access("mallory")
        for name, frame in frames(aim):
            trial.case()
            caller.send(frame)
            answer = caller.answer()
            trial.check(code_of(answer) == "unauthenticated", f"{name}: {str(answer)[:200]}")
            trial.check(MARKER not in str(answer), f"{name} delivered the marker")
        trial.case()
        with Caller(context, keyed.endpoint, key_of(mallory)) as again:
            trial.check(not again.was_let_in(), "she was let in again")
        data = stopped(keyed)
        lines = Counter(line[:3] for line in query(data, DENIED))
        wanted = Counter(("mallory", name, mallory.public_key) for name in [*REGISTRY, "connect"])
        trial.check(lines == wanted, f"lines of the audit: {lines - wanted} / {wanted - lines}")
        check_untouched(trial, data, before, last, Counter(revoke_access=1))


def test_the_key_of_another_gets_nothing_that_is_not_its_own(
    keyed: OrchestratorProcess, admin: MemoryClient, context: Context, aim: Aim, tmp_path: Path
) -> None:
    bob = key_files.read(issue(admin, tmp_path / "bob.key", "bob"))
    before, [(last,)] = query(keyed.data, CONTENTS), query(keyed.data, LAST)
    refused: Counter[str] = Counter()
    with Trial("P13") as trial, Caller(context, keyed.endpoint, key_of(bob)) as caller:
        assert caller.was_let_in()
        for name, frame in frames(aim):
            trial.case()
            caller.send(frame)
            answer = caller.answer()
            trial.check(MARKER not in str(answer), f"{name} delivered the marker")
            refused[name] += code_of(answer) == "forbidden"
        assert sum(refused.values()) > 10, "the operations that need more than he has"
        data = stopped(keyed)
        lines = Counter(line[1] for line in query(data, DENIED) if line[0] == "bob")
        for name in refused:
            trial.check(lines[name] >= refused[name], f"{name} has {lines[name]} lines")
        trial.check(query(data, CONTENTS) == before, "memories were changed")
        others = [line for line in query(data, DONE, last) if line[0] != "bob"]
        trial.check(not others, f"was done: {others}")


@contextmanager
def taking_over(
    context: Context, endpoint: str, credentials: Credentials, name: bytes
) -> Iterator[Caller]:
    """A caller that has the name of a lost connection, with an answer to its first request.

    Until the orchestrator has noticed the loss, nobody else is heard under that name.
    """
    for _ in range(TAKEN_OVER_TRIES):
        with Caller(context, endpoint, credentials, name) as caller:
            assert caller.was_let_in()
            caller.send(request(3, "ping"))
            if caller.has_answer(within_s=1.0):
                yield caller
                return
    raise AssertionError("the name was never free again")


def test_an_answer_does_not_reach_who_takes_the_name_of_a_lost_connection(
    keyed: OrchestratorProcess,
    admin: MemoryClient,
    context: Context,
    alice: key_files.KeyFile,
    aim: Aim,
    tmp_path: Path,
) -> None:
    bob = key_files.read(issue(admin, tmp_path / "bob.key", "bob"))
    with Trial("P13") as trial:
        for name in (b"agent-7", b"\x00agent"):
            trial.case()
            # Answered as soon as something is written, and her connection is lost by then.
            awaited = {"memory_id": aim.memory_id, "min_seq": admin.ping()["seq"] + 1}
            with Caller(context, keyed.endpoint, key_of(alice), name) as caller:
                assert caller.was_let_in()
                caller.send(request(1, "get_memory", awaited))
                # The socket takes what is sent in its order.
                caller.send(request(2, "ping"))
                caller.answer()
            with taking_over(context, keyed.endpoint, key_of(bob), name) as other:
                answer = other.answer()
                trial.check(code_of(answer) == "malformed_request", f"{name!r}: {answer}")
                admin.add_memory("Something else", namespace="user:carol")
                while admin.stats()["requests"]["in_flight"] > 1:
                    pass  # hers is not answered yet
                other.send(request(4, "ping"))
                answers = [other.answer()]
                while other.has_answer():
                    answers.append(other.answer())
                trial.check(MARKER not in str(answers), f"{name!r}: he was sent hers")


def test_the_check_would_notice_who_is_let_in(
    keyed: OrchestratorProcess, context: Context, alice: key_files.KeyFile, aim: Aim
) -> None:
    with Caller(context, keyed.endpoint, key_of(alice)) as caller:
        caller.send(request(1, "get_memory", {"memory_id": aim.memory_id}))
        assert caller.was_let_in()
        assert MARKER in str(caller.answer())
    trial = Trial("P13")
    check_untouched(trial, keyed.data, [], 0, Counter())
    assert len(trial.violations) == 3


def test_attempts_are_summed_over_their_lines() -> None:
    lines = [("a", "b", "c", "no key"), ("a", "b", "c", "no key: 1,204 more attempts")]
    assert attempts_in([*lines, ("a", "b", "c", "no key: 1 more attempt")]) == 1206
