"""P3: a retry never duplicates."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from recollect.protocol.errors import IdempotencyConflict
from tests.faults import counts, wire
from tests.faults.ledger import Trial
from tests.faults.tools.proxy import CUTS, Cut, CuttingProxy
from tests.faults.tools.writers import patient_client
from tests.harness.processes import OrchestratorProcess

THREADS = 8
CUT_SHARE = 0.35
NAMESPACE = "project:retries"
# What is cut here are replies: a connection that is slow in coming on a busy machine is no case.
UNHURRIED = {"call_s": 30.0, "connect_s": 10.0}


def contents_stored(process: OrchestratorProcess, namespace: str) -> list[str]:
    """The contents of all memories of a namespace, read past the proxy."""
    found: list[str] = []
    cursor: str | None = None
    with process.client() as client:
        while True:
            page = client.list_memories(namespace=namespace, limit=1000, cursor=cursor)
            found += [memory["content"] for memory in page["memories"]]
            cursor = page["cursor"]
            if cursor is None:
                return found


def check_stored_once(trial: Trial, stored: list[str], sent: list[str]) -> None:
    """Each sent content is stored exactly once, and nothing else is."""
    times = Counter(stored)
    for content in sent:
        trial.check(times[content] == 1, f"{content!r} is stored {times[content]} times")
    trial.check(len(stored) == len(sent), f"{len(stored)} memories from {len(sent)} writes")


def test_the_check_notices_a_duplicate_and_a_loss() -> None:
    trial = Trial("P3")
    check_stored_once(trial, ["a", "a", "b"], ["a", "b", "c"])
    assert [text.split(" is")[0] for text in trial.violations] == ["'a'", "'c'"]
    check_stored_once(trial, ["a", "a", "b"], ["a", "b"])
    assert "3 memories from 2 writes" in trial.violations


@pytest.mark.timeout(counts.timeout_s(60))
def test_a_write_whose_reply_was_cut_off_is_stored_once(
    storage: str, orchestrator: OrchestratorProcess
) -> None:
    chance = random.Random(counts.SEED)

    def choose() -> Cut:
        return chance.choice(CUTS) if chance.random() < CUT_SHARE else "none"

    contents = [f"write{n} of many" for n in range(counts.on(storage, counts.RETRIED_ADDS))]
    with Trial("P3") as trial, CuttingProxy(orchestrator.endpoint, choose) as proxy:
        with patient_client(proxy.endpoint, "retrying", **UNHURRIED) as client:

            def add(content: str) -> tuple[str, str]:
                key = f"key of {content}"
                first = client.add_memory(content, namespace=NAMESPACE, idempotency_key=key)
                again = client.add_memory(content, namespace=NAMESPACE, idempotency_key=key)
                return first["memory_id"], again["memory_id"]

            def contradict(content: str) -> bool:
                """The same key with another payload: whether that was refused."""
                try:
                    client.add_memory(
                        f"not {content}", namespace=NAMESPACE, idempotency_key=f"key of {content}"
                    )
                except IdempotencyConflict:
                    return True
                return False

            with ThreadPoolExecutor(THREADS) as pool:
                answers = list(pool.map(add, contents))
                refused = list(pool.map(contradict, contents))
        trial.case(len(contents))
        for content, (first, again) in zip(contents, answers, strict=True):
            trial.check(first == again, f"{content!r} was answered with {first}, then {again}")
        for content, conflict in zip(contents, refused, strict=True):
            trial.check(conflict, f"the key of {content!r} was taken for another payload")
        check_stored_once(trial, contents_stored(orchestrator, NAMESPACE), contents)
        for cut in CUTS:
            assert proxy.cuts[cut] > len(contents) // 50, f"too few cuts: {proxy.cuts}"


@pytest.mark.usefixtures("storage")
def test_a_retry_after_a_restart_is_not_a_second_write(
    orchestrator: OrchestratorProcess,
) -> None:
    """The reply is lost, the orchestrator is killed, the client asks the next one by its key."""
    cuts: list[Cut] = []
    contents = [f"survivor{n} of a restart" for n in range(10)]
    with (
        Trial("P3") as trial,
        CuttingProxy(orchestrator.endpoint, lambda: cuts.pop() if cuts else "none") as proxy,
        patient_client(proxy.endpoint, "restarted") as client,
    ):
        for number, content in enumerate(contents, 1):
            with wire.Wire(proxy.endpoint) as line:
                cuts.append("lose_reply")
                body = {"content": content, "namespace": NAMESPACE}
                line.send(wire.request(1, "add_memory", body, key=content))
                proxy.wait_for_cuts("lose_reply", number)
                assert not line.waiting(0)
        stored = contents_stored(orchestrator, NAMESPACE)
        orchestrator.kill()
        orchestrator.start()
        for content in contents:
            client.add_memory(content, namespace=NAMESPACE, idempotency_key=content)
            trial.case()
            with pytest.raises(IdempotencyConflict):
                client.add_memory("something else", namespace=NAMESPACE, idempotency_key=content)
        check_stored_once(trial, stored, contents)
        check_stored_once(trial, contents_stored(orchestrator, NAMESPACE), contents)


@pytest.mark.usefixtures("storage")
def test_copies_of_one_write_in_flight_together_take_effect_once(
    orchestrator: OrchestratorProcess,
) -> None:
    lines = [wire.Wire(orchestrator.endpoint) for _ in range(5)]
    contents = [f"copy{n} in flight" for n in range(20)]
    copies = 4
    with Trial("P3") as trial:
        for content in contents:
            for line in lines:
                for number in range(copies):
                    body = {"content": content, "namespace": NAMESPACE}
                    line.send(wire.request(number, "add_memory", body, key=content))
        answers: dict[str, set[str]] = {}
        for line in lines:
            for n in range(len(contents) * copies):
                _, answer = line.receive()
                assert answer["status"] == "success", answer
                answers.setdefault(contents[n // copies], set()).add(answer["memory_id"])
            line.close()
        for content in contents:
            trial.case()
            ids = answers[content]
            trial.check(len(ids) == 1, f"the copies of {content!r} were told different ids: {ids}")
        check_stored_once(trial, contents_stored(orchestrator, NAMESPACE), contents)
