"""P6: a damaged or missing index file never gives a wrong answer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.protocol.operations import Backup
from tests.faults import counts
from tests.faults.comparing import Comparison
from tests.faults.ledger import Trial
from tests.faults.segmented import ENVIRONMENT, MODEL_FOLDER, SETTINGS, Store, settle
from tests.faults.tools import index_damages
from tests.harness.processes import OrchestratorProcess
from tests.harness.worlds import World

# Sizes that stay apart: a segment is merged with smaller ones unless it is thrice as large as all
# of them together.
SMALL = (420, 100, 25, 9)
LARGE = (5_000, 100, 25)
SHARE_FOUND_MIN = 0.95
# In this share of the cases, the store has a segment that is searched by an index of its own.
LARGE_SHARE = 0.2
PROCESSES = counts.pick(8, 80)
RUNNING = len(index_damages.UNDER_A_RUNNING_ONE)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Data folders with memories in several sealed segments, to be copied."""
    folder = tmp_path_factory.mktemp("prepared")
    for name, sizes in (("small", SMALL), ("large", LARGE)):
        world = World("sqlite", folder / name, SETTINGS)
        Store(folder / name).fill(world, sizes)
        world.close()
    assert len(index_damages.segments(folder / "small" / "index" / MODEL_FOLDER)) >= 3
    assert any(
        p.name == "index.faiss" for p in index_damages.files(folder / "large/index" / MODEL_FOLDER)
    )
    return {"small": folder / "small", "large": folder / "large"}


@pytest.mark.timeout(counts.timeout_s(240))
@pytest.mark.parametrize(("name", "share"), [("small", 1 - LARGE_SHARE), ("large", LARGE_SHARE)])
def test_a_damaged_index_costs_no_answer_and_is_rebuilt(
    name: str, share: float, prepared: dict[str, Path], tmp_path: Path
) -> None:
    cases = round((counts.DAMAGED_INDEXES - PROCESSES - RUNNING) * share)
    found = Comparison(exact=name == "small")
    with Trial("P6") as trial:
        for number in range(cases):
            data = Path(shutil.copytree(prepared[name], tmp_path / "data"))
            said = damage_and_compare(Store(data, number), number, found)
            shutil.rmtree(data)
            trial.case()
            for complaint in found.wrong:
                trial.violated(f"case {number}, {said}: {complaint}")
            found.wrong.clear()
        trial.check(
            found.share_found >= (1.0 if found.exact else SHARE_FOUND_MIN),
            f"only {found.share_found:.3f} of the nearest were found",
        )


def damage_and_compare(store: Store, number: int, found: Comparison) -> str:
    """Change memories, stop, do damage, start; the answers are as before. Says what was done."""
    world = World("sqlite", store.data, SETTINGS)
    try:
        store.compare(world, found)
        store.change(world)
        asked = store.compare(world, found)
        world.run(world.orchestrator.stop())
        said = store.damage(number)
        world.open()
        store.compare(world, found, asked)
        store.check_saved(world, found)
        store.compare(world, found, asked)
    finally:
        world.close()
    return said


@pytest.fixture
def process(tmp_path: Path, prepared: dict[str, Path]) -> Iterator[OrchestratorProcess]:
    """A real orchestrator that works on the prepared store."""
    data = Path(shutil.copytree(prepared["small"], tmp_path / "data"))
    with OrchestratorProcess(data, env=ENVIRONMENT) as started:
        yield started


@pytest.mark.timeout(counts.timeout_s(240))
def test_a_process_starts_on_a_damaged_index_and_answers_rightly(
    process: OrchestratorProcess,
) -> None:
    store = Store(process.data)
    found = Comparison()
    with Trial("P6") as trial:
        for number in range(PROCESSES):
            with process.client(timeout=30.0) as client:
                store.compare(client.call, found)
                store.change(client.call)
                asked = store.compare(client.call, found)
            if number % 2:
                assert process.stop() == 0
            else:
                process.kill()
            said = store.damage(number)
            process.start()
            with process.client(timeout=30.0) as client:
                store.compare(client.call, found, asked)
                store.check_saved(client.call, found)
            trial.case()
            for complaint in found.wrong:
                trial.violated(f"process {number}, {said}: {complaint}")
            found.wrong.clear()
        assert process.stop() == 0


@pytest.mark.timeout(counts.timeout_s(240))
def test_files_may_go_or_change_places_under_a_running_orchestrator(
    process: OrchestratorProcess,
) -> None:
    """It goes on with what it has mapped, saves what is new, and mends the rest at its start."""
    store = Store(process.data)
    found = Comparison()
    with Trial("P6") as trial:
        for number, damage in enumerate(index_damages.UNDER_A_RUNNING_ONE):
            with process.client(timeout=30.0) as client:
                asked = store.compare(client.call, found)
                said = damage(store.index, store.chance)
                store.compare(client.call, found, asked)
                store.change(client.call)
                settle(client.call)
                asked = store.compare(client.call, found)
            trial.check(process.running(), f"it ended after {said}:\n{process.log()}")
            process.kill()
            process.start()
            with process.client(timeout=30.0) as client:
                store.compare(client.call, found, asked)
                store.check_saved(client.call, found)
            trial.case()
            for complaint in found.wrong:
                trial.violated(f"running {number}, {said}: {complaint}")
            found.wrong.clear()


def test_a_file_in_the_place_of_the_folder_costs_the_saving_and_no_answer(
    prepared: dict[str, Path], tmp_path: Path
) -> None:
    data = Path(shutil.copytree(prepared["small"], tmp_path / "data"))
    store = Store(data)
    found = Comparison()
    shutil.rmtree(data / "index")
    (data / "index").write_text("not a folder")
    world = World("sqlite", data, SETTINGS)
    with Trial("P6") as trial:
        try:
            store.compare(world, found)
            store.change(world)
            settle(world)
            asked = store.compare(world, found)
            world.run(world.orchestrator.stop())
            (data / "index").unlink()
            world.open()
            store.compare(world, found, asked)
            store.check_saved(world, found)
            trial.case()
            for complaint in found.wrong:
                trial.violated(complaint)
        finally:
            world.close()


def test_the_index_of_another_store_is_not_believed(
    prepared: dict[str, Path], tmp_path: Path
) -> None:
    """Its memories have the same numbers and the same changes made them, with other words."""
    store = Store(tmp_path / "data")
    world = World("sqlite", store.data, SETTINGS)
    found = Comparison()
    try:
        Store(store.data, 1).fill(world, SMALL)
        world.run(world.orchestrator.stop())
        shutil.rmtree(store.data / "index")
        shutil.copytree(prepared["small"] / "index", store.data / "index")
        world.open()
        store.compare(world, found)
    finally:
        world.close()
    assert not found.wrong, found.wrong[:3]


def test_an_index_of_changes_that_a_restored_backup_does_not_know_is_not_believed(
    tmp_path: Path,
) -> None:
    """A backup is put in the database's place, and its changes go on with the same numbers."""
    store = Store(tmp_path / "data")
    world = World("sqlite", store.data, SETTINGS)
    found = Comparison()
    try:
        store.fill(world, (100,))
        world(Backup(str(tmp_path / "backup")))
        store.fill(world, (40,))
        world.run(world.orchestrator.stop())
        for leftover in store.data.glob(f"{DATABASE_NAME}*"):
            leftover.unlink()
        shutil.copyfile(tmp_path / "backup" / DATABASE_NAME, store.data / DATABASE_NAME)
        world.open()
        store.fill(world, (20,))
        world.restart()
        for _ in range(5):
            store.compare(world, found)
    finally:
        world.close()
    assert not found.wrong, found.wrong[:3]
