"""Any filter leaves exactly the memories that it describes, in every way of searching."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.protocol.operations import (
    BatchAddMemories,
    ListMemories,
    Recall,
    SearchMemory,
    SemanticSearch,
)
from tests.harness.postgres import new_database
from tests.harness.worlds import World

KINDS = ("general", "semantic", "episodic")
TAGS = ("red", "green", "blue")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
    "in": lambda a, b: a in b,
    "nin": lambda a, b: a not in b,
}


def memory(n: int) -> dict[str, Any]:
    return {
        "content": f"lighthouse note {n} {'far ' * (n % 5)}",
        "memory_type": KINDS[n % 3],
        "importance": (n % 10) / 10,
        "tags": [tag for at, tag in enumerate(TAGS) if n >> at & 1],
        "metadata": {"n": n, "deep": {"parity": "odd" if n % 2 else "even"}},
        "namespace": ("user:a", "user:a:b", "user:ab")[n % 3],
    }


MEMORIES = [memory(n) for n in range(120)]


def field(item: dict[str, Any], name: str) -> Any:
    for part in name.split("."):
        item = item[part]
    return item


def fits(item: dict[str, Any], filters: dict[str, Any]) -> bool:
    """What a filter means, in plain Python."""
    for name, wanted in filters.items():
        match name:
            case "AND":
                good = all(fits(item, part) for part in wanted)
            case "OR":
                good = any(fits(item, part) for part in wanted)
            case "NOT":
                good = not fits(item, wanted)
            case "tags":
                good = wanted["contains"] in item["tags"]
            case _:
                good = all(
                    COMPARE[sign](field(item, name), value) for sign, value in wanted.items()
                )
        if not good:
            return False
    return True


comparable = st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"])
choosing = st.sampled_from(["in", "nin"])
leaves = st.one_of(
    st.builds(lambda s, v: {"importance": {s: v / 10}}, comparable, st.integers(0, 9)),
    st.builds(lambda s, v: {"metadata.n": {s: v}}, comparable, st.integers(0, 120)),
    st.builds(lambda s, v: {"memory_type": {s: v}}, choosing, st.lists(st.sampled_from(KINDS))),
    st.builds(lambda v: {"metadata.deep.parity": {"eq": v}}, st.sampled_from(["odd", "even"])),
    st.builds(lambda v: {"tags": {"contains": v}}, st.sampled_from(TAGS)),
)
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"AND": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"OR": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"NOT": part}, inner),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    url = "sqlite" if request.param == "sqlite" else new_database()
    world = World(url, Path(tmp_path_factory.mktemp("filters")) / "data")
    world(BatchAddMemories(MEMORIES))
    yield world
    world.close()


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(chosen=filters, namespace=st.none() | st.sampled_from(["user:a", "user:a:b"]))
def test_every_way_of_searching_finds_what_fits_and_nothing_else(
    filled: World, chosen: dict[str, Any], namespace: str | None
) -> None:
    expected = {
        item["content"]
        for item in MEMORIES
        if fits(item, chosen)
        and (
            namespace is None
            or item["namespace"] == namespace
            or item["namespace"].startswith(f"{namespace}:")
        )
    }
    scope: dict[str, Any] = {"filters": chosen, "namespace": namespace}
    for whole, few in (
        (
            SearchMemory("lighthouse", None, 500, **scope),
            SearchMemory("lighthouse", None, 7, **scope),
        ),
        (SemanticSearch("lighthouse", 500, **scope), SemanticSearch("lighthouse", 7, **scope)),
        (
            Recall("lighthouse", 500, collapse=False, **scope),
            Recall("lighthouse", 7, collapse=False, **scope),
        ),
    ):
        assert {result["content"] for result in filled(whole)["results"]} == expected
        assert filled(few)["count"] == min(7, len(expected))


ODD: list[dict[str, Any]] = [
    {"content": "a", "metadata": {"v": True, 'w"x\\': 1}},
    {"content": "b", "metadata": {"v": 1}},
    {"content": "c", "metadata": {"v": "1"}},
    {"content": "d", "metadata": {"v": None}},
    {"content": "e", "metadata": {"v": [1, "two", True]}},
    {"content": "f", "metadata": {"v": {"in": "two"}}},
    {"content": "g", "metadata": {"v": "one TWO"}},
    {"content": "H%_\\", "metadata": {"v": 0.1}},
    {"content": "i", "metadata": {"list": [{"v": 1}], "0": {"v": 2}}},
]
ASKED: list[tuple[dict[str, Any], str]] = [
    ({"metadata.v": 1}, "ab"),
    ({"metadata.v": True}, "ab"),
    ({"metadata.v": "1"}, "c"),
    ({"metadata.v": {"lt": 1}}, "H"),
    ({"metadata.v": 0.1}, "H"),
    ({"metadata.v": {"gte": 1, "lt": "0"}}, "ab"),
    ({"metadata.v": None, "content": {"ne": "i"}}, "d"),
    ({"metadata.v": {"in": [1, "1"]}}, "abc"),
    ({"metadata.v": {"contains": "two"}}, "ef"),
    ({"metadata.v": {"contains": 1}}, "ce"),
    ({"metadata.v": {"contains": "TWO"}}, "g"),
    ({"metadata.list.v": 1}, ""),
    ({"metadata.list.0.v": 1}, ""),
    ({"metadata.0.v": 2}, "i"),
    ({'metadata.w"x\\': 1}, "a"),
    ({"metadata.'; DROP TABLE memories; --": 1}, ""),
    ({"metadata.$?(@ == 1)": 1}, ""),
    ({"content": {"contains": "h%_\\"}}, "H"),
    ({"content": {"contains": "%"}}, "H"),
]


def test_odd_values_and_names_are_compared_alike_on_every_storage(world: World) -> None:
    world(BatchAddMemories([memory | {"namespace": "user:odd"} for memory in ODD]))
    for filters, wanted in ASKED:
        listed = world(ListMemories(filters=filters))["memories"]
        assert {m["content"][0] for m in listed} == set(wanted), filters
        near = world(SemanticSearch("a b c", 50, filters))["results"]
        assert {m["content"][0] for m in near} == set(wanted), filters
