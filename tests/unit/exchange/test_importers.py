"""What other programs wrote is told apart and read, and what is broken says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.exchange.importers import READERS, found_in, reader_of
from recollect.exchange.items import Conversation, Fact, Link
from recollect.exchange.json_items import items_in
from recollect.exchange.problems import BadFile
from tests.harness import foreign_files

FILES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "mem0": ("mem0", foreign_files.mem0_file),
    "mcp-memory": ("mcp-memory", foreign_files.mcp_memory_file),
    "langgraph json": ("langgraph", foreign_files.langgraph_json),
    "langgraph database": ("langgraph", foreign_files.langgraph_database),
    "chatgpt": ("chatgpt", foreign_files.chatgpt_zip),
    "claude": ("claude", foreign_files.claude_file),
}


def read(path: Path) -> list[Any]:
    return list(reader_of(found_in(str(path)))(str(path)))


@pytest.mark.parametrize("name", FILES)
def test_who_wrote_a_file_is_told_from_what_is_in_it(name: str, tmp_path: Path) -> None:
    program, make = FILES[name]
    path = make(tmp_path)
    assert found_in(str(path)) == program
    assert [n for n, reader in READERS.items() if reader.wrote(path)] == [program]


def test_a_folder_with_conversations_is_read_like_the_file(tmp_path: Path) -> None:
    path = foreign_files.claude_file(tmp_path)
    assert read(path.parent) == read(path)


def test_memories_of_mem0_keep_their_time_tags_and_links(tmp_path: Path) -> None:
    first, second, *rest = read(foreign_files.mem0_file(tmp_path))
    assert (first.content, first.tags) == ("Prefers window seats on night trains", ("travel",))
    assert (first.valid_from, first.metadata["topic"]) == ("2024-03-01T09:30:00+00:00", "travel")
    assert second.metadata["agent_id"] == "cook"
    assert [type(item) for item in rest] == [Fact, Fact, Link]
    assert rest[-1].relationship_type == "allergic_to"


def test_observations_come_behind_all_entities_and_relations_last(tmp_path: Path) -> None:
    items = read(foreign_files.mcp_memory_file(tmp_path))
    assert [item.content for item in items[:4]] == [
        "Ada (person)",
        "Engine (machine)",
        "Engine: Weaves algebraic patterns",
        "Engine: Stands in London",
    ]
    assert items[2].parent_key == items[1].key
    assert (items[4].source_key, items[4].target_key) == (items[0].key, items[1].key)


def test_a_store_of_langgraph_reads_the_same_from_both_of_its_forms(tmp_path: Path) -> None:
    forms = [
        read(make(tmp_path))
        for make in (foreign_files.langgraph_json, foreign_files.langgraph_database)
    ]
    for items in forms:
        assert [(i.below, i.key, i.content) for i in items] == [
            (("memories", "alice%20b"), "langgraph/tea", "Likes green tea"),
            (("memories", "bob"), "langgraph/tea", '{"likes":["oolong"]}'),
        ]
        assert items[0].valid_from.startswith("2024-01-02")


def test_of_a_conversation_the_way_that_was_shown_last_is_read(tmp_path: Path) -> None:
    [talk] = read(foreign_files.chatgpt_zip(tmp_path))
    assert isinstance(talk, Conversation)
    assert [(turn.author, turn.text) for turn in talk.turns] == [
        ("user", "Which way?"),
        ("assistant", "North by east.\n[image_asset_pointer]"),
    ]
    assert (talk.title, talk.metadata["branches"]) == ("Sailing to the lighthouse", 1)


def test_a_conversation_of_claude_names_what_was_attached(tmp_path: Path) -> None:
    [talk] = read(foreign_files.claude_file(tmp_path))
    assert [(turn.author, turn.text) for turn in talk.turns] == [
        ("user", "Read this.\n[attached: tides.txt]"),
        ("assistant", "The tide is low at noon."),
    ]


BROKEN = {
    "mem0": ('{"results": [{"id": "1"}]}', "memory 1"),
    "mcp-memory": ('{"type": "entity", "name": "a"}\n{"type": "ent', "line 2"),
    "langgraph": ('[{"namespace": ["a"], "value": 1}]', "item 1"),
    "chatgpt": ('[{"title": "x"}]', "conversation 1"),
    "claude": ('[{"uuid": "x", "chat_messages": []}, {"uuid": 7}]', "conversation 2"),
}


@pytest.mark.parametrize("program", BROKEN)
def test_a_broken_file_is_refused_with_its_place_and_what_was_expected(
    program: str, tmp_path: Path
) -> None:
    text, place = BROKEN[program]
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(BadFile) as caught:
        list(reader_of(program)(str(path)))
    assert place in str(caught.value)
    assert caught.value.expected


def test_a_damaged_database_is_told_from_one_that_is_none(tmp_path: Path) -> None:
    path = foreign_files.langgraph_database(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:16] + b"\xff" * (len(whole) - 16))
    for look in (found_in, lambda broken: list(reader_of("langgraph")(broken))):
        with pytest.raises(BadFile, match="SQLite cannot read it"):
            look(str(path))


def test_a_relation_that_is_no_object_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mem0.json"
    path.write_text('{"results": [{"id": "1", "memory": "x"}], "relations": ["a knows b"]}')
    with pytest.raises(BadFile, match="relation 1"):
        read(path)


@pytest.mark.parametrize("text", ["", "{}", "[1, 2", "[1 2]", "[1,, 2]", "[nonsense]", '["\\ud8'])
def test_what_is_no_list_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(text)
    with pytest.raises(BadFile):
        list(items_in(str(path), "", "A list."))


def test_a_long_list_is_read_item_by_item(tmp_path: Path) -> None:
    # Longer than what is read at once, with an item that is longer than that as well.
    given = [{"n": n, "text": "é" * 40} for n in range(20_000)] + ["x" * 3_000_000, 12345]
    path = tmp_path / "list.json"
    path.write_text(json.dumps(given, ensure_ascii=False, indent=1))
    assert [item for _, item in items_in(str(path), "", "A list.")] == given


def test_what_nobody_wrote_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary")
    with pytest.raises(BadFile, match="neither"):
        found_in(str(path))
    with pytest.raises(BadFile, match="no such file"):
        found_in(str(tmp_path / "absent"))
