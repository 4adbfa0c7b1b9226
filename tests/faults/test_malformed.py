"""P10: malformed input harms nothing."""

from __future__ import annotations

import itertools
import random
import socket
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from recollect.protocol.errors import BY_CODE
from tests.faults import counts, wire
from tests.faults.ledger import Trial
from tests.faults.malformed import Case, Good, Maker, raw_stream
from tests.harness.processes import OrchestratorProcess

LINES = 4
WINDOW = 100
ANSWERED_WITHIN_S = 10.0
RAW_CASES = counts.MALFORMED // 20
RANDOM_CASES = counts.MALFORMED // 2
GROWN_MB_MAX = 100 if counts.ALONE else 200
"""The promise; beside other tests, which have been seen to add to it, only what is plain counts."""
DEFECTS = ("internal", "storage_failed", "storage_full")


class Memory:
    """The largest resident size of a process since it was first looked at."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.first = self.largest = self._process.memory_info().rss

    def look(self) -> None:
        self.largest = max(self.largest, self._process.memory_info().rss)

    @property
    def growth(self) -> int:
        return self.largest - self.first


def good_bodies(process: OrchestratorProcess) -> Good:
    with process.client() as client:
        ids = [
            client.add_memory(f"good memory {n}", namespace="temp:malformed")["memory_id"]
            for n in range(3)
        ]
        client.put("temp:malformed", "good", {"a": 1})
        group_id = client.create_context_group("good")["group_id"]
        return Good(ids, group_id, client.create_session("alice")["session_id"])


def problem_of(answer: dict[str, object]) -> str | None:
    """What is wrong with an answer to a malformed request; None for a typed refusal or success."""
    code = wire.code_of(answer)
    if code in DEFECTS:
        return f"{answer}"
    return None if code in ("success", "partial") or code in BY_CODE else f"no such code: {code}"


def exchange(line: wire.Wire, cases: list[tuple[str, Case]], trial: Trial) -> Counter[str]:
    """Send cases together; each must be answered, and none as a defect of ours."""
    for _, frames in cases:
        line.send(*frames)
    told: Counter[str] = Counter()
    suspect = False
    for _ in cases:
        if not line.waiting(ANSWERED_WITHIN_S):
            trial.violated(f"{len(cases) - told.total()} of {len(cases)} were not answered")
            break
        _, answer = line.receive()
        told[wire.code_of(answer)] += 1
        suspect |= problem_of(answer) is not None
    if suspect:
        for kind, frames in cases:
            line.send(*frames)
            _, answer = line.receive(ANSWERED_WITHIN_S)
            if (problem := problem_of(answer)) is not None:
                trial.violated(f"{kind}: {problem[:300]} for {frames[-1][:300]!r}")
    return told


@pytest.mark.timeout(counts.timeout_s(120))
def test_every_malformed_request_gets_a_typed_answer(orchestrator: OrchestratorProcess) -> None:
    maker = Maker(good_bodies(orchestrator), counts.SEED)
    cases = itertools.chain(
        maker.every_nasty_field(), itertools.islice(maker.random_cases(), RANDOM_CASES)
    )
    lines = itertools.cycle([wire.Wire(orchestrator.endpoint) for _ in range(LINES)])
    told: Counter[str] = Counter()
    with Trial("P10") as trial:
        # What every operation takes when it is first used is no harm.
        for case in maker.every_good_body():
            exchange(next(lines), [case], trial)
        memory = Memory(orchestrator.pid)
        while window := list(itertools.islice(cases, WINDOW)):
            told += exchange(next(lines), window, trial)
            trial.case(len(window))
            assert orchestrator.running(), f"it died of one of {window}"
            memory.look()
        for _ in range(LINES):
            next(lines).close()
        check_unharmed(trial, orchestrator, memory)
        # Only a mixture tries all that stands between a frame and an answer.
        for code in ("success", "malformed_request", "invalid_argument", "limit_exceeded"):
            assert told[code] > trial.cases / 200, f"hardly any {code}: {told}"
        assert trial.cases + RAW_CASES >= counts.MALFORMED


@pytest.mark.timeout(counts.timeout_s(60))
def test_garbage_on_the_port_harms_nothing(orchestrator: OrchestratorProcess) -> None:
    chance = random.Random(counts.SEED)
    target = urlsplit(orchestrator.endpoint)
    memory = Memory(orchestrator.pid)
    with Trial("P10") as trial, orchestrator.client() as bystander:
        held: list[socket.socket] = []
        for number in range(RAW_CASES):
            line = socket.create_connection((str(target.hostname), int(target.port or 0)), 5.0)
            # It may be cut off while it still speaks.
            with suppress(OSError):
                line.sendall(raw_stream(chance))
            held.append(line)
            if len(held) > 50:
                held.pop(chance.randrange(len(held))).close()
            trial.case()
            if number % 20 == 0:
                trial.check(bystander.ping()["ready"], "a bystander was harmed")
                memory.look()
        for line in held:
            line.close()
        check_unharmed(trial, orchestrator, memory)


def check_unharmed(trial: Trial, process: OrchestratorProcess, memory: Memory) -> None:
    memory.look()
    assert process.running()
    trial.check(
        "defect" not in process.log(), f"the log tells of a defect:\n{process.log()[-3000:]}"
    )
    grown_mb = memory.growth / 2**20
    trial.check(grown_mb <= GROWN_MB_MAX, f"the orchestrator grew by {grown_mb:.0f} MB")
    with process.client() as client:
        added = client.add_memory("goodafterall is still stored and found")
        [found] = client.search_memory("goodafterall")["results"]
        trial.check(found["id"] == added["memory_id"], "a good client is not served")
        # Whatever was let in can be read back.
        for operation in (client.list_memories, client.recent_errors):
            trial.check(
                operation(limit=1000)["status"] == "success", "what is stored is unreadable"
            )
        client.stats()


def test_a_backup_to_an_impossible_place_is_refused(
    orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    paths = ["", "relative", "\0", f"{tmp_path}/\0", str(tmp_path), str(file), f"{file}/below"]
    paths += [f"{tmp_path}/{'x' * 5_000}", f"{tmp_path}/{'x/' * 3_000}", "/proc/nowhere"]
    with Trial("P10") as trial, wire.Wire(orchestrator.endpoint) as line:
        for path in paths:
            trial.case()
            told = wire.code_of(line.ask("backup", {"path": path}))
            trial.check(
                told in ("invalid_argument", "storage_failed"), f"{path[:50]!r} was told {told}"
            )
        trial.check(file.read_text() == "not a folder", "a file in the way was changed")
        assert line.ask("ping")["ready"]


def test_the_check_notices_a_defect() -> None:
    assert problem_of({"status": "error", "error": {"code": "internal"}}) is not None
    assert problem_of({"status": "error", "error": {"code": "made_up"}}) is not None
    assert problem_of({"status": "error", "error": {"code": "malformed_request"}}) is None
    assert problem_of({"status": "success"}) is None
