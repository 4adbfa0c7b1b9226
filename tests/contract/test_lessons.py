"""Lessons under difficulties: learned side by side, not to be stored, worded by a model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect.config.agents import LearningSettings
from recollect.config.settings import EmbeddingSettings, Settings
from recollect.config.sharing import ConsolidationSettings
from recollect.protocol.operations import (
    CreateIdentity,
    ExtractPattern,
    FindPattern,
    PatternFeedback,
    Restore,
    SearchPatterns,
    SearchSimilar,
    StoreExecution,
)
from tests.harness.chat_server import ChatServer
from tests.harness.embedding_server import Fault
from tests.harness.somebody import somebody
from tests.harness.worlds import World

NAMESPACE = "project:shop"
TASK = "Deploy the web shop to production"
SAID = "Take a backup first and do not skip it."


def storing(number: int, success: bool = True, **options: Any) -> StoreExecution:
    return StoreExecution(
        f"t{number}",
        "Took a backup first." if success else "Skipped the backup.",
        success,
        task_description=TASK,
        namespace=NAMESPACE,
        **options,
    )


def test_executions_stored_at_once_make_one_pattern(world: World) -> None:
    async def at_once() -> list[Any]:
        return await asyncio.gather(*(world.ask(storing(n, n % 2 == 0)) for n in range(12)))

    stored = world.run(at_once())
    assert {one["status"] for one in stored} == {"success"}
    [pattern] = world(SearchPatterns())["patterns"]
    assert {found for one in stored for found in one["patterns"]} == {pattern["id"]}
    [whole] = world(ExtractPattern(namespace=NAMESPACE))["patterns"]
    assert whole["id"] == pattern["id"]
    assert (whole["successes"], whole["failures"]) == (6, 6)


def test_an_execution_is_stored_though_its_pattern_cannot_be(world: World) -> None:
    world(CreateIdentity("small", memories_max=2))
    small = msgspec.structs.replace(somebody("small", write=(NAMESPACE,)), memories_max=2)
    stored = [world(storing(number), small) for number in range(2)]
    assert [one["patterns"] for one in stored] == [[], []]
    assert world(SearchSimilar(TASK))["count"] == 2
    assert world(SearchPatterns())["count"] == 0
    assert len(world(storing(2))["patterns"]) == 1


def test_many_of_the_same_task_still_teach(storage_url: str, tmp_path: Path) -> None:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"),
        learning=LearningSettings(neighbours_max=3, examined_max=8),
    )
    world = World(storage_url, tmp_path / "data", settings)
    try:
        for number in range(12):
            world(storing(number))
        learned = world(storing(12, success=False))["patterns"]
        [pattern] = world(SearchPatterns())["patterns"]
        assert learned == [pattern["id"]]
        # What a look no longer reaches is still behind the pattern.
        assert (pattern["successes"], pattern["failures"]) == (12, 1)
        assert pattern["pattern_type"] == "mixed"
        assert world(ExtractPattern(namespace=NAMESPACE))["examined"] == 8
    finally:
        world.close()


def test_what_nobody_can_place_teaches_nothing(world: World) -> None:
    for number in range(2):
        world(StoreExecution(f"t{number}", "!?", True, namespace=NAMESPACE))
    assert world(SearchPatterns())["count"] == 0
    assert world(FindPattern("!?"))["pattern"] is None


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture
def talking(storage_url: str, tmp_path: Path, chat: ChatServer) -> Iterator[World]:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"),
        consolidation=ConsolidationSettings(llm_url=chat.url, llm_timeout_s=5.0),
        learning=LearningSettings(llm_wording=True),
    )
    world = World(storage_url, tmp_path / "data", settings)
    yield world
    world.close()


def test_a_model_words_the_summary_and_nothing_else(talking: World, chat: ChatServer) -> None:
    for number in range(4):
        talking(storing(number, number % 2 == 0, auto_extract_patterns=False))
    plain = ExtractPattern(namespace=NAMESPACE, dry_run=True)
    chat.answer({"settled": False, "content": ""})
    [unworded] = talking(plain)["patterns"]
    assert unworded["summary"].startswith("Of 4 like tasks 2 went well.")
    chat.answer({"settled": True, "content": SAID})
    [worded] = talking(ExtractPattern(namespace=NAMESPACE))["patterns"]
    assert worded["summary"] == SAID
    assert worded["recommended_context"] == unworded["recommended_context"]
    assert chat.asked()[-1] == [unworded["summary"], *unworded["recommended_context"]]
    # Storing an execution never waits for a model.
    asked = len(chat.received)
    talking(storing(9))
    assert len(chat.received) == asked


@pytest.mark.parametrize("answer", ["no JSON", {"settled": True, "content": "Do 77 things."}])
def test_an_answer_that_cannot_be_believed_changes_no_word(
    talking: World, chat: ChatServer, answer: str | dict[str, Any]
) -> None:
    for number in range(2):
        talking(storing(number, auto_extract_patterns=False))
    chat.answer(answer)
    [pattern] = talking(ExtractPattern(namespace=NAMESPACE))["patterns"]
    assert pattern["summary"].startswith("All 2 like tasks went well.")


def test_a_model_that_is_away_changes_no_word(talking: World, chat: ChatServer) -> None:
    for number in range(2):
        talking(storing(number, auto_extract_patterns=False))
    chat.fail(Fault(status=401))
    [pattern] = talking(ExtractPattern(namespace=NAMESPACE))["patterns"]
    assert pattern["summary"].startswith("All 2 like tasks went well.")


def test_an_earlier_version_of_a_pattern_comes_back_whole(world: World) -> None:
    for number in range(2):
        world(storing(number))
    [first] = world(SearchPatterns())["patterns"]
    world(storing(2, success=False))
    world(PatternFeedback(first["id"], False))
    world(Restore(first["id"], first["version"]))
    [back] = world(SearchPatterns())["patterns"]
    changing = {"version", "updated_at", "usage_count", "executions"}
    assert {k: v for k, v in back.items() if k not in changing} == {
        k: v for k, v in first.items() if k not in changing
    }
    assert (back["pattern_type"], back["confidence"]) == ("success", 0.75)
    # What was learned since is learned again.
    [again] = world(ExtractPattern(namespace=NAMESPACE))["patterns"]
    assert (again["id"], again["pattern_type"]) == (first["id"], "mixed")
