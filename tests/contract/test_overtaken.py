"""What is at work when its key is revoked or its grants are changed, on every storage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.config.settings import EmbeddingSettings, Settings
from recollect.config.sharing import ConsolidationSettings, DocumentsSettings
from recollect.orchestrator.access.identities import Identity
from recollect.protocol import errors
from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation
from tests.contract.test_consolidation import HOME, filled, state
from tests.contract.test_identities import journal, known, made
from tests.harness.worlds import World

AGENT = "crawler"
MANY = 400
"""Enough for a run to need many transactions."""
FILES = 40
REVOKED = ops.RevokeAccess("alice")
CHANGED = ops.GrantAccess("alice", HOME, "admin")
ENDINGS = pytest.mark.parametrize(
    ("ending", "code"), [(REVOKED, "unauthenticated"), (CHANGED, "overloaded")]
)


@pytest.fixture
def world(storage_url: str, tmp_path: Path, folder: Path) -> Iterator[World]:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"),
        consolidation=ConsolidationSettings(shrink_max=1.0),
        documents=DocumentsSettings(roots=(str(folder),), file_bytes_max=10_000_000),
    )
    world = World(storage_url, tmp_path / "data", settings)
    yield world
    world.close()


def alice_of(world: World) -> Identity:
    return known(world, made(world, "alice", (HOME, "write")))


def overtake(
    world: World, operation: Operation[Any], who: Identity, ending: Operation[Any], begun: str
) -> Any:
    """The answer to an operation whose right ends once a statement finds that it has begun."""

    async def both() -> Any:
        working = asyncio.ensure_future(world.ask(operation, who))
        while not await world.storage.read(lambda session: session.execute(begun)):
            assert not working.done(), working.result()
        ended = await world.ask(ending)
        assert ended["status"] == "success"
        return await working

    return world.run(both())


RUNNING = "SELECT 1 FROM runs WHERE status = 'running'"


@ENDINGS
def test_a_consolidation_that_is_overtaken_is_taken_back(
    world: World, ending: Operation[Any], code: str
) -> None:
    filled(world)
    for number in range(MANY // 10):
        for place in ("Paris", "Berlin"):
            world(ops.AddMemory(f"Person{number} lives in {place}", namespace=HOME))
    before = state(world)
    alice = alice_of(world)
    answer = overtake(world, ops.Consolidate(HOME, "merge"), alice, ending, RUNNING)
    assert answer["error"]["code"] == code
    check_taken_back(world, before, code)


@ENDINGS
def test_a_forgetting_that_is_overtaken_is_taken_back(
    world: World, ending: Operation[Any], code: str
) -> None:
    many(world)
    before = state(world)
    alice = alice_of(world)
    answer = overtake(world, ops.ForgetSource(AGENT), alice, ending, RUNNING)
    assert answer["error"]["code"] == code
    check_taken_back(world, before, code)


def many(world: World) -> None:
    items = [{"content": f"Lie number {n}", "namespace": HOME} for n in range(MANY)]
    for start in range(0, MANY, 100):
        world(ops.BatchAddMemories(items[start : start + 100]), agent=AGENT)


def check_taken_back(world: World, before: list[tuple[Any, ...]], code: str) -> None:
    [run] = world(ops.ListRuns())["runs"]
    assert (run["run_status"], run["report"]["failed"]) == ("failed", code)
    assert state(world) == before


def test_an_undo_is_not_begun_by_who_may_no_longer_and_finished_once_it_is(world: World) -> None:
    many(world)
    before = state(world)
    alice = alice_of(world)
    run_id = world(ops.ForgetSource(AGENT))["run_id"]
    undoing = "SELECT 1 FROM runs WHERE status = 'undoing'"
    answer = overtake(world, ops.Undo(run_id), alice, REVOKED, undoing)
    assert answer["error"]["code"] == "unauthenticated"
    assert world(ops.GetRun(run_id))["run"]["run_status"] == "undone"
    assert state(world) == before
    again = world(ops.ForgetSource(AGENT))["run_id"]
    gone = state(world)
    with pytest.raises(errors.Unauthenticated):
        world(ops.Undo(again), alice)
    assert world(ops.GetRun(again))["run"]["run_status"] == "done"
    assert state(world) == gone


def test_nothing_is_begun_by_who_may_no_longer(world: World, folder: Path) -> None:
    """What waited somewhere on its way before it wrote for the first time."""
    many(world)
    (folder / "notes.md").write_text("Some notes")
    alice = alice_of(world)
    world(REVOKED)
    before = state(world)
    operations: list[Operation[Any]] = [
        ops.ForgetSource(AGENT),
        ops.IndexDocument(text="A text", namespace=HOME),
        ops.IndexDocument(str(folder / "notes.md"), namespace=HOME),
        ops.SyncDocuments(str(folder), namespace=HOME),
    ]
    for operation in operations:
        with pytest.raises(errors.Unauthenticated):
            world(operation, alice)
    assert state(world) == before
    assert world(ops.ListRuns())["runs"] == []
    assert world(ops.ListDocuments())["documents"] == []
    assert denials(world) == [
        (operation.spec.name, "revoked key") for operation in reversed(operations)
    ]


def denials(world: World) -> list[tuple[str, str]]:
    """What alice was denied and why, the latest first."""
    return [
        (operation, detail.split(",")[0])
        for identity, operation, _, outcome, detail in reversed(journal(world))
        if (identity, outcome) == ("alice", "denied")
    ]


@ENDINGS
def test_a_sync_that_is_overtaken_stops(
    world: World, folder: Path, ending: Operation[Any], code: str
) -> None:
    for number in range(FILES):
        (folder / f"{number}.md").write_text(f"Note number {number}\n\n" + "word " * 2_000)
    alice = alice_of(world)
    sync = ops.SyncDocuments(str(folder), namespace=HOME)
    answer = overtake(world, sync, alice, ending, "SELECT 1 FROM documents")
    synced = world(ops.ListDocuments(limit=100))["documents"]
    assert 0 < len(synced) < FILES
    assert {document["document_status"] for document in synced} == {"synced"}
    if code == "unauthenticated":
        assert answer["error"]["code"] == code
        assert denials(world) == [("sync_documents", "revoked key")]
    else:
        # What it had done it tells, and that there is more.
        assert (answer["complete"], answer["synced"]) == (False, len(synced))
    assert world(sync)["synced"] == FILES - len(synced)
