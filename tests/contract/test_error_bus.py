"""The error bus: counted by kind, kept over restarts, bounded, and shared where storage is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.config.settings import EmbeddingSettings, ErrorsSettings, Settings
from recollect.protocol import operations as ops
from tests.faults.walls import identity
from tests.harness.worlds import World

CAROL = identity("carol", ("user:carol", "read"))


def report(world: World, message: str, count: int = 1, **options: Any) -> None:
    errors = [ops.ErrorReport("timeout", message, count, {"operation": "put"})]
    world(ops.ReportErrors("client:planner", errors), **options)


def seen(world: World, **options: Any) -> list[tuple[str, str, int]]:
    errors = world(ops.RecentErrors(**options))["errors"]
    return [(error["identity"], error["message"], error["count"]) for error in errors]


def kept(world: World) -> int:
    async def count() -> int:
        await world.orchestrator.parts.keeping.flush()
        [(rows,)] = await world.storage.read(
            lambda session: session.execute("SELECT count(*) FROM errors_seen")
        )
        return int(rows)

    return world.run(count())


def test_errors_are_known_again_after_a_restart_with_who_reported_them(world: World) -> None:
    report(world, "slow", 2)
    report(world, "slow")
    report(world, "slow", identity=CAROL)
    before = world(ops.RecentErrors())
    world.restart()
    assert world(ops.RecentErrors()) == before
    # What source one names is up to oneself, who one is not.
    assert seen(world) == [("carol", "slow", 1), ("local", "slow", 3)]
    report(world, "slow")
    assert seen(world)[0] == ("local", "slow", 4)
    [first, *_] = world(ops.RecentErrors(source="client:planner"))["errors"]
    assert first["first_at"] < first["last_at"] and first["context"] == {"operation": "put"}


def test_no_more_are_kept_than_is_set_also_on_disk(storage_url: str, tmp_path: Path) -> None:
    settings = Settings(
        errors=ErrorsSettings(kept_max=5), embedding=EmbeddingSettings(provider="hashed")
    )
    world = World(storage_url, tmp_path / "data", settings)
    try:
        for number in range(8):
            report(world, f"number {number}")
            if number % 3 == 0:
                assert kept(world) <= 5
        assert kept(world) == 5
        world.restart()
        assert [message for _, message, _ in seen(world)] == [
            f"number {number}" for number in (7, 6, 5, 4, 3)
        ]
    finally:
        world.close()


def test_texts_of_any_kind_are_kept(world: World) -> None:
    long = "".join(chr(0x4E00 + number) for number in range(2_000))
    for message in ("", "a\x00b", long, "Robert'); DROP TABLE"):
        report(world, message, count=(1 << 63) - 1)
        report(world, message, count=(1 << 63) - 1)
    before = world(ops.RecentErrors())
    assert kept(world) == 4
    world.restart()
    assert world(ops.RecentErrors()) == before
    assert {count for _, _, count in seen(world)} == {(1 << 63) - 1}


def test_orchestrators_on_one_storage_count_together(storage_url: str, tmp_path: Path) -> None:
    if storage_url == "sqlite":
        pytest.skip("SQLite has one orchestrator")
    one, other = World(storage_url, tmp_path / "one"), World(storage_url, tmp_path / "two")
    try:
        for world in (one, other, one):
            report(world, "slow", 2)
        assert (kept(one), kept(other)) == (1, 1)
        report(other, "slow")
        assert seen(other) == [("local", "slow", 7)]
        kept(other)
        assert seen(one) == seen(other) == [("local", "slow", 7)]
    finally:
        other.close()
        one.close()
