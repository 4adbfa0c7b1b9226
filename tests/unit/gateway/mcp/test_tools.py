"""The tools as a model is told of them, and what their arguments make."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from recollect.gateway.mcp.fitting import COUNTER, written
from recollect.gateway.mcp.tools import OfferedTool, offered
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operations import AddMemory, ListEvents, Recall

TOOLS = offered()
# A model reads all of it before it does anything.
LIST_TOKENS_MAX = 12_500


def described(tool: OfferedTool) -> dict[str, Any]:
    made: dict[str, Any] = tool.described.model_dump(by_alias=True, exclude_none=True)
    return made


def names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {name for part in value.values() for name in names_in(part)}
    if isinstance(value, list):
        return {name for part in value for name in names_in(part)}
    return set()


def test_the_tools_are_these() -> None:
    assert set(TOOLS) == {
        *("remember", "recall", "add_memory", "search_memories", "get_memory", "update_memory"),
        *("delete_memory", "get_related", "assemble_context", "search_documents"),
        *("log_decision", "record_outcome", "find_similar_decisions"),
        *("create_session", "get_session", "append_event", "list_events", "list_sessions"),
        *("end_session", "store_execution", "find_pattern", "pattern_feedback"),
    }


def test_all_of_them_together_leave_a_model_room() -> None:
    listed = written([described(tool) for tool in TOOLS.values()])
    assert COUNTER.count(listed) <= LIST_TOKENS_MAX


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_says_what_it_does_and_when_to_use_it(name: str) -> None:
    tool = described(TOOLS[name])
    what, _, when = tool["description"].rpartition("\n\n")
    assert what.endswith(".")
    assert when.startswith("Use it ")
    assert tool["title"]
    hints = tool["annotations"]
    assert hints["openWorldHint"] is False
    assert not (hints["readOnlyHint"] and hints["destructiveHint"])
    assert {"readOnlyHint", "destructiveHint", "idempotentHint"} <= hints.keys()


@pytest.mark.parametrize("name", TOOLS)
def test_the_schemas_are_json_schema_and_refer_to_nothing(name: str) -> None:
    tool = described(TOOLS[name])
    for kind in ("inputSchema", "outputSchema"):
        schema = tool.get(kind)
        if schema is not None:
            Draft202012Validator.check_schema(schema)
            assert not names_in(schema) & {"$ref", "$defs"}
    schema = tool["inputSchema"]
    assert all(part.get("description") for part in schema["properties"].values())
    assert set(schema["required"]) <= schema["properties"].keys()


@pytest.mark.parametrize("name", TOOLS)
def test_an_example_fits_its_schema_and_is_a_call(name: str) -> None:
    tool = TOOLS[name]
    schema = described(tool)["inputSchema"]
    [example] = schema["examples"]
    Draft202012Validator(schema).validate(example)
    made = tool.made_of(example)
    assert {field: getattr(made, field) for field in example} == example


def test_no_tool_shows_what_only_programs_fill() -> None:
    shown = {
        name for tool in TOOLS.values() for name in described(tool)["inputSchema"]["properties"]
    }
    hidden = {"timeout", "idempotency_key", "min_seq", "explain", "vector", "threshold"}
    assert not shown & hidden


def test_what_a_schema_promises_is_what_the_types_say() -> None:
    schema = described(TOOLS["add_memory"])["inputSchema"]["properties"]
    assert set(schema["memory_tier"]["enum"]) == {"short", "medium", "long"}
    assert schema["memory_tier"]["default"] == "short"
    assert (schema["importance"]["minimum"], schema["importance"]["maximum"]) == (0, 1)
    assert schema["metadata"]["type"] == "object"
    assert "default" not in schema["metadata"]
    tiers = described(TOOLS["assemble_context"])["inputSchema"]["properties"]["tiers"]
    assert tiers["default"] == ["operational", "working", "longterm", "knowledge"]
    assert "working" in tiers["items"]["enum"]


def test_what_is_changed_or_deleted_is_marked() -> None:
    hints = {name: described(tool)["annotations"] for name, tool in TOOLS.items()}
    assert hints["recall"]["readOnlyHint"]
    assert hints["delete_memory"]["destructiveHint"]
    assert hints["delete_memory"]["idempotentHint"]
    assert hints["update_memory"]["destructiveHint"]
    assert not hints["update_memory"]["idempotentHint"]
    assert not hints["remember"]["destructiveHint"]


def test_remember_is_the_short_form_of_add_memory() -> None:
    properties = described(TOOLS["remember"])["inputSchema"]["properties"]
    assert set(properties) == {"content", "importance", "tags", "namespace"}
    assert TOOLS["remember"].made_of({"content": "tea"}) == AddMemory("tea")
    with pytest.raises(InvalidArgument, match="takes no 'trust'"):
        TOOLS["remember"].made_of({"content": "tea", "trust": 0.5})


def test_numbers_as_texts_and_nulls_are_understood() -> None:
    made = TOOLS["recall"].made_of({"query": "tea", "k": "3", "filters": None})
    assert made == Recall("tea", 3)


def test_a_wrong_argument_is_named_with_what_it_takes() -> None:
    with pytest.raises(InvalidArgument, match="Did you mean 'query'"):
        TOOLS["recall"].made_of({"querry": "tea"})
    with pytest.raises(InvalidArgument, match="query is missing"):
        TOOLS["recall"].made_of({})
    with pytest.raises(InvalidArgument, match="short, medium, long"):
        TOOLS["add_memory"].made_of({"content": "tea", "memory_tier": "forever"})
    with pytest.raises(InvalidArgument, match="takes no 'min_seq'"):
        TOOLS["recall"].made_of({"query": "tea", "min_seq": 1})


def test_a_wrong_name_is_cut_before_one_like_it_is_looked_for() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidArgument, match="takes no 'xxx") as refused:
            offered()["remember"].made_of({"x" * 1_000_000: 1})
        # Looking for what is alike would take some forty bytes a character.
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
    assert len(refused.value.message) < 1000


def test_a_namespace_given_at_the_start_is_the_default_of_all() -> None:
    tools = offered("user:alice")
    schema = described(tools["recall"])["inputSchema"]["properties"]["namespace"]
    assert schema["default"] == "user:alice"
    assert tools["recall"].made_of({"query": "tea"}) == Recall("tea", namespace="user:alice")
    other = tools["remember"].made_of({"content": "tea", "namespace": "user:bob"})
    assert other == AddMemory("tea", namespace="user:bob")
    # One that has no namespace is not given any.
    assert tools["list_events"].made_of({"session_id": "s"}) == ListEvents("s")


def test_a_list_is_asked_for_anew_only_where_that_changes_the_answer() -> None:
    assert TOOLS["recall"].size_field("results") == "k"
    assert TOOLS["search_memories"].size_field("results") == "limit"
    assert TOOLS["get_session"].size_field("events") == "events"
    assert TOOLS["find_similar_decisions"].size_field("decisions") is None


def test_the_page_about_mcp_has_every_tool_and_no_other() -> None:
    page = (Path(__file__).parents[4] / "docs" / "mcp.md").read_text()
    table = page.partition("| tool |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(TOOLS)
