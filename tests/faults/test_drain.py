"""P20: SIGTERM drains. And what had expired before it was begun is never executed."""

from __future__ import annotations

import fcntl
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from recollect import RecollectError
from recollect.client import Breaker, Retry
from recollect.orchestrator.running.data_folder import ORCHESTRATOR, announcement_path, lock_path
from recollect.protocol.errors import RequestTimeout
from tests.faults import counts, wire
from tests.faults.ledger import Trial
from tests.faults.polling import wait_for
from tests.faults.tools import database
from tests.harness.processes import OrchestratorProcess

STOPPED_WITHIN_S = 10.0
PIPELINED = 1_000
NAMESPACE = "project:drained"


class Caller(threading.Thread):
    """A client that adds memories until a call fails, and tells each outcome."""

    def __init__(self, process: OrchestratorProcess, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._client = process.client(
            retry=Retry(attempts_max=1), breaker=Breaker(fail_max=1_000_000), timeout=20.0
        )
        self.stored: list[str] = []
        self.failure: RecollectError | None = None

    def run(self) -> None:
        with self._client as client:
            while self.failure is None:
                content = f"{self.name}x{len(self.stored)} before the end"
                try:
                    client.add_memory(content, namespace=NAMESPACE)
                    self.stored.append(content)
                except RecollectError as error:
                    self.failure = error


class Pipeline:
    """Many writes sent at once on one line, without waiting for any."""

    def __init__(self, process: OrchestratorProcess, name: str) -> None:
        self._line = wire.Wire(process.endpoint)
        self._contents = [f"{name}x{n} before the end" for n in range(PIPELINED)]
        self.told: Counter[str] = Counter()
        self.stored: set[str] = set()

    def send(self) -> None:
        for number, content in enumerate(self._contents):
            body = {"content": content, "namespace": NAMESPACE}
            self._line.send(wire.request(number, "add_memory", body))

    def receive(self, count: int, within_s: float) -> None:
        """Take so many answers, or as many as come."""
        while count and self._line.waiting(within_s):
            number, answer = self._line.receive()
            assert isinstance(number, int)
            self.told[wire.code_of(answer)] += 1
            if answer["status"] == "success":
                self.stored.add(self._contents[number])
            count -= 1

    def close(self) -> None:
        self._line.close()


@pytest.mark.timeout(counts.timeout_s(90))
def test_sigterm_under_load_answers_what_was_accepted_and_ends_clean(tmp_path: Path) -> None:
    # With so much room all of the pipelines is accepted, and the stop finds a long queue.
    room = {"RECOLLECT_NETWORK_IN_FLIGHT_MAX": "100000"}
    process = OrchestratorProcess(tmp_path / "data", env=room)
    chance = random.Random(counts.SEED)
    acknowledged: set[str] = set()
    with Trial("P20") as trial:
        try:
            for number in range(counts.DRAINS):
                process.start()
                acknowledged |= stop_under_load(trial, process, number, chance)
                trial.case()
        finally:
            process.close()
        check_answers(trial, process.data, acknowledged)
        for problem in database.problems(process.data, tmp_path / "copy"):
            trial.violated(problem)


def stop_under_load(
    trial: Trial, process: OrchestratorProcess, number: int, chance: random.Random
) -> set[str]:
    """Stop it amid the requests of many; what it acknowledged."""
    callers = [Caller(process, f"caller{number}x{n}") for n in range(4)]
    pipelines = [Pipeline(process, f"pipelined{number}x{n}") for n in range(3)]
    for caller in callers:
        caller.start()
    wait_for(lambda: all(len(c.stored) > 5 for c in callers), within_s=20.0, what="traffic")
    for line in pipelines:
        line.send()
    # So many answers are in when the stop comes: it falls into the middle of the rest.
    pipelines[0].receive(chance.randint(0, PIPELINED // 4), within_s=10.0)
    children = psutil.Process(process.pid).children(recursive=True)
    began_s = time.monotonic()
    process.signal(signal.SIGTERM)
    code = process.wait_ended()
    took_s = time.monotonic() - began_s
    trial.check(code == 0, f"exit code {code}:\n{process.log()[-2000:]}")
    trial.check(took_s <= STOPPED_WITHIN_S, f"it took {took_s:.1f} s")
    acknowledged: set[str] = set()
    for line in pipelines:
        line.receive(PIPELINED, within_s=0.2)
        line.close()
        strange = line.told.keys() - {"success", "shutting_down", "overloaded"}
        trial.check(not strange, f"pipelined writes were told {strange}")
        acknowledged |= line.stored
    for caller in callers:
        caller.join(30.0)
        assert not caller.is_alive(), "a call did not end"
        acknowledged |= set(caller.stored)
        failure = caller.failure
        trial.check(failure is not None and failure.retryable, f"a caller was told {failure!r}")
    check_nothing_left(trial, process, children)
    return acknowledged


def check_answers(trial: Trial, data: Path, acknowledged: set[str]) -> None:
    """What was answered with success is stored; what is stored was answered."""
    sql = "SELECT content FROM memories WHERE namespace = ?"
    stored = {
        str(content) for (content,) in database.rows(data / "recollect.db", sql, (NAMESPACE,))
    }
    for content in acknowledged - stored:
        trial.violated(f"acknowledged, but not stored: {content!r}")
    for content in stored - acknowledged:
        trial.violated(f"accepted and stored, but not answered: {content!r}")


def check_nothing_left(
    trial: Trial, process: OrchestratorProcess, children: list[psutil.Process]
) -> None:
    """The lock is free, the announcement is gone, no log of SQLite's and no process stays; of the
    index, nothing unfinished."""
    left = {path.name for path in process.data.iterdir()}
    lock = lock_path(process.data, ORCHESTRATOR)
    wanted = {"recollect.db", "index", "keys", lock.name}
    trial.check(left == wanted, f"the folder holds {sorted(left)}")
    unfinished = list((process.data / "index").glob("*/*.partial"))
    trial.check(not unfinished, f"the index holds {unfinished}")
    announced = announcement_path(process.data, ORCHESTRATOR)
    trial.check(announced.name not in left, "it still says that it serves")
    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            trial.violated("the lock is still held")
    trial.check(not any(child.is_running() for child in children), "a process was left behind")


def test_the_check_notices_a_loss_and_a_missing_answer(tmp_path: Path) -> None:
    with OrchestratorProcess(tmp_path / "data") as process:
        with process.client() as client:
            client.add_memory("stored", namespace=NAMESPACE)
        assert process.stop() == 0
    trial = Trial("P20")
    check_answers(trial, process.data, {"stored"})
    assert trial.violations == []
    check_answers(trial, process.data, {"acknowledged"})
    assert len(trial.violations) == 2


def test_a_request_that_expired_before_it_was_begun_is_not_executed(
    orchestrator: OrchestratorProcess,
) -> None:
    """The orchestrator is stopped in its tracks while a write comes in and expires."""
    with orchestrator.client(retry=Retry(attempts_max=1)) as client:
        client.ping()
        orchestrator.signal(signal.SIGSTOP)
        try:
            with pytest.raises(RequestTimeout):
                client.add_memory("written too late", timeout=0.3)
        finally:
            orchestrator.signal(signal.SIGCONT)
        assert client.count()["count"] == 0
        # What came after it is executed, so it was seen and left out.
        assert client.add_memory("written in time")["seq"] == 1
        served = client.stats()["requests"]
        assert served["failed"] == {"deadline_exceeded": 1}
