"""The filter language, compared with plain Python over the same records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.orchestrator.search.filters import FilterCompiler, namespace_condition
from recollect.orchestrator.search.json_paths import SqliteJsonPaths
from recollect.protocol.errors import RecollectError

COMPILER = FilterCompiler(SqliteJsonPaths())
RECORDS: list[dict[str, Any]] = [
    {
        "num": num,
        "memory_type": ["general", "semantic", "episodic"][num % 3],
        "importance": num / 20,
        "key": None if num % 4 else f"k{num}",
        "tags": [["a"], ["a", "b"], [], ["c"]][num % 4],
        "metadata": [{"n": num}, {"n": -num, "team": "x"}, {"team": "y", "deep": {"q": 'w"x'}}, {}][
            num % 4
        ],
    }
    for num in range(20)
]


def database() -> apsw.Connection:
    import json

    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE TABLE memories (num, memory_type, importance, key, tags, metadata, namespace)"
    )
    for record in RECORDS:
        connection.execute(
            "INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, '')",
            (
                record["num"],
                record["memory_type"],
                record["importance"],
                record["key"],
                json.dumps(record["tags"]),
                json.dumps(record["metadata"]),
            ),
        )
    return connection


CONNECTION = database()


def select(filters: dict[str, Any]) -> set[int]:
    sql, params = COMPILER.compile(filters)
    rows = CONNECTION.execute(f"SELECT num FROM memories WHERE {sql}", params)
    return {num for (num,) in rows}


def value_of(record: dict[str, Any], field: str) -> Any:
    if field.startswith("metadata."):
        return record["metadata"].get(field.removeprefix("metadata."))
    return record[field]


TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda have, want: have == want,
    "ne": lambda have, want: have != want,
    "gt": lambda have, want: have is not None and have > want,
    "gte": lambda have, want: have is not None and have >= want,
    "lt": lambda have, want: have is not None and have < want,
    "lte": lambda have, want: have is not None and have <= want,
    "in": lambda have, want: have in want,
    "nin": lambda have, want: have not in want,
}


def holds(record: dict[str, Any], filters: dict[str, Any]) -> bool:
    for key, value in filters.items():
        match key.removeprefix("$").upper():
            case "AND":
                fits = all(holds(record, part) for part in value)
            case "OR":
                fits = any(holds(record, part) for part in value)
            case "NOT":
                fits = not holds(record, value)
            case _ if key == "tags":
                fits = value["contains"] in record["tags"]
            case _:
                tests = value if isinstance(value, dict) else {"eq": value}
                fits = all(
                    TESTS[name.removeprefix("$")](value_of(record, key), operand)
                    for name, operand in tests.items()
                )
        if not fits:
            return False
    return True


numbers = st.integers(-25, 25)
comparison = st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte", "$gte", "$lt"])
leaves = st.one_of(
    st.builds(lambda v: {"memory_type": v}, st.sampled_from(["general", "semantic", "x"])),
    st.builds(lambda op, v: {"importance": {op: v / 20}}, comparison, numbers),
    st.builds(lambda op, v: {"metadata.n": {op: v}}, comparison, numbers),
    st.builds(
        lambda op, v: {"metadata.n": {op: v}},
        st.sampled_from(["in", "nin"]),
        st.lists(numbers, max_size=4),
    ),
    st.builds(lambda v: {"metadata.team": v}, st.sampled_from(["x", "y", "z"])),
    st.builds(lambda v: {"tags": {"contains": v}}, st.sampled_from(["a", "b", "c", "d"])),
    st.builds(lambda v: {"key": v}, st.sampled_from(["k0", "k4", "none"])),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(
            lambda w, parts: {w: parts},
            st.sampled_from(["AND", "OR", "$and", "or"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda part: {"NOT": part}, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None)
@given(trees)
def test_a_filter_selects_what_plain_python_selects(filters: dict[str, Any]) -> None:
    assert select(filters) == {r["num"] for r in RECORDS if holds(r, filters)}


def test_odd_names_in_metadata_paths_are_safe() -> None:
    assert select({"metadata.deep.q": 'w"x'}) == {2, 6, 10, 14, 18}
    assert select({"metadata.a\"b'; DROP TABLE memories": 1}) == set()
    assert select({"metadata.team": {"contains": "x"}}) == {1, 5, 9, 13, 17}


@pytest.mark.parametrize(
    "filters",
    [
        {"imporance": 1},
        {"importance": {"near": 1}},
        {"importance": {"gt": None}},
        {"importance": {"in": 5}},
        {"importance": {"eq": [1]}},
        {"importance": float("nan")},
        {"AND": []},
        {"OR": {"a": 1}},
        {"NOT": []},
        {"created_at": "not a time"},
        {"tags": {"gt": "a"}},
        {"num": 1},
        {"importance": {"eq": 1 << 70}},
    ],
)
def test_a_wrong_filter_is_refused(filters: dict[str, Any]) -> None:
    with pytest.raises(RecollectError):
        COMPILER.compile(filters)


def test_no_tag_is_in_an_empty_list() -> None:
    assert select({"tags": {"in": []}}) == set()
    assert len(select({"tags": {"nin": []}})) == len(RECORDS)


def test_a_misspelt_field_is_answered_with_the_right_one() -> None:
    with pytest.raises(RecollectError, match="did you mean 'importance'"):
        COMPILER.compile({"imporance": 1})


def test_filters_are_bounded_in_depth_and_number() -> None:
    deep: dict[str, Any] = {"importance": 1}
    for _ in range(20):
        deep = {"NOT": deep}
    for filters in (deep, {"OR": [{"importance": 1}] * 1000}):
        with pytest.raises(RecollectError):
            COMPILER.compile(filters)


@given(st.text("ab:;~ ", max_size=6))
def test_a_namespace_holds_itself_and_what_is_below_it(suffix: str) -> None:
    sql, params = namespace_condition("user:a")
    [(inside,)] = CONNECTION.execute(
        f"SELECT {sql} FROM (SELECT ? AS namespace)", (*params, f"user:a{suffix}")
    )
    assert bool(inside) == (suffix == "" or suffix.startswith(":"))
