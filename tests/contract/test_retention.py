"""What has had its time goes: softly when it expires, for good when somebody said when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.config.settings import EmbeddingSettings, LimitsSettings, Settings
from recollect.orchestrator.services import deletion
from recollect.protocol import operations as ops
from recollect.protocol.errors import LimitExceeded, NotFound
from tests.contract.test_tiers import HOME, add
from tests.harness.worlds import World

DAY_S = 86_400
HOUR_S = 3_600


def at(world: World, seconds: float) -> float:
    return world.clock.now_us() / 1e6 + seconds


def test_what_expired_is_deleted_and_can_be_restored(world: World) -> None:
    world.clock.advance(2 * DAY_S)
    parent = add(world, "Valid for an hour", key="pass", expires_at=at(world, HOUR_S))
    child = add(world, "A part of it", parent_id=parent)
    later = add(world, "Valid for a week", expires_at=at(world, 7 * DAY_S))
    assert world(ops.ApplyRetention())["expired"] == 0
    world.clock.advance(2 * HOUR_S)
    assert world(ops.ApplyRetention(dry_run=True))["expired"] == 1
    done = world(ops.ApplyRetention(deleted_days=1, archived_days=1))
    assert (done["expired"], done["purged_deleted"], done["complete"]) == (1, 0, True)
    gone = world(ops.GetMemory(parent, include_deleted=True))["memory"]
    assert gone["deleted_at"] is not None
    assert world(ops.History(parent))["versions"][0]["operation"] == "expire"
    assert world(ops.GetMemory(child))["memory"]["parent_id"] is None
    assert world(ops.GetMemory(later))["memory"]["deleted_at"] is None
    assert world(ops.ApplyRetention())["expired"] == 0
    world(ops.Restore(parent))
    assert world(ops.GetMemory(parent))["memory"]["expires_at"] is None


@pytest.fixture
def narrow(storage_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Where a cascade takes three memories at most, and a look reads two."""
    monkeypatch.setattr(deletion, "CHILDREN_AT_ONCE", 2)
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), limits=LimitsSettings(tree_nodes_max=3)
    )
    world = World(storage_url, tmp_path / "narrow", settings)
    yield world
    world.close()


def test_what_stays_below_what_goes_may_be_more_than_a_cascade_takes(narrow: World) -> None:
    def family(**given: Any) -> tuple[str, list[str]]:
        parent = add(narrow, "A parent", **given)
        return parent, [add(narrow, f"Child {n}", parent_id=parent) for n in range(5)]

    def parents_of(children: list[str]) -> set[str | None]:
        return {narrow(ops.GetMemory(child))["memory"]["parent_id"] for child in children}

    narrow.clock.advance(2 * DAY_S)
    _, below_expired = family(expires_at=at(narrow, HOUR_S))
    narrow.clock.advance(2 * HOUR_S)
    assert narrow(ops.ApplyRetention())["expired"] == 1
    assert parents_of(below_expired) == {None}

    _, below_archived = family(memory_tier="long")
    narrow.clock.advance(15 * 365 * DAY_S)
    for child in below_archived:
        narrow(ops.ReinforceMemory(child))
    assert narrow(ops.FadeMemories())["archived"] == 1
    narrow.clock.advance(2 * DAY_S)
    done = narrow(ops.ApplyRetention(archived_days=1))
    assert (done["purged_archived"], done["complete"]) == (1, True)
    assert parents_of(below_archived) == {None}

    deleted, below_deleted = family()
    gone = narrow(ops.DeleteMemory(deleted, cascade=False))
    assert gone["detached_ids"] == below_deleted
    purged, below_purged = family()
    assert narrow(ops.Purge(purged))["purged"] == 1
    assert parents_of([*below_deleted, *below_purged]) == {None}
    # A cascade is bounded as before.
    tree, _ = family()
    with pytest.raises(LimitExceeded):
        narrow(ops.DeleteMemory(tree))


def test_what_was_deleted_or_archived_long_ago_is_purged_if_that_is_asked_for(
    world: World,
) -> None:
    world.clock.advance(2 * DAY_S)
    deleted = [add(world, f"Deleted {n}") for n in range(3)]
    archived = add(world, "Faded long ago", memory_tier="long")
    kept = add(world, "Kept", parent_id=deleted[0], memory_tier="long", importance=1.0)
    for one in deleted:
        world(ops.DeleteMemory(one, cascade=False))
    world.clock.advance(15 * 365 * DAY_S)
    world(ops.FadeMemories())
    world.clock.advance(10 * DAY_S)
    assert world(ops.ApplyRetention())["purged_deleted"] == 0
    dry = world(ops.ApplyRetention(deleted_days=30, archived_days=5, dry_run=True))
    assert (dry["purged_deleted"], dry["purged_archived"]) == (3, 1)
    first = world(ops.ApplyRetention(deleted_days=30, archived_days=5, limit=2))
    assert (first["purged_deleted"], first["purged_archived"], first["complete"]) == (2, 0, False)
    second = world(ops.ApplyRetention(deleted_days=30, archived_days=5))
    assert (second["purged_deleted"], second["purged_archived"]) == (1, 1)
    assert second["complete"] and second["wiped"]
    for one in (*deleted, archived):
        with pytest.raises(NotFound):
            world(ops.GetMemory(one, include_deleted=True))
    assert world(ops.GetMemory(kept))["memory"]["namespace"] == HOME


def test_nothing_goes_for_good_by_a_clock_that_was_wrong_at_the_start(world: World) -> None:
    memory_id = add(world, "Deleted yesterday", expires_at=at(world, 3 * HOUR_S))
    other = add(world, "Deleted today")
    world(ops.DeleteMemory(other))
    # As if it were a day later: the time that passed is not its own measure.
    world.run(world.orchestrator.stop())
    world.clock.advance(DAY_S)
    world.open()
    done = world(ops.ApplyRetention(deleted_days=0.5))
    assert (done["expired"], done["purged_deleted"]) == (0, 0)
    assert world(ops.TrimAnswers())["answers"] == 0
    # The clock is right again.
    world.run(world.orchestrator.stop())
    world.clock.advance(-DAY_S)
    world.open()
    assert world(ops.GetMemory(memory_id))["memory"]["content"] == "Deleted yesterday"


def test_old_answers_and_receipts_are_forgotten(world: World) -> None:
    first = world(ops.AddMemory("Written once", namespace=HOME), key="one")
    receipt = world(ops.AssembleContext("Written", namespace=HOME))["receipt_id"]
    assert world(ops.AddMemory("Written once", namespace=HOME), key="one") == first
    world.clock.advance(25 * HOUR_S)
    dry = world(ops.TrimAnswers(dry_run=True))
    assert (dry["answers"], dry["receipts"]) == (1, 0)
    assert world(ops.TrimAnswers())["answers"] == 1
    again = world(ops.AddMemory("Written once", namespace=HOME), key="one")
    assert again["memory_id"] != first["memory_id"]
    world.clock.advance(91 * DAY_S)
    done = world(ops.TrimAnswers(limit=1))
    assert (done["answers"], done["receipts"], done["complete"]) == (1, 0, False)
    done = world(ops.TrimAnswers())
    assert (done["receipts"], done["complete"]) == (1, True)
    with pytest.raises(NotFound):
        world(ops.ReplayContext(receipt))
