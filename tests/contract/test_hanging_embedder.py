"""What an endpoint that hangs does to searches: they are answered in time, with what can be had."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recollect.config.settings import EmbeddingSettings, Settings
from recollect.protocol.errors import EmbedderUnavailable
from recollect.protocol.operations import (
    AddMemory,
    AssembleContext,
    DeleteMemory,
    FindSimilarDecisions,
    Recall,
    SaveTask,
    SearchMemory,
    SemanticSearch,
    TaskContext,
    UpdateMemory,
)
from tests.harness.embedding_server import EmbeddingServer, Fault
from tests.harness.worlds import World

WAIT_MS = 300
PATIENCE_S = 8.0
"""Far below what the endpoint itself is given, and what a test waits for any answer."""


class Hanging(NamedTuple):
    """An orchestrator and the endpoint that it asks."""

    world: World
    server: EmbeddingServer

    def hang(self) -> None:
        """From now on nothing is embedded, and nothing is known of what was."""
        self.server.fail(*[Fault(hang=True)] * 50)
        self.world.orchestrator.parts.meanings.current.embedding.forget()


@pytest.fixture
def hanging(storage_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    """A world with a memory that has its vector, whose embedder may be made to hang."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with EmbeddingServer(8, key="secret") as server:
        settings = Settings(
            embedding=EmbeddingSettings(
                provider="openai",
                model="tiny",
                openai_url=server.url,
                openai_timeout_s=60,
                openai_attempts_max=1,
                wait_ms=WAIT_MS,
                query_wait_ms=WAIT_MS,
            )
        )
        world = World(storage_url, tmp_path / "data", settings)
        world(AddMemory("The harbour is closed in winter."))
        world.settle()
        yield Hanging(world, server)
    world.close()


def in_time(world: World, operation: Any, **envelope: Any) -> Any:
    began_s = time.monotonic()
    try:
        return world(operation, **envelope)
    finally:
        assert time.monotonic() - began_s < PATIENCE_S


def test_what_words_can_answer_is_answered(hanging: Hanging) -> None:
    world = hanging.world
    world(SaveTask("Look when the harbour is closed", "t-1"))
    world.settle()
    hanging.hang()
    recalled = in_time(world, Recall("When is the harbour closed?"))
    assert recalled["results"][0]["content"].startswith("The harbour is closed")
    assert "no vector within 0.3 s" in recalled["degraded"]
    context = in_time(world, AssembleContext("Go to the harbour in winter"))
    assert "harbour" in context["context"]
    assert context["degraded"].startswith("Found by words alone")
    known = in_time(world, TaskContext("t-1"))
    assert known["task"] is not None
    assert "no vector within" in known["degraded"]
    assert world(SearchMemory("harbour"))["count"] >= 1


def test_what_needs_a_vector_is_refused_and_may_be_tried_again(hanging: Hanging) -> None:
    world = hanging.world
    hanging.hang()
    for operation in (SemanticSearch("a closed port", 3), FindSimilarDecisions("a closed port")):
        with pytest.raises(EmbedderUnavailable) as refused:
            in_time(world, operation)
        assert refused.value.retryable


def test_the_past_is_searched_by_a_ready_vector(hanging: Hanging) -> None:
    world = hanging.world
    changed = world(AddMemory("The lighthouse is white."))["memory_id"]
    world.settle()
    world.clock.advance(60)
    moment = world.clock.now_us() / 1_000_000
    world.clock.advance(60)
    world(UpdateMemory(changed, {"content": "The lighthouse is red."}))
    world.settle()
    hanging.hang()
    found = in_time(world, SemanticSearch("a port", vector=[1.0] + [0.0] * 7, k=5, as_of=moment))
    assert [result["content"] for result in found["results"]] == [
        "The harbour is closed in winter."
    ]
    assert found["degraded"].startswith("Left out 1 ")


def test_what_left_the_scope_while_the_vector_was_waited_for_is_not_recalled(
    hanging: Hanging,
) -> None:
    world = hanging.world
    kept, deleted, changed = (
        world(AddMemory(f"The ferry is {how}.", importance=0.9))["memory_id"]
        for how in ("late", "full", "new")
    )
    world.settle()
    hanging.hang()

    async def recalled() -> Any:
        asked = Recall("How is the ferry?", filters={"importance": {"gt": 0.5}})
        recalling = asyncio.ensure_future(world.ask(asked))
        # When this is answered, so are the words of the question; its vector is waited for.
        await world.ask(SearchMemory("ferry"))
        await world.ask(DeleteMemory(deleted))
        await world.ask(UpdateMemory(changed, {"importance": 0.1}))
        return await recalling

    assert [result["id"] for result in world.run(recalled())["results"]] == [kept]
