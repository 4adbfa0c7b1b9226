"""P8: a damaged database is never served silently.

Each case damages a store that was stopped, and starts an orchestrator on it. Either that refuses,
and says what to do; or it serves, and then every answer must be what was acknowledged.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from recollect import RecollectError
from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.sqlite import damage
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.polling import wait_for
from tests.faults.tools import database, file_damages
from tests.faults.tools.acknowledgements import AcknowledgementLog
from tests.faults.tools.writers import Writers
from tests.harness.forks import FORKS
from tests.harness.processes import OrchestratorProcess

WRITTEN = 400
NOTICED_WITHIN_S = 30.0
TOLD = "WATCHED_TOLD"
WHAT_TO_DO = "recollect restore BACKUP --data NEW_FOLDER"


class Kept(NamedTuple):
    """A store at rest, what was acknowledged of it, and a backup of it."""

    data: Path
    log: AcknowledgementLog
    backup: Path


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    yield keep(tmp_path_factory.mktemp("whole"))


def keep(folder: Path) -> Kept:
    log = AcknowledgementLog()
    process = OrchestratorProcess(folder / "data", env={"RECOLLECT_INDEX_HEAD_MAX": "64"})
    with process:
        with Writers(process.endpoint, log, seed=counts.SEED) as writers:
            log.wait_for_more(WRITTEN)
        assert not writers.failures
        with process.client() as client:
            client.backup(str(folder / "backup"))
        assert process.stop() == 0
    return Kept(process.data, log, folder / "backup")


def served(process: OrchestratorProcess, log: AcknowledgementLog) -> list[str]:
    """What is answered wrongly; that the database is damaged is a right answer."""
    try:
        return log.check(process.endpoint)
    except RecollectError as error:
        told = error.code == "storage_failed" and WHAT_TO_DO in error.message
        return [] if told else [f"{error.code}: {error.message}"]


def problem_of(process: OrchestratorProcess, log: AcknowledgementLog) -> str | None:
    """What is wrong with how a damaged store is met."""
    process.start(wait=False)
    wait_for(
        lambda: not process.running() or (process.data / "orchestrator.json").exists(),
        within_s=NOTICED_WITHIN_S,
        what="an orchestrator that serves or ends",
    )
    if process.running():
        wrong = served(process, log)
        process.close()
        return f"served with {len(wrong)} wrong answers: {wrong[0]}" if wrong else None
    said = process.log()
    if "(database_damaged)" in said and WHAT_TO_DO in said and "Traceback" not in said:
        return None
    return f"it ended without saying what to do: {said[-500:]}"


@pytest.mark.timeout(counts.timeout_s(120))
def test_a_damaged_database_is_refused_or_answers_rightly(kept: Kept, tmp_path: Path) -> None:
    chance = random.Random(counts.SEED)
    with Trial("P8") as trial:
        for number in range(counts.DAMAGED_DATABASES):
            data = tmp_path / f"damaged-{number}"
            shutil.copytree(kept.data, data)
            do = file_damages.ALL[number % len(file_damages.ALL)]
            said = do(data / DATABASE_NAME, chance)
            process = OrchestratorProcess(data, env={"RECOLLECT_INDEX_HEAD_MAX": "64"})
            trial.case()
            if (problem := problem_of(process, kept.log)) is not None:
                trial.violated(f"{said}: {problem}")
            shutil.rmtree(data)


def look_when_told() -> None:
    """To be called in an orchestrator: it looks its database over only once a file is there."""
    look = damage.problems

    def looking(connection: apsw.Connection) -> list[str]:
        wait_for(Path(os.environ[TOLD]).exists, within_s=NOTICED_WITHIN_S, what="to be told")
        return look(connection)

    damage.problems = looking


def test_a_large_one_is_looked_over_while_it_is_served(kept: Kept, tmp_path: Path) -> None:
    """Pages of an index in the wrong order, which SQLite takes as they come."""
    shutil.copytree(kept.data, tmp_path / "data")
    path = tmp_path / "data" / DATABASE_NAME
    one, other = leaves_of(path, "memories_by_id")
    first, second = file_damages.read(path, one - 1), file_damages.read(path, other - 1)
    file_damages.write(path, one - 1, second)
    file_damages.write(path, other - 1, first)
    told = tmp_path / "told"
    env = {"RECOLLECT_STORAGE_CHECK_AT_ONCE_MB": "0", TOLD: str(told)}
    before = [f"{__name__}:look_when_told"]
    with (
        Trial("P8") as trial,
        OrchestratorProcess(tmp_path / "data", env=env, before=before) as process,
    ):
        trial.case()
        told.touch()
        with process.client() as client:
            entry = kept.log.entries()[0]

            def refused() -> bool:
                try:
                    client.get_memory(entry.memory_id, include_deleted=True)
                except RecollectError as error:
                    return error.code == "storage_failed" and WHAT_TO_DO in error.message
                return False

            wait_for(refused, within_s=NOTICED_WITHIN_S, what="the damage to be noticed")
            for ask in (lambda: client.add_memory("more"), lambda: client.search_memory("more")):
                try:
                    trial.violated(f"it went on: {ask()}")
                except RecollectError as error:
                    trial.check(WHAT_TO_DO in error.message, f"it only says {error}")
            trial.check(client.ping()["status"] == "success", "it does not answer a ping")
        assert process.stop() == 0


def leaves_of(path: Path, name: str) -> tuple[int, int]:
    """Two leaves of an index that has some."""
    rows = database.rows(
        path, "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (name,)
    )
    assert len(rows) > 1, f"{name} has too few pages"
    return int(rows[0][0]), int(rows[-1][0])


def test_what_is_said_to_do_brings_everything_back(kept: Kept, tmp_path: Path) -> None:
    shutil.copytree(kept.data, tmp_path / "damaged")
    file_damages.scribble_header(tmp_path / "damaged" / DATABASE_NAME, random.Random(1))
    said = tmp_path / "said"
    restored = FORKS.start(
        ["restore", str(kept.backup), "--data", str(tmp_path / "restored")],
        folder=tmp_path,
        env={},
        out=said,
        err=said,
    )
    assert restored.wait(NOTICED_WITHIN_S) == 0, said.read_text()
    with Trial("P8") as trial, OrchestratorProcess(tmp_path / "restored") as process:
        trial.case()
        for complaint in kept.log.check(process.endpoint):
            trial.violated(complaint)
