"""P25: consolidation destroys nothing, whatever happens to it, and undo restores all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.client import MemoryClient, Retry
from recollect.config.settings import EmbeddingSettings, Settings
from recollect.config.sharing import ConsolidationSettings
from recollect.protocol import errors
from recollect.protocol import operations as ops
from tests.contract.test_consolidation import INVALID
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.harness.chat_server import ChatServer
from tests.harness.embedding_server import Fault
from tests.harness.postgres import new_database
from tests.harness.processes import OrchestratorProcess
from tests.harness.worlds import World

HOME = "project:kept"
PAIRS = 30
"""Enough for an undoing of several steps."""
# Where a run dies, and how far it has come by then.
DEATHS = (
    "consolidation_written:1",
    f"consolidation_written:{PAIRS}",
    "consolidation_archived:1",
    f"consolidation_archived:{PAIRS // 2}",
    f"consolidation_archived:{PAIRS}",
)
LEFT_OUT = frozenset(
    [
        *("version", "seq", "updated_at", "updated_by", "strength", "stability_s"),
        *("access_count", "last_accessed_at", "fades_at"),
    ]
)


def fill(client: MemoryClient) -> None:
    items: list[dict[str, Any]] = []
    for number in range(PAIRS):
        tags = [f"t{number}"]
        items.append({"content": f"Machine{number} is hosted in Oslo", "tags": tags})
        items.append({"content": f"Machine{number} is hosted in Rome", "metadata": {"n": number}})
        items.append({"content": f"A note of its own about gadget{number}"})
    client.batch_add_memories(items, namespace=HOME)


def kept(client: MemoryClient) -> dict[str, dict[str, Any]]:
    """All memories that are not deleted, by id, without what every change moves."""
    found: dict[str, dict[str, Any]] = {}
    cursor = None
    while True:
        page = client.list_memories(namespace=HOME, include_archived=True, cursor=cursor, limit=200)
        for memory in page["memories"]:
            found[memory["id"]] = {k: v for k, v in memory.items() if k not in LEFT_OUT}
        if (cursor := page["cursor"]) is None:
            return found


def compare(trial: Trial, case: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    for memory_id in before.keys() | after.keys():
        if before.get(memory_id) != after.get(memory_id):
            trial.violated(
                f"{case}: {memory_id} was {before.get(memory_id)}, is {after.get(memory_id)}"
            )


def found_again(trial: Trial, case: str, client: MemoryClient) -> None:
    """What is back is found by its words and by its meaning, or will be once it is embedded."""
    hits = client.search_memory("Machine7 hosted in Oslo", None, 5, namespace=HOME)["results"]
    trial.check(
        any(hit["content"] == "Machine7 is hosted in Oslo" for hit in hits),
        f"{case}: a memory that is back is not found",
    )


@pytest.mark.timeout(counts.timeout_s(300))
@pytest.mark.parametrize("strategy", ["merge", "keep_latest"])
def test_a_run_that_is_killed_is_taken_back_as_a_whole(tmp_path: Path, strategy: Any) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    with Trial("P25") as trial:
        try:
            with process.start(), process.client() as client:
                fill(client)
                before = kept(client)
                assert client.find_conflicts(HOME)["count"] == PAIRS
            for death in DEATHS:
                process.start(RECOLLECT_FAILPOINTS=death)
                with (
                    process.client(retry=Retry(attempts_max=1)) as client,
                    pytest.raises(errors.TransportError),
                ):
                    client.consolidate(HOME, strategy, timeout=60.0)
                assert process.wait_ended() == -9, f"it did not die at {death}: {process.log()}"
                trial.case()
                case = f"{strategy} killed at {death}"
                # It may die again while it takes back; the next start goes on.
                process.start(wait=False, RECOLLECT_FAILPOINTS="undoing:1")
                ended = _ended_or_ready(process)
                if ended:
                    process.start()
                with process.client(timeout=30.0) as client:
                    compare(trial, case, before, kept(client))
                    found_again(trial, case, client)
                    for run in client.list_runs(HOME)["runs"]:
                        status = run["run_status"]
                        trial.check(status == "failed", f"{case}: the run is {status}")
                assert process.stop() == 0
            with process.start(), process.client(timeout=60.0) as client:
                last = client.consolidate(HOME, strategy)
                trial.check(last["archived"] >= PAIRS, f"{strategy}: nothing was settled at last")
                assert last["run_id"] is not None
                settled = kept(client)
                trial.case()
                undone = client.undo(last["run_id"])
                trial.check(undone["skipped"] == [], f"{strategy}: {undone['skipped']} were left")
                compare(trial, f"{strategy} undone", before, kept(client))
                assert settled != before
        finally:
            process.close()


def _ended_or_ready(process: OrchestratorProcess) -> bool:
    """Whether it has died at its failpoint; otherwise it answers, having had nothing to undo."""
    try:
        process.wait_ready()
    except AssertionError:
        assert process.wait_ended() == -9, process.log()
        return True
    return False


@pytest.mark.timeout(counts.timeout_s(120))
def test_an_undoing_that_is_killed_is_gone_on_with(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    with Trial("P25") as trial:
        try:
            with process.start(), process.client(timeout=60.0) as client:
                fill(client)
                before = kept(client)
                run_id = client.consolidate(HOME, "merge")["run_id"]
                assert run_id is not None
            process.start(RECOLLECT_FAILPOINTS="undoing:1")
            with (
                process.client(retry=Retry(attempts_max=1)) as client,
                pytest.raises(errors.TransportError),
            ):
                client.undo(run_id, timeout=60.0)
            assert process.wait_ended() == -9
            trial.case()
            with process.start(), process.client(timeout=60.0) as client:
                compare(trial, "killed while undoing", before, kept(client))
                status = client.get_run(run_id)["run"]["run_status"]
                trial.check(status == "undone", f"the run is {status}")
                undone = client.undo(run_id)
                trial.check(undone["restored"] == 2 * PAIRS, f"told wrongly: {undone}")
        finally:
            process.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    return "sqlite" if request.param == "sqlite" else new_database()


def whole(world: World) -> list[tuple[Any, ...]]:
    """Every row but for what every change moves."""
    listed = world(ops.ListMemories(limit=500, include_deleted=True, include_archived=True))
    return sorted(
        tuple(sorted((k, repr(v)) for k, v in memory.items() if k not in LEFT_OUT))
        for memory in listed["memories"]
        if memory["deleted_at"] is None
    )


def test_invalid_output_of_a_model_destroys_nothing(url: str, tmp_path: Path) -> None:
    faults = [
        Fault(status=400),
        Fault(status=401),
        Fault(status=404, body=b"<html>gone</html>"),
        Fault(change=lambda reply: reply.update(choices=[])),
        Fault(change=lambda reply: reply["choices"][0]["message"].update(content=None)),
        Fault(change=lambda reply: reply["choices"][0]["message"].update(refusal="never")),
        Fault(cut=True),
    ]
    with ChatServer() as chat, Trial("P25") as trial:
        settings = Settings(
            embedding=EmbeddingSettings(provider="hashed"),
            consolidation=ConsolidationSettings(
                llm_url=chat.url, llm_key_variable="NO_SUCH_KEY", llm_timeout_s=5
            ),
        )
        world = World(url, tmp_path / "data", settings)
        try:
            for text in ("Anna lives in Rome", "Anna lives in Oslo", "The lamp was red"):
                world(ops.AddMemory(text, namespace=HOME))
            before = whole(world)
            for answer in INVALID:
                trial.case()
                chat.answer(answer)
                run = world(ops.Consolidate(HOME, "llm_based"))
                trial.check(run["skipped"] == 1, f"{answer!r} was used: {run}")
                trial.check(whole(world) == before, f"{answer!r} changed something")
            for fault in faults:
                trial.case()
                chat.fail(fault, fault)
                try:
                    run = world(ops.Consolidate(HOME, "llm_based"))
                    trial.check(run["skipped"] == 1, f"{fault} was taken for an answer: {run}")
                except errors.ChatUnavailable:
                    pass
                trial.check(whole(world) == before, f"{fault} changed something")
        finally:
            world.close()


@pytest.mark.parametrize("strategy", ["keep_latest", "keep_most_trusted", "merge"])
def test_a_run_past_its_limit_does_nothing(url: str, tmp_path: Path, strategy: Any) -> None:
    world = World(url, tmp_path / "data")
    try:
        with Trial("P25") as trial:
            for number in range(10):
                text = "Anna lives in Oslo" if number < 7 else f"A note about gadget{number}"
                world(ops.AddMemory(text, namespace=HOME))
            before = whole(world)
            trial.case()
            try:
                trial.violated(f"it was done: {world(ops.Consolidate(HOME, strategy))}")
            except errors.LimitExceeded as refused:
                trial.check(
                    refused.details["limit"] == "consolidation.shrink_max", f"{refused.details}"
                )
            trial.check(whole(world) == before, "it changed something")
            for number in range(2):
                world(ops.AddMemory(f"Another note about gizmo{number}", namespace=HOME))
            before = whole(world)
            run = world(ops.Consolidate(HOME, strategy))
            trial.case()
            world(ops.Undo(run["run_id"]))
            trial.check(whole(world) == before, "undo did not restore all")
    finally:
        world.close()
