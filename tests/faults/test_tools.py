"""The tools of the fault tests notice what they are there to notice."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.faults import wire
from tests.faults.comparing import Comparison
from tests.faults.ledger import Ledger, Trial
from tests.faults.polling import wait_for
from tests.faults.rounds import ROUNDS_MAX, SLOWER_MAX, alike
from tests.faults.segmented import SETTINGS, Store
from tests.faults.tools import database, disk
from tests.faults.tools.acknowledgements import Acknowledged, AcknowledgementLog
from tests.faults.tools.proxy import CUTS, Cut, CuttingProxy
from tests.harness.processes import OrchestratorProcess
from tests.harness.worlds import World


def stored(process: OrchestratorProcess, count: int) -> AcknowledgementLog:
    """Memories of which each was acknowledged."""
    log = AcknowledgementLog()
    with process.client() as client:
        for number in range(count):
            content = f"tool{number} remembers"
            added = client.add_memory(content)
            log.add(Acknowledged(added["memory_id"], added["version"], content))
    return log


def tamper(process: OrchestratorProcess, sql: str, *params: str) -> None:
    connection = apsw.Connection(str(process.data / "recollect.db"))
    connection.set_busy_timeout(5_000)
    connection.execute(sql, params)
    connection.close()


def test_the_acknowledgement_log_notices_a_row_that_is_lost_or_changed(
    orchestrator: OrchestratorProcess,
) -> None:
    log = stored(orchestrator, 5)
    assert log.check(orchestrator.endpoint) == []
    orchestrator.stop()
    lost, changed, superseded, unfindable, _ = (entry.memory_id for entry in log.entries())
    tamper(orchestrator, "DELETE FROM memories WHERE id = ?", lost)
    tamper(orchestrator, "UPDATE memories SET content = 'else' WHERE id = ?", changed)
    tamper(orchestrator, "UPDATE memories SET version = 2 WHERE id = ?", superseded)
    tamper(
        orchestrator,
        "DELETE FROM memories_fts WHERE rowid = (SELECT num FROM memories WHERE id = ?)",
        unfindable,
    )
    orchestrator.start()
    complaints = log.check(orchestrator.endpoint)
    for memory_id, what in (
        (lost, "lost"),
        (lost, "gone"),
        (changed, "changed"),
        (superseded, "not the present version"),
        (unfindable, "not found by its word"),
    ):
        assert any(memory_id in c and c.startswith(what) for c in complaints), complaints
    assert len(complaints) >= 5


def test_the_database_check_notices_a_torn_page_and_a_broken_chain(
    orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    stored(orchestrator, 50)
    orchestrator.stop()
    assert database.problems(orchestrator.data, tmp_path / "copy") == []
    tamper(orchestrator, "UPDATE journal SET subject = 'another' WHERE seq = 7")
    [broken] = database.problems(orchestrator.data, tmp_path / "copy")
    assert broken.startswith("journal: entry 7 was changed")
    path = orchestrator.data / "recollect.db"
    [(page,)] = database.rows(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'")
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 : (page - 1) * 4096 + 100] = bytes(range(100))
    path.write_bytes(content)
    found = database.problems(orchestrator.data, tmp_path / "copy")
    assert any(problem.startswith("integrity_check") for problem in found), found


@pytest.mark.parametrize("cut", CUTS)
def test_the_proxy_cuts_where_it_says(cut: Cut, orchestrator: OrchestratorProcess) -> None:
    cuts: list[Cut] = [cut]
    with CuttingProxy(orchestrator.endpoint, lambda: cuts.pop() if cuts else "none") as proxy:
        with wire.Wire(proxy.endpoint) as line:
            line.send(wire.request(1, "add_memory", {"content": "through the proxy"}))
            proxy.wait_for_cuts(cut, 1)
            # A ping may be lost to the connection that is just ending, so it is sent again.
            for request_id in range(2, 42):
                line.send(wire.request(request_id, "ping"))
                if line.waiting(0.25):
                    break
            answered, _ = line.receive()
            assert answered != 1, "the reply came through the cut"
        if cut != "half_request":
            with orchestrator.client() as client:
                wait_for(
                    lambda: client.count()["count"] == 1,
                    within_s=5.0,
                    what="the request to be carried out, though its reply is lost",
                )
        else:
            with orchestrator.client() as client:
                assert client.count()["count"] == 0, "half a request was carried out"


def test_a_limit_on_files_holds_and_is_lifted(orchestrator: OrchestratorProcess) -> None:
    with wire.Wire(orchestrator.endpoint) as line:
        with disk.files_limited(orchestrator.pid, 1):
            assert wire.code_of(line.ask("add_memory", {"content": "x"})) == "storage_full"
        assert wire.code_of(line.ask("add_memory", {"content": "x"})) == "success"


def test_a_trial_counts_and_fails_on_a_violation(tmp_path: Path) -> None:
    ledger = Ledger()
    with Trial("P1", ledger) as trial:
        trial.case(3)
    with pytest.raises(AssertionError, match="1 violations in 2 cases"), Trial("P1", ledger) as t:
        t.case(2)
        t.check(True, "this holds")
        t.check(False, "this does not")
    with pytest.raises(ZeroDivisionError), Trial("P2", ledger) as trial:
        trial.case()
        trial.check(1 // 0 == 1, "an error of the test's own counts as a violation")
    with pytest.raises(AssertionError, match="nothing was tried"), Trial("P3", ledger):
        pass
    path = tmp_path / "promises.jsonl"
    path.write_text('{"promise": "P10", "cases": 7, "violations": 0}\n')
    ledger.write(path)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"promise": "P1", "cases": 5, "violations": 1},
        {"promise": "P2", "cases": 1, "violations": 1},
        {"promise": "P3", "cases": 0, "violations": 0},
        {"promise": "P10", "cases": 7, "violations": 0},
    ]


def test_the_comparison_notices_every_kind_of_wrong_answer(tmp_path: Path) -> None:
    wrongs: tuple[Callable[[list[dict[str, Any]]], Any], ...] = (
        lambda results: results.pop(),
        lambda results: results[0].update(score=results[0]["score"] + 0.01),
        lambda results: results[0].update(id="a stranger"),
        lambda results: results.__setitem__(0, results[-1]),
    )
    store = Store(tmp_path / "data")
    world = World("sqlite", store.data, SETTINGS)
    try:
        store.fill(world, (100,))
        right = Comparison()
        asked = store.compare(world, right)
        assert right.wrong == []
        assert right.share_found == 1.0
        for wrong in wrongs:
            noticed = Comparison()
            for way in ("semantic_search", "recall"):

                def ask(operation: Any, way: str = way, wrong: Any = wrong) -> Any:
                    answer = world(operation)
                    if operation.spec.name == way and answer["results"]:
                        wrong(answer["results"])
                    return answer

                before = len(noticed.wrong)
                store.compare(ask, noticed, asked)
                assert len(noticed.wrong) > before, way
    finally:
        world.close()


def test_slower_rounds_are_told_from_a_busy_machine() -> None:
    randomness = random.Random(7)

    def rounds(slower: float) -> list[float]:
        return [slower * randomness.lognormvariate(0, 0.3) for _ in range(ROUNDS_MAX)]

    tried, harm = 200, 1.7 * SLOWER_MAX
    assert sum(alike(rounds(1.0), rounds(1.0)) for _ in range(tried)) >= 0.95 * tried
    assert sum(alike(rounds(1.0), rounds(harm)) for _ in range(tried)) <= 0.05 * tried
