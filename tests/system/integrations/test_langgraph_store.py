"""The store of LangGraph, as a graph and its users meet it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    PutOp,
    SearchOp,
    TTLConfig,
)

from recollect import MemoryClient
from recollect.integrations.langgraph import RecollectStore
from recollect.protocol.errors import ClientClosed, InvalidArgument, LimitExceeded

USER = ("users", "ann")


def fresh_root() -> str:
    return f"app:t{uuid.uuid4().hex}"


@pytest.fixture
def store(endpoint: str) -> Iterator[RecollectStore]:
    with RecollectStore(endpoint, root=fresh_root()) as store:
        yield store


class HandClock:
    """Seconds since 1970 that go on when told to."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def keys(found: list[Any]) -> list[str]:
    return [item.key for item in found]


def test_a_graph_remembers_from_one_thread_to_the_next(store: RecollectStore) -> None:
    class State(TypedDict):
        said: str
        known: list[str]

    def remember(state: State, *, store: BaseStore) -> dict[str, Any]:
        known = [item.value["text"] for item in store.search(USER)]
        store.put(USER, state["said"][:10], {"text": state["said"]})
        return {"known": known}

    builder = StateGraph(State)
    builder.add_node("remember", remember)
    builder.add_edge(START, "remember")
    builder.add_edge("remember", END)
    graph = builder.compile(store=store)
    assert graph.invoke({"said": "I live in Oslo", "known": []})["known"] == []
    assert graph.invoke({"said": "I like tea", "known": []})["known"] == ["I live in Oslo"]
    again = asyncio.run(graph.ainvoke({"said": "Hello", "known": []}))
    assert again["known"] == ["I like tea", "I live in Oslo"]


def test_an_item_is_found_by_what_it_means_and_says_how_near_it_is(store: RecollectStore) -> None:
    store.put(USER, "drink", {"text": "Ann drinks green tea"})
    store.put(USER, "sport", {"text": "Ann plays football"})
    store.put(("users", "bob"), "drink", {"text": "Bob drinks green tea"})
    found = store.search(USER, query="green tea drinks")
    assert keys(found) == ["drink", "sport"]
    assert found[0].score is not None and found[1].score is not None
    assert found[0].score > found[1].score


def test_only_the_fields_that_are_indexed_are_searched(endpoint: str) -> None:
    with RecollectStore(endpoint, root=fresh_root(), index={"fields": ["title"]}) as store:
        store.put(USER, "by default", {"title": "green tea", "text": "football"})
        store.put(USER, "by choice", {"title": "nothing", "text": "green tea"}, index=["text"])
        store.put(USER, "other", {"title": "chess", "text": "green tea"})
        store.put(USER, "absent", {"text": "green tea"})
        scores = {item.key: item.score for item in store.search(USER, query="green tea")}
        assert scores["by default"] == pytest.approx(1.0, abs=0.01)
        assert scores["by choice"] == pytest.approx(1.0, abs=0.01)
        assert scores["other"] is not None and scores["other"] < 0.5
        assert scores["absent"] is None


def test_what_is_not_indexed_comes_last_and_has_no_score(store: RecollectStore) -> None:
    store.put(USER, "hidden", {"text": "green tea"}, index=False)
    store.put(USER, "other", {"text": "football"})
    found = store.search(USER, query="green tea")
    assert keys(found) == ["other", "hidden"]
    assert found[1].score is None
    assert keys(store.search(USER, query="green tea", limit=1)) == ["other"]
    assert keys(store.search(USER, query="green tea", limit=1, offset=1)) == ["hidden"]
    # A later put makes it searchable, and the other way round.
    store.put(USER, "hidden", {"text": "green tea"})
    store.put(USER, "other", {"text": "green tea"}, index=False)
    assert keys(store.search(USER, query="green tea")) == ["hidden", "other"]


def test_a_filter_holds_before_the_nearest_are_chosen(store: RecollectStore) -> None:
    for number in range(150):
        store.put(USER, f"near {number}", {"text": "green tea", "kind": "near"})
    store.put(USER, "far", {"text": "football", "kind": "far", "size": 7})
    assert keys(store.search(USER, query="green tea", filter={"kind": "far"}, limit=1)) == ["far"]
    assert keys(store.search(USER, query="tea", filter={"size": {"$gt": 3}}, limit=1)) == ["far"]
    assert keys(store.search(USER, filter={"kind": {"$ne": "near"}})) == ["far"]


def test_more_than_a_page_is_gone_through(store: RecollectStore) -> None:
    async def put_all() -> None:
        ops = [PutOp(USER, f"k{n}", {"n": n, "deep": {"even": n % 2 == 0}}) for n in range(230)]
        await store.abatch(ops)
        await store.aclose()

    asyncio.run(put_all())
    with RecollectStore(store._clients._endpoint, root=store._items.root) as again:
        everything = keys(again.search((), limit=1000))
        assert sorted(everything) == sorted(f"k{n}" for n in range(230))
        # Only this side can look into it, so each page is thinned out.
        even = again.search(USER, filter={"deep": {"even": True}}, limit=90, offset=20)
        assert len({item.key for item in even}) == 90
        assert all(item.value["deep"]["even"] for item in even)
        assert len(again.search(USER, query="n", limit=220)) == 220


def test_the_newest_item_comes_first_and_a_new_value_keeps_its_place(store: RecollectStore) -> None:
    for key in ("one", "two", "three"):
        store.put(USER, key, {"v": 1})
    before = store.get(USER, "one")
    store.put(USER, "one", {"v": 2})
    after = store.get(USER, "one")
    assert before is not None and after is not None
    assert keys(store.search(USER)) == ["three", "two", "one"]
    assert after.value == {"v": 2}
    assert after.created_at == before.created_at
    assert after.updated_at > before.updated_at
    assert after.created_at.tzinfo is not None


def test_what_is_deleted_is_gone_and_deleting_nothing_is_no_error(store: RecollectStore) -> None:
    store.put(USER, "k", {"v": 1})
    store.delete(USER, "k")
    store.delete(USER, "k")
    assert store.get(USER, "k") is None
    assert store.search(USER) == []
    assert store.list_namespaces() == []


def test_the_reads_of_a_batch_see_what_was_before_its_puts(store: RecollectStore) -> None:
    store.put(USER, "k", {"v": 1})
    results = store.batch(
        [
            PutOp(USER, "k", {"v": 2}),
            GetOp(USER, "k"),
            PutOp(USER, "k", {"v": 3}),
            SearchOp(("users",)),
            PutOp(("users", "bob"), "k", {"v": 4}),
            ListNamespacesOp(),
        ]
    )
    assert results[0] is results[2] is results[4] is None
    assert isinstance(results[1], Item) and results[1].value == {"v": 1}
    assert isinstance(results[3], list) and len(results[3]) == 1
    assert results[5] == [USER]
    last = store.get(USER, "k")
    assert last is not None and last.value == {"v": 3}
    with MemoryClient(store._clients._endpoint) as client:
        [memory] = client.list_memories(namespace=f"{store._items.root}:users:ann")["memories"]
    assert memory["version"] == 2, "of two puts of a key, only the last is carried out"


def test_an_unknown_operation_is_refused(store: RecollectStore) -> None:
    with pytest.raises(ValueError, match="Unknown operation"):
        store.batch(["get"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"Unsupported operator: \$near"):
        store.search(USER, filter={"a": {"b": {"$near": 1}}})


def test_labels_that_langgraph_forbids_are_refused(store: RecollectStore) -> None:
    for labels in ((), ("a.b",), ("",), ("langgraph", "x")):
        with pytest.raises(InvalidNamespaceError):
            store.put(labels, "k", {"v": 1})


def test_what_recollect_cannot_hold_says_what_to_do(store: RecollectStore) -> None:
    with pytest.raises(InvalidArgument, match="when"):
        store.put(USER, "k", {"when": object()})
    with pytest.raises(LimitExceeded, match="key_chars_max"):
        store.put(USER, "k" * 600, {"v": 1})
    with pytest.raises(LimitExceeded, match="namespace_chars_max"):
        store.put(("n" * 300,), "k", {"v": 1})
    with pytest.raises(InvalidArgument, match="embed"):
        RecollectStore(index={"dims": 3, "embed": lambda texts: [[0.0]] * len(texts)})


def test_an_item_ends_with_its_time_and_a_read_lets_it_live_on(endpoint: str) -> None:
    # The orchestrator has the time of this machine; an hour of each lifetime is gone already.
    clock = HandClock(time.time() - 3600)
    config: TTLConfig = {"default_ttl": 90.0, "refresh_on_read": True}
    with RecollectStore(endpoint, root=fresh_root(), ttl=config, clock=clock) as store:
        store.put(USER, "read", {"v": 1})
        store.put(USER, "unread", {"v": 1})
        store.put(USER, "searched", {"v": 1, "s": True})
        store.put(USER, "gone", {"v": 1}, ttl=30)
        store.put(USER, "for good", {"v": 1}, ttl=None)
        assert store.get(USER, "gone") is None
        assert sorted(keys(store.search(USER, refresh_ttl=False))) == [
            "for good",
            "read",
            "searched",
            "unread",
        ]
        ends = ends_of(endpoint, store)
        clock.now_s += 1800
        before = store.get(USER, "read")
        store.get(USER, "unread", refresh_ttl=False)
        store.search(USER, filter={"s": True})
        later = ends_of(endpoint, store)
        assert later["read"] > ends["read"] and later["searched"] > ends["searched"]
        assert later["unread"] == ends["unread"]
        assert later["for good"] == ends["for good"] == ""
        after = store.get(USER, "read")
        assert before is not None and after is not None
        assert after.updated_at == before.updated_at, "a read is no change of the item"
        # Hardly any of its time is gone, so nothing is written.
        assert ends_of(endpoint, store) == later
        store.put(USER, "read", {"v": 2}, ttl=None)
        assert ends_of(endpoint, store)["read"] == ""


def ends_of(endpoint: str, store: RecollectStore) -> dict[str, str]:
    """When each item ends."""
    with MemoryClient(endpoint) as client:
        page = client.list_memories(namespace=store._items.root)
    return {str(found["key"]): found["expires_at"] or "" for found in page["memories"]}


def test_two_stores_share_what_they_know(endpoint: str) -> None:
    root = fresh_root()
    with RecollectStore(endpoint, root=root) as one, RecollectStore(endpoint, root=root) as other:
        one.put(USER, "k", {"v": 1})
        found = other.get(USER, "k")
        assert found is not None and found.value == {"v": 1}
    with RecollectStore(endpoint, root=fresh_root()) as stranger:
        assert stranger.get(USER, "k") is None


def test_memories_that_are_no_items_are_not_shown(store: RecollectStore, endpoint: str) -> None:
    with MemoryClient(endpoint) as client:
        client.put(f"{store._items.root}:users:ann", "note", "just a note")
        client.add_memory("a memory without a key", namespace=f"{store._items.root}:users:ann")
    assert store.get(USER, "note") is None
    assert store.search(USER) == store.search(USER, query="note") == []


def test_one_store_serves_one_loop_after_another_and_ends_closed(endpoint: str) -> None:
    store = RecollectStore(endpoint, root=fresh_root())

    async def use(number: int) -> int:
        await asyncio.gather(*(store.aput(USER, f"{number}-{n}", {"n": n}) for n in range(20)))
        return len(await store.asearch(USER, limit=100))

    assert asyncio.run(use(1)) == 20
    assert asyncio.run(use(2)) == 40
    assert len(store._clients._awaiting) == 1, "the client of a loop that has ended is given up"
    asyncio.run(store.aclose())
    with pytest.raises(ClientClosed):
        store.get(USER, "k")
