"""The store as a whole: growth, use and fading, and what of it is bounded."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.orchestrator.services import analytics
from recollect.protocol import operations as ops
from recollect.protocol.own_namespaces import HEALTH_NAMESPACE
from tests.harness.worlds import World

DAY_S = 86_400


def add(world: World, content: str, **fields: Any) -> str:
    memory_id: str = world(ops.AddMemory(content, **fields), agent="planner")["memory_id"]
    return memory_id


def test_what_was_made_used_and_will_fade_is_told(world: World) -> None:
    old = add(world, "the mill stands still", memory_tier="long", namespace="project:mill")
    world.clock.advance(2 * DAY_S)
    read = add(world, "the mill grinds again", memory_type="episodic", namespace="project:mill:run")
    add(world, "the harbour is full", namespace="project:mills")
    add(world, "a canary", namespace=f"{HEALTH_NAMESPACE}:one")
    for _ in range(3):
        world(ops.GetMemory(read))
    world.run(world.orchestrator.parts.accesses.flush())

    told = world(ops.Analytics(days=3))
    assert [day["created"] for day in told["growth"]] == [1, 0, 2]
    assert told["growth"][0]["long"] == 1
    assert told["by_type"] == {"general": 2, "episodic": 1}
    assert told["by_agent"] == {"planner": 3}
    assert (told["examined"], told["sampled"]) == (4, False)
    assert told["most_used"][0]["memory_id"] == read
    assert told["least_used"][0]["memory_id"] == old
    within = world(ops.Analytics("project:mill", days=3))
    assert [day["created"] for day in within["growth"]] == [1, 0, 1]


def test_what_fades_within_a_week_is_told_before_it_has(world: World) -> None:
    brief = add(world, "a passing remark", memory_tier="short", importance=0.0)
    add(world, "a lasting truth", memory_tier="long")
    [fades_at] = [world(ops.History(brief))["versions"][0]["memory"]["fades_at"]]
    calm = world(ops.Analytics())["fading"]
    assert (calm["count"], calm["faded"]) == (0, 0)

    for _ in range(400):
        world.clock.advance(DAY_S)
        soon = world(ops.Analytics())["fading"]
        if soon["count"]:
            break
    assert [memory["memory_id"] for memory in soon["memories"]] == [brief]
    assert soon["memories"][0]["fades_at"] == fades_at
    assert sum(day["count"] for day in soon["by_day"]) == 1

    world.clock.advance(8 * DAY_S)
    past = world(ops.Analytics())["fading"]
    assert (past["count"], past["faded"], past["complete"]) == (0, 1, True)


def test_a_large_store_is_judged_by_its_newest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analytics, "SAMPLE_MAX", 2)
    for number in range(4):
        add(world, f"note {number}")
    told = world(ops.Analytics())
    assert (told["examined"], told["sampled"]) == (2, True)
    assert told["growth"][-1]["created"] == 2


def test_a_purged_memory_is_gone_at_once(world: World) -> None:
    secret = add(world, "the combination of the safe")
    assert world(ops.Analytics())["least_used"][0]["memory_id"] == secret
    world(ops.Purge(secret))
    told = world(ops.Analytics())
    assert "combination" not in repr(told)
