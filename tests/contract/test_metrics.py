"""Figures to watch the service by, on every storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.config import HealthSettings
from recollect.config.settings import EmbeddingSettings, Settings
from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.protocol import operations as ops
from recollect.protocol.errors import Forbidden, NotFound
from tests.faults.polling import wait_for
from tests.harness.worlds import World

ALICE = Identity("alice", Grants((Grant("user:alice", "admin"),)))
COUNTING = Settings(
    embedding=EmbeddingSettings(provider="hashed"), health=HealthSettings(counts_interval_s=0.0)
)


@pytest.fixture
def counting(storage_url: str, tmp_path: Path) -> Iterator[World]:
    """One that counts whenever it is asked and something has changed."""
    world = World(storage_url, tmp_path / "data", COUNTING)
    yield world
    world.close()


def until_counted(world: World, total: int) -> Any:
    for _ in range(2000):
        found = world(ops.Metrics())
        if found["memories"]["total"] == total:
            return found
    raise AssertionError(f"still counted: {found['memories']}")


def test_every_answer_is_timed_and_every_failure_counted(world: World) -> None:
    memory_id = world(ops.AddMemory("The tide is low at noon"))["memory_id"]
    for _ in range(3):
        world(ops.GetMemory(memory_id))
    with pytest.raises(NotFound):
        world(ops.GetMemory("nobody"))
    requests = world(ops.Metrics())["requests"]
    read = requests["by_operation"]["get_memory"]
    assert (read["count"], read["failed"]) == (4, 1)
    assert sum(read["buckets"]) == 4
    assert len(read["buckets"]) == len(requests["bucket_bounds_s"]) + 1
    assert requests["by_operation"]["add_memory"]["sum_s"] > 0
    assert requests["failed_by_code"] == {"not_found": 1}
    assert "purge" not in requests["by_operation"]
    assert world(ops.Stats())["requests"]["served"]["get_memory"] == 3


def test_memories_are_counted_by_tier_and_namespace(counting: World) -> None:
    for tier in ("short", "short", "medium", "long"):
        counting(ops.AddMemory(f"A ship of the {tier} kind", "general", tier, namespace="app:port"))
    counting(ops.SavePreference("theme", "dark", namespace="user:alice"))
    counting(ops.AddMemory("The canary of the health manager", namespace="temp:recollect-health:a"))
    gone = counting(ops.AddMemory("A ship that sank", namespace="app:port"))["memory_id"]
    counting(ops.DeleteMemory(gone))
    found = until_counted(counting, 5)["memories"]
    assert found["by_tier"] == {"short": 2, "medium": 2, "long": 1}
    assert found["by_namespace"] == {"app:port": 4, "user:alice": 1}
    assert found["other_namespaces"] == 0


def test_of_many_namespaces_the_largest_are_named_and_the_rest_summed_up(counting: World) -> None:
    items = [{"content": f"ship {number}", "namespace": f"app:p{number}"} for number in range(60)]
    items += [{"content": f"boat {number}", "namespace": "app:p59"} for number in range(3)]
    counting(ops.BatchAddMemories(items))
    found = until_counted(counting, 63)["memories"]
    assert len(found["by_namespace"]) == 50
    assert found["by_namespace"]["app:p59"] == 4
    assert sum(found["by_namespace"].values()) + found["other_namespaces"] == 63


def test_the_rest_of_the_figures(world: World) -> None:
    world(ops.AddMemory("The tide is low at noon"))
    world.settle()
    world(ops.ReportErrors("client:x", [ops.ErrorReport("timeout", "No answer.", 3)]))
    # What is written beside the requests, such as the errors, is written by then.
    wait_for(
        lambda: world(ops.Metrics())["writer"]["lag_s"] == 0.0, within_s=20, what="a free writer"
    )
    found = world(ops.Metrics())
    assert found["process"]["rss_bytes"] > 1_000_000
    assert found["process"]["threads"] > 1
    assert found["process"]["open_files"] > 3
    assert found["writer"]["transactions"] >= 1
    assert found["writer"]["queue_length"] == 0
    assert found["writer"]["lag_s"] == 0.0
    assert found["disk"]["free_bytes"] > 0
    assert found["disk"]["database_bytes"] > 10_000
    assert (found["embedding"]["waiting"], found["embedding"]["lag_s"]) == (0, 0.0)
    assert found["index"]["lag"] == 0
    assert found["errors"] == {"kinds": 1, "count": 3}
    assert found["seq"] == world.storage.committed_seq


def test_only_who_may_see_everything_is_told(world: World) -> None:
    with pytest.raises(Forbidden):
        world(ops.Metrics(), ALICE)
