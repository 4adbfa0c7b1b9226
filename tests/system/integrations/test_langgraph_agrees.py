"""The same histories on LangGraph's own InMemoryStore and on Recollect's, compared."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from langgraph.store.base import get_text_at_path as text_at
from langgraph.store.memory import InMemoryStore

from recollect.integrations.langgraph import RecollectStore

LABELS = ("a", "b", "a:b", "A", "%", "%3A", "x y", "ä☃", "\u2028", "*")
KEYS = ("k", "", "%", "k:1", "two words", "k%00", "\x00", "K")
LIMIT = 1000

labels = st.sampled_from(LABELS)
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
prefixes = st.lists(labels, max_size=2).map(tuple)
keys = st.sampled_from(KEYS)
texts = st.sampled_from(("red", "5", "-1", "nan", "true", "", "long " * 50, 'quo"te', "back\\"))
integers = st.sampled_from((0, 1, 5, -1, 2**53 + 1, 2**62, 10**17))
floats = st.sampled_from((0.0, -0.0, 1.5, 5.0, 1e300, -2.25))
numbers = st.one_of(integers, floats)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
things = st.one_of(
    scalars,
    st.lists(scalars, max_size=2),
    st.dictionaries(st.sampled_from(("n", "deep")), scalars, max_size=2),
)
names = st.sampled_from(("s", "t", "x.y", "odd name", 'q"'))
# What is compared by order is always a number, or a text that is one: of anything else the
# InMemoryStore raises, and Recollect's does not.
values = st.builds(
    lambda rest, number: {**rest, "number": number},
    st.dictionaries(names, things, max_size=3),
    st.one_of(numbers, st.booleans(), st.sampled_from(("5", " 7.5 ", "-1", "inf"))),
)
orders = st.dictionaries(st.sampled_from(("$gt", "$gte", "$lt", "$lte")), numbers, min_size=1)
equalities = st.dictionaries(st.sampled_from(("$eq", "$ne")), things, min_size=1)
filters = st.one_of(
    st.none(),
    st.dictionaries(names, st.one_of(things, equalities), max_size=2),
    orders.map(lambda order: {"number": order}),
    st.builds(lambda name, found, order: {name: found, "number": order}, names, things, orders),
)
puts = st.builds(
    lambda namespace, key, value, index: PutOp(namespace, key, value, index),
    namespaces,
    keys,
    values,
    st.sampled_from((None, None, False, ["s"])),
)
deletes = st.builds(lambda namespace, key: PutOp(namespace, key, None), namespaces, keys)
gets = st.builds(lambda namespace, key: GetOp(namespace, key), namespaces, keys)
searches = st.builds(
    lambda prefix, wanted, query: SearchOp(prefix, wanted, LIMIT, 0, query),
    prefixes,
    filters,
    st.sampled_from((None, "red", "5 nan")),
)
conditions = st.builds(
    MatchCondition,
    st.sampled_from(("prefix", "suffix")),
    st.lists(labels, min_size=1, max_size=2).map(tuple),
)
listings = st.builds(
    ListNamespacesOp,
    st.one_of(st.none(), st.lists(conditions, max_size=2).map(tuple)),
    st.one_of(st.none(), st.integers(1, 3)),
    st.integers(1, 5),
    st.integers(0, 2),
)
changes = st.one_of(puts, puts, puts, deletes)
batches = st.lists(st.one_of(changes, changes, gets, searches, listings), min_size=1, max_size=10)


def shown(result: Result) -> Any:
    """What can be compared of a result: times differ, and so does the order of items."""
    if isinstance(result, Item):
        return result.namespace, result.key, repr(sorted(result.value.items()))
    if isinstance(result, list) and all(isinstance(item, Item) for item in result):
        return sorted(shown(item) for item in result)  # type: ignore[arg-type]
    return result


class Reference:
    """An InMemoryStore, but for namespaces that hold nothing any more, and knowing what is to have
    a score: with vectors, that store keeps those of former values and refuses equal texts."""

    def __init__(self) -> None:
        self._store = InMemoryStore()
        self._searched: dict[tuple[tuple[str, ...], str], bool] = {}

    def answers(self, ops: list[Op]) -> list[Any]:
        living = InMemoryStore()
        for item in self._store.search((), limit=LIMIT):
            living.put(item.namespace, item.key, item.value)
        names = [living.batch([op])[0] for op in ops if isinstance(op, ListNamespacesOp)]
        listed = iter(names)
        answers = self._store.batch(ops)
        return [
            next(listed) if isinstance(op, ListNamespacesOp) else shown(answer)
            for op, answer in zip(ops, answers, strict=True)
        ]

    def check_scores(self, ops: list[Op], answers: list[Result]) -> None:
        for op, answer in zip(ops, answers, strict=True):
            if isinstance(op, SearchOp) and isinstance(answer, list):
                for item in answer:
                    assert isinstance(item, SearchItem)
                    searched = self._searched[(item.namespace, item.key)]
                    assert (item.score is not None) == (op.query is not None and searched)
        for op in ops:
            if isinstance(op, PutOp) and op.value is not None:
                texts = [text for field in op.index or () for text in text_at(op.value, field)]
                searched = op.index is None or any(text.strip() for text in texts)
                self._searched[(op.namespace, op.key)] = searched


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    history=st.lists(batches, min_size=2, max_size=5),
    wanted=st.lists(filters, min_size=3, max_size=6),
    awaiting=st.booleans(),
)
def test_a_history_has_the_same_answers_on_both_stores(
    endpoint: str, history: list[list[Op]], wanted: list[dict[str, Any] | None], awaiting: bool
) -> None:
    reference = Reference()
    # In the end all is looked at that the history has left.
    places = {(op.namespace, op.key) for ops in history for op in ops if isinstance(op, PutOp)}
    last: list[Op] = [GetOp(*place) for place in sorted(places)]
    last += [SearchOp((), each, LIMIT) for each in (None, *wanted)]
    last += [SearchOp((), None, LIMIT, 0, "red"), ListNamespacesOp(limit=LIMIT)]
    with RecollectStore(endpoint, root=f"app:t{uuid.uuid4().hex}") as store:

        async def live() -> None:
            for ops in (*history, last):
                right = reference.answers(ops)
                answers = await store.abatch(ops) if awaiting else store.batch(ops)
                assert [shown(answer) for answer in answers] == right
                reference.check_scores(ops, answers)
            await store.aclose()

        asyncio.run(live())


EVERY_SCALAR = (None, True, False, 0, 1, 5, -1, 2**62, 10**17, -0.0, 1.5, 5.0, 1e300, "", "red")
EVERY_THING: tuple[Any, ...] = (
    *EVERY_SCALAR,
    "5",
    "nan",
    "true",
    "long " * 50,
    'quo"te',
    [],
    [1],
    {},
    {"n": 1},
)
NUMBERS = (0, 1, 5, -1, 2**62, True, -0.0, 1.5, 1e300, "5", " 7.5 ", "-1", "inf", "1e400")


@pytest.fixture(scope="module")
def filled(endpoint: str) -> Iterator[tuple[InMemoryStore, RecollectStore]]:
    """Both stores with items of all kinds, one of them with more fields than can be mirrored."""
    items: list[dict[str, Any]] = [{"s": thing, "number": 1} for thing in EVERY_THING]
    items += [{"t": thing, "x.y": thing, 'q"': thing, "number": 0} for thing in EVERY_THING]
    items += [{"number": number} for number in NUMBERS]
    items.append({"s": "red", "number": 5} | {f"f{place}": place for place in range(80)})
    memory = InMemoryStore()
    with RecollectStore(endpoint, root=f"app:t{uuid.uuid4().hex}") as store:
        for place, item in enumerate(items):
            memory.put(("all",), str(place), item)
            store.put(("all",), str(place), item)
        yield memory, store


@settings(max_examples=200, deadline=None)
@given(wanted=filters)
def test_a_filter_keeps_the_same_items_on_both_stores(
    filled: tuple[InMemoryStore, RecollectStore], wanted: dict[str, Any] | None
) -> None:
    memory, store = filled
    kept = [item.key for item in store.search((), filter=wanted, limit=LIMIT)]
    right = [item.key for item in memory.search((), filter=wanted, limit=LIMIT)]
    assert sorted(kept) == sorted(right)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    ops=st.lists(puts, max_size=12),
    wanted=filters,
    query=st.sampled_from((None, "red")),
    size=st.integers(1, 4),
)
def test_pages_put_together_are_the_whole_answer(
    endpoint: str, ops: list[PutOp], wanted: dict[str, Any] | None, query: str | None, size: int
) -> None:
    with RecollectStore(endpoint, root=f"app:t{uuid.uuid4().hex}") as store:
        store.batch(ops)

        def page(limit: int, offset: int) -> list[tuple[tuple[str, ...], str]]:
            found = store.search((), query=query, filter=wanted, limit=limit, offset=offset)
            return [(item.namespace, item.key) for item in found]

        whole = page(LIMIT, 0)
        paged = [item for start in range(0, len(whole) + 1, size) for item in page(size, start)]
        assert paged == whole
        assert len(set(whole)) == len(whole)
