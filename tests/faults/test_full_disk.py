"""P7: a full disk is an explicit error; reads go on; it recovers by itself."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from recollect import MemoryClient
from recollect.client import Breaker, Retry
from tests.faults import counts, wire
from tests.faults.ledger import Trial
from tests.faults.polling import wait_for
from tests.faults.tools import database, disk
from tests.faults.tools.acknowledgements import Acknowledged, AcknowledgementLog
from tests.faults.tools.writers import Writers
from tests.harness.processes import OrchestratorProcess

REFUSED_WITHIN_S = 20.0


def hasty_client(process: OrchestratorProcess) -> MemoryClient:
    """A client that shows every answer as it comes."""
    return process.client(
        raise_errors=False, retry=Retry(attempts_max=1), breaker=Breaker(fail_max=1_000_000)
    )


def live_through(
    trial: Trial, process: OrchestratorProcess, log: AcknowledgementLog, number: int
) -> None:
    """On the full disk: write until it is refused, and look whether reads go on."""
    refusals: list[str] = []
    with hasty_client(process) as client:

        def refused() -> bool:
            content = f"fullx{number}x{len(log)} is a memory that may not fit {'x' * 500}"
            answer = cast(dict[str, Any], client.add_memory(content))
            if answer["status"] == "success":
                log.add(Acknowledged(answer["memory_id"], answer["version"], content))
                return False
            refusals.append(wire.code_of(answer))
            return True

        wait_for(refused, within_s=REFUSED_WITHIN_S, what="a write to be refused")
        for _ in range(20):
            refused()
        trial.check(
            set(refusals) == {"storage_full"}, f"writes were refused as {sorted(set(refusals))}"
        )
        known = log.entries()[0]
        given = client.assemble_context(known.content)
        reads = {
            "get": client.get_memory(known.memory_id, include_deleted=True),
            "history": client.history(known.memory_id),
            "search": client.search_memory("remembers"),
            "semantic": client.semantic_search(known.content),
            "list": client.list_memories(limit=5),
            "context": given,
            "count": client.count(),
            "stats": client.stats(),
            "ping": client.ping(),
        }
        for name, answer in reads.items():
            trial.check(answer["status"] == "success", f"{name} on a full disk: {answer}")
        trial.check(
            given["count"] > 0 and (given["receipt_id"] is None) == ("degraded" in given),
            f"a context on a full disk: {given}",
        )
        folder = process.data.parent / f"backup-{number}"
        backup = wire.code_of(cast(dict[str, Any], client.backup(str(folder))))
        trial.check(
            backup in ("success", "storage_full", "storage_failed"), f"backup failed as {backup}"
        )
        trial.check(folder.exists() == (backup == "success"), "half a backup was left behind")


def check_recovered(
    trial: Trial, process: OrchestratorProcess, log: AcknowledgementLog, number: int
) -> None:
    with hasty_client(process) as client:

        def writes() -> bool:
            content = f"freex{number} is stored again"
            answer = client.add_memory(content, idempotency_key=f"free-{number}")
            if answer["status"] == "success":
                log.add(Acknowledged(answer["memory_id"], answer["version"], content))
            return answer["status"] == "success"

        wait_for(writes, within_s=10.0, what="writing to go on once there is space")


@pytest.mark.timeout(counts.timeout_s(120))
def test_a_full_disk_refuses_writes_serves_reads_and_recovers(
    orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    """From one byte, at which even the log cannot be written, to a little above what is there."""
    chance = random.Random(counts.SEED)
    log = AcknowledgementLog()
    pid = orchestrator.pid
    wal = orchestrator.data / "recollect.db-wal"
    with Trial("P7") as trial:
        with Writers(orchestrator.endpoint, log, seed=counts.SEED, count=2) as writers:
            for number in range(counts.FULL_DISKS):
                log.wait_for_more(50)
                size_bytes = {0: 1, 1: wal.stat().st_size + 20_000}.get(
                    number, chance.randint(1, wal.stat().st_size + 50_000)
                )
                with disk.files_limited(orchestrator.pid, size_bytes):
                    live_through(trial, orchestrator, log, number)
                check_recovered(trial, orchestrator, log, number)
                trial.case()
                assert orchestrator.running() and orchestrator.pid == pid, orchestrator.log()
        for failure in writers.failures:
            trial.violated(failure)
        for complaint in log.check(orchestrator.endpoint):
            trial.violated(complaint)
        assert orchestrator.stop() == 0
        for problem in database.problems(orchestrator.data, tmp_path / "copy"):
            trial.violated(problem)


def test_a_disk_that_fills_up_amid_a_large_commit_loses_nothing_acknowledged(
    tmp_path: Path,
) -> None:
    """With a small page cache large batches reach the disk before their commit, and fail there."""
    chance = random.Random(counts.SEED)
    log = AcknowledgementLog()
    env = {"RECOLLECT_STORAGE_PAGE_CACHE_MB": "1"}
    with Trial("P7") as trial, OrchestratorProcess(tmp_path / "data", env=env) as process:
        wal = process.data / "recollect.db-wal"
        told: Counter[str] = Counter()
        for number in range(counts.pick(4, 40)):
            trial.case()
            size_bytes = wal.stat().st_size + chance.randint(100_000, 2_000_000)
            with (
                disk.files_limited(process.pid, size_bytes),
                wire.Wire(process.endpoint) as line,
            ):
                told += write_together(line, log, f"spill{number}")
        for complaint in log.check(process.endpoint):
            trial.violated(complaint)
        assert told.keys() == {"success", "storage_full"}, told
        assert process.stop() == 0
        for problem in database.problems(process.data, tmp_path / "copy"):
            trial.violated(problem)


def write_together(line: wire.Wire, log: AcknowledgementLog, name: str) -> Counter[str]:
    """Single writes and large batches at once, so that they share commits; what each was told."""
    contents: list[list[str]] = []
    for number in range(200):
        many = 150 if number % 50 == 7 else 1
        contents.append([f"{name}x{number}x{n} {'z' * 4_000}" for n in range(many)])
        items = [{"content": content} for content in contents[-1]]
        op, body = (
            ("add_memory", items[0]) if many == 1 else ("batch_add_memories", {"memories": items})
        )
        line.send(wire.request(number, op, body))
    told: Counter[str] = Counter()
    for _ in contents:
        number, answer = cast(tuple[int, dict[str, Any]], line.receive(within_s=30.0))
        told[wire.code_of(answer)] += 1
        if answer["status"] == "success":
            ids = answer.get("memory_ids") or [answer["memory_id"]]
            for memory_id, content in zip(ids, contents[number], strict=True):
                log.add(Acknowledged(memory_id, 1, content))
    return told


def test_a_filesystem_without_space_is_survived(tmp_path: Path) -> None:
    log = AcknowledgementLog()
    with disk.small_filesystem(tmp_path / "small", 8) as mounted:
        if not mounted:
            pytest.skip("no filesystem may be mounted here; the limit on file sizes was tried")
        with (
            Trial("P7") as trial,
            OrchestratorProcess(tmp_path / "small" / "data") as process,
            Writers(process.endpoint, log, seed=counts.SEED, count=2) as writers,
        ):
            for number in range(2):
                log.wait_for_more(50)
                filler = disk.fill(tmp_path / "small")
                try:
                    live_through(trial, process, log, number)
                finally:
                    filler.unlink()
                check_recovered(trial, process, log, number)
                trial.case()
            writers.stop()
            for failure in writers.failures:
                trial.violated(failure)
            for complaint in log.check(process.endpoint):
                trial.violated(complaint)
            assert process.stop() == 0
            for problem in database.problems(process.data, tmp_path / "copy"):
                trial.violated(problem)
