"""Preferences, agent states and personas through the services."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.config.settings import EmbeddingSettings, Settings, TrustSettings
from recollect.protocol import errors
from recollect.protocol.operations import (
    DeleteByKey,
    GetAgentState,
    GetMemory,
    GetPersona,
    GetPreference,
    HistoryByKey,
    ListPreferences,
    Put,
    SaveAgentState,
    SavePersona,
    SavePreference,
    SemanticSearch,
)
from tests.faults.walls import identity
from tests.harness.worlds import World

BOB = identity("bob", ("user:bob", "admin"))
READER = identity("reader", ("user:alice", "read"))


def test_a_preference_is_a_value_that_can_be_recalled(world: World) -> None:
    saved = world(
        SavePreference("answer_language", "German", namespace="user:alice", confidence=0.8)
    )
    assert (saved["version"], saved["created"]) == (1, True)
    found = world(GetPreference("answer_language", namespace="user:alice"))["preference"]
    assert (found["key"], found["value"], found["confidence"]) == ("answer_language", "German", 0.8)
    memory = world(GetMemory(saved["memory_id"]))["memory"]
    assert memory["content"] == "Prefers answer language: German"
    assert (memory["collection"], memory["trust"]) == ("preferences", 0.8)
    again = world(SavePreference("answer_language", "French", namespace="user:alice"))
    assert (again["version"], again["created"]) == (2, False)
    [hit] = world(SemanticSearch("prefers answer language", collections=["preferences"]))["results"]
    assert (hit["value"], hit["content"]) == ("French", "Prefers answer language: French")
    history = world(HistoryByKey("user:alice", "preference/answer_language"))
    assert [version["memory"]["value"] for version in history["versions"]] == ["French", "German"]


def test_any_value_reads_as_a_sentence(world: World) -> None:
    for value, content in (
        (True, "Prefers dark mode: true"),
        (["a", "b"], "Prefers dark mode: a, b"),
        ({"from": "dusk", "on": True}, "Prefers dark mode.from: dusk; dark mode.on: true"),
        (None, "Prefers dark mode"),
        ("", "Prefers dark mode"),
    ):
        saved = world(SavePreference("dark-mode", value))
        assert world(GetMemory(saved["memory_id"]))["memory"]["content"] == content
        assert world(GetPreference("dark-mode"))["preference"]["value"] == value


def test_preferences_are_listed_by_their_key_page_by_page(world: World) -> None:
    for namespace in ("user:bob", "user:alice", "user:alice:work", "user:alice2"):
        for key in ("ui.theme", "ui.font", "tea"):
            world(SavePreference(key, namespace, namespace=namespace))
    world(Put("user:alice", "preference-like", 1))
    world(DeleteByKey("user:alice", "preference/tea"))
    seen: list[tuple[str, str]] = []
    cursor = None
    while True:
        page = world(ListPreferences(namespace="user:alice", limit=2, cursor=cursor))
        seen += [(found["namespace"], found["key"]) for found in page["preferences"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == [
        ("user:alice", "ui.font"),
        ("user:alice", "ui.theme"),
        ("user:alice:work", "tea"),
        ("user:alice:work", "ui.font"),
        ("user:alice:work", "ui.theme"),
    ]
    fonts = world(ListPreferences("ui.f"))["preferences"]
    assert [found["namespace"] for found in fonts] == [
        "user:alice",
        "user:alice2",
        "user:alice:work",
        "user:bob",
    ]
    assert world(ListPreferences("%"))["count"] == 0
    assert world(ListPreferences(), BOB)["count"] == 3
    with pytest.raises(errors.InvalidArgument):
        world(ListPreferences(namespace="nowhere"))


def test_an_agent_goes_on_from_the_state_that_it_saved(world: World) -> None:
    world(SaveAgentState("planner", {"step": 3, "plan": ["look", "leap"]}))
    second = world(SaveAgentState("planner", {"step": 4}, expected_version=1))
    found = world(GetAgentState("planner"))
    assert (found["state"], found["version"]) == ({"step": 4}, 2)
    memory = world(GetMemory(second["memory_id"]))["memory"]
    assert (memory["content"], memory["key"]) == (
        "State of the agent planner: step: 4",
        "agent_state/planner",
    )
    world(SaveAgentState("planner", {}))
    assert world(GetAgentState("planner"))["state"] == {}


def test_a_persona_is_kept(world: World) -> None:
    saved = world(SavePersona("Ada", {"mood": "curious"}))
    assert world(GetPersona("Ada"))["state"] == {"mood": "curious"}
    memory = world(GetMemory(saved["memory_id"]))["memory"]
    assert memory["content"] == "The persona Ada: mood: curious"


def test_bad_ones_are_refused_and_write_nothing(world: World) -> None:
    world(SavePreference("tea", "green"))
    before = world.storage.committed_seq
    for bad in (
        SavePreference(" ", 1),
        SavePreference("a\x00b", 1),
        SavePreference("tea", float("inf")),
        SaveAgentState("planner", {"a": "\x00"}),
        SavePersona("Ada", {"a": float("nan")}),
    ):
        with pytest.raises(errors.InvalidArgument):
            world(bad)
    with pytest.raises(errors.VersionConflict):
        world(SavePreference("tea", "black", expected_version=7))
    with pytest.raises(errors.NotFound, match="leave expected_version out"):
        world(SavePersona("Ada", {}, expected_version=1))
    for absent in (GetPreference("coffee"), GetAgentState("nobody"), GetPersona("nobody")):
        with pytest.raises(errors.NotFound):
            world(absent)
    assert world.storage.committed_seq == before


def test_what_is_not_yours_is_absent_and_a_reader_changes_nothing(world: World) -> None:
    world(SavePreference("tea", "green", namespace="user:alice"))
    world(SaveAgentState("a", {"x": 1}, namespace="user:alice"))
    for absent in (
        GetPreference("tea", namespace="user:alice"),
        GetAgentState("a", namespace="user:alice"),
    ):
        with pytest.raises(errors.NotFound):
            world(absent, BOB)
        assert world(absent, READER)["status"] == "success"
    with pytest.raises(errors.Forbidden):
        world(SavePreference("tea", "black", namespace="user:alice"), READER)


def test_a_value_that_its_name_calls_a_secret_is_masked(storage_url: str, tmp_path: Any) -> None:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), trust=TrustSettings(secrets="mask")
    )
    world = World(storage_url, tmp_path / "data", settings)
    try:
        saved = world(SavePreference("password", "hunter2hunter2"))
        assert "hunter2" not in str(world(GetPreference("password")))
        assert "hunter2" not in str(world(GetMemory(saved["memory_id"])))
    finally:
        world.close()
