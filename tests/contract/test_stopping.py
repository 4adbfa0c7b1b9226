"""A stopped orchestrator leaves nothing at work behind it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from recollect.config.settings import EmbeddingSettings, IndexSettings, Settings
from recollect.protocol.operations import BatchAddMemories, Reembed, Stats
from tests.harness.worlds import ANSWERED_WITHIN_S, World

WORKERS = "vector-"


def workers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith(WORKERS)}


def test_the_builders_of_a_model_on_its_way_end_with_the_orchestrator(tmp_path: Path) -> None:
    """Else they write into files that the next one works with."""
    before = workers()
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed", dimensions=64),
        index=IndexSettings(head_max=16),
    )
    world = World("sqlite", tmp_path / "data", settings)
    for start in range(0, 4_000, 200):
        contents = [f"text {number}" for number in range(start, start + 200)]
        world(BatchAddMemories([{"content": content} for content in contents]))
    world(Reembed("hashed", "hashed", 48))
    until = time.monotonic() + ANSWERED_WITHIN_S
    while not (state := world(Stats())["embedding"]["reembedding"])["done"]:
        assert time.monotonic() < until, state
    assert state["done"] < 4_000, "the exchange was too quick for this test"
    assert workers() > before
    world.close()
    assert workers() <= before
