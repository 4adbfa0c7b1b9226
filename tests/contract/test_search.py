"""Searching: filters before the best, pages, thresholds, the past, neighbours, explanations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from recollect.config.settings import EmbeddingSettings, LimitsSettings, Settings
from recollect.orchestrator.access.identities import LOCAL
from recollect.orchestrator.search.filters import Condition, namespace_condition
from recollect.orchestrator.search.scope import Scope, alive_at
from recollect.orchestrator.storage.interface import Session
from recollect.protocol.envelope import PROTOCOL_VERSION, Request
from recollect.protocol.errors import InvalidArgument, RecollectError
from recollect.protocol.operations import (
    AddMemory,
    BatchAddMemories,
    CreateSession,
    DeleteMemory,
    GetMemory,
    Purge,
    Recall,
    SearchMemory,
    SemanticSearch,
    Stats,
    UpdateMemory,
)
from tests.harness.worlds import World

WAYS = (SearchMemory, SemanticSearch, Recall)


def add(world: World, content: str, **fields: Any) -> str:
    envelope = {name: fields.pop(name) for name in ("agent", "session") if name in fields}
    answer = world(AddMemory(content, **fields), **envelope)
    memory_id: str = answer["memory_id"]
    return memory_id


def ids(answer: Any) -> list[str]:
    return [result["id"] for result in answer["results"]]


def contents(answer: Any) -> list[str]:
    return [result["content"] for result in answer["results"]]


@pytest.mark.parametrize("way", WAYS)
def test_a_rare_scope_gets_its_results_among_many_better_ones(world: World, way: Any) -> None:
    world(BatchAddMemories([{"content": "the tall lighthouse"}] * 300, namespace="user:bob"))
    mine = [
        add(world, f"a lighthouse seen from far away, number {n}", namespace="user:alice")
        for n in range(5)
    ]
    found = world(way("the tall lighthouse", namespace="user:alice"))
    assert set(ids(found)) == set(mine)
    tagged = add(world, "lighthouse keeper", metadata={"kind": {"of": "job"}}, tags=["people"])
    for filters in (
        {"metadata.kind.of": "job"},
        {"tags": {"contains": "people"}},
        {"content": {"contains": "keeper"}},
    ):
        assert ids(world(way("the tall lighthouse", filters=filters))) == [tagged]


@pytest.mark.parametrize("way", WAYS)
def test_pages_follow_each_other_without_gap_or_repetition(world: World, way: Any) -> None:
    for n in range(23):
        add(world, f"lighthouse story {'very ' * (n % 7)}long, part {n}")
    size = {"limit": 5} if way is SearchMemory else {"k": 5}
    whole = ids(world(way("lighthouse story", **{name: 23 for name in size})))
    paged: list[str] = []
    cursor = None
    for _ in range(10):
        page = world(way("lighthouse story", cursor=cursor, **size))
        paged += ids(page)
        cursor = page["cursor"]
        if cursor is None:
            break
    assert paged == whole
    assert len(set(paged)) == 23


@pytest.mark.parametrize("way", WAYS)
def test_a_threshold_leaves_out_what_scores_less(world: World, way: Any) -> None:
    add(world, "lighthouse on the cliff")
    add(world, "lighthouse and many other things that are seen along the coast in winter")
    found = world(way("lighthouse on the cliff"))["results"]
    between = (found[0]["score"] + found[1]["score"]) / 2
    assert len(world(way("lighthouse on the cliff", threshold=between))["results"]) == 1
    with pytest.raises(InvalidArgument):
        world(way("lighthouse", threshold=float("nan")))


@pytest.mark.parametrize("way", WAYS)
def test_the_past_is_searched_as_it_was(world: World, way: Any) -> None:
    changed = add(world, "Anna lives in Lisbon", metadata={"home": {"flat": 3}}, tags=["home"])
    gone = add(world, "Anna has a cat in Lisbon")
    same = add(world, "Lisbon is where Anna works")
    moment = world.clock.now_us() / 1_000_000
    world.clock.advance(60)
    world(UpdateMemory(changed, {"content": "Anna lives in Oslo"}))
    world(DeleteMemory(gone))
    later = add(world, "Anna sold her flat in Lisbon")
    now = world(way("Anna Lisbon"))
    assert gone not in ids(now)
    assert later in ids(now)
    then = world(way("Anna Lisbon", as_of=moment))
    assert set(ids(then)) == {changed, gone, same}
    assert "Anna lives in Lisbon" in contents(then)
    for filters in (
        {"id": changed},
        {"metadata.home.flat": {"gte": 3}},
        {"tags": {"contains": "home"}},
        {"content": {"contains": "lives in"}},
    ):
        assert set(ids(world(way("Anna Lisbon", as_of=moment, filters=filters)))) == {changed}
    assert set(ids(world(way("Anna Lisbon", as_of=moment + 3600)))) == set(ids(now))


@pytest.mark.parametrize("way", WAYS)
def test_an_explanation_names_the_parts_of_each_score(world: World, way: Any) -> None:
    add(world, "lighthouse on the cliff")
    [result] = world(way("lighthouse", explain=True))["results"]
    assert sum(result["explanation"].values()) == pytest.approx(result["score"])
    assert "explanation" not in world(way("lighthouse"))["results"][0]


def test_a_ready_vector_is_compared_and_one_of_another_model_refused(world: World) -> None:
    wanted = add(world, "lighthouse on the cliff")
    add(world, "completely different words")
    vector = world.orchestrator.parts.meanings.current.embedding.embed_now(["lighthouse cliff"])[0]
    packed = np.array(vector, dtype="<f4").tobytes()
    assert ids(world(SemanticSearch("ignored", 1, vector=packed))) == [wanted]
    with pytest.raises(InvalidArgument, match="no 32-bit floats"):
        world(SemanticSearch("ignored", 1, vector=packed[:-1]))
    with pytest.raises(InvalidArgument, match="not finite"):
        world(SemanticSearch("ignored", 1, vector=np.full(256, np.nan, "<f4").tobytes()))
    found = world(SemanticSearch("ignored", 1, vector=[3 * float(x) for x in vector]))
    assert ids(found) == [wanted]
    assert found["results"][0]["score"] <= 1
    with pytest.raises(InvalidArgument, match="256"):
        world(SemanticSearch("ignored", 1, vector=[1.0, 2.0]))
    with pytest.raises(InvalidArgument):
        world(SemanticSearch("ignored", 1, vector=[float("inf")] * 256))


def test_recall_collapses_what_says_the_same(world: World) -> None:
    texts = ["The deploy key lies in the vault.", "the deploy key lies in the vault"]
    twins = {add(world, text) for text in texts}
    other = add(world, "The deploy key was changed in March by Bo.")
    found = world(Recall("where is the deploy key"))["results"]
    [shown] = [result for result in found if result["id"] in twins]
    assert {shown["id"], *shown["also"]} == twins
    assert other in {result["id"] for result in found}
    apart = world(Recall("where is the deploy key", collapse=False))
    assert twins <= set(ids(apart))


def test_recall_shows_the_neighbours_of_a_hit(world: World) -> None:
    parent = add(world, "minutes of the meeting")
    sibling = add(world, "budget was agreed", parent_id=parent)
    turns = [
        add(world, text, session="s1", parent_id=parent if n == 2 else None)
        for n, text in enumerate(
            ["good morning", "what about the roof", "the zebra roof leaks", "we call Tim", "bye"]
        )
    ]
    add(world, "the zebra of another session", session="s2")
    found = world(Recall("zebra roof leaks", 1, neighbours=1))["results"]
    assert ids({"results": found}) == [turns[2]]
    near = [memory["id"] for memory in found[0]["neighbours"]]
    assert near == [parent, sibling, turns[1], turns[3]]
    assert "neighbours" not in world(Recall("zebra roof leaks", 1))["results"][0]


def test_neighbours_stay_within_the_scope_of_the_question(world: World) -> None:
    hit = add(world, "the zebra roof leaks", session="s1", namespace="user:alice")
    add(world, "a secret of Bob", session="s1", namespace="user:bob")
    found = world(Recall("zebra roof", namespace="user:alice", neighbours=3))["results"]
    assert [result["id"] for result in found] == [hit]
    assert found[0]["neighbours"] == []


def test_recall_prefers_the_memories_of_whom_the_question_names(world: World) -> None:
    bo = add(world, "I take the train to work every morning", agent="Bo")
    add(world, "I take the train to work every morning, mostly", agent="Anna")
    found = world(Recall("How does Bo get to work? By train?", explain=True))["results"]
    assert found[0]["id"] == bo
    assert found[0]["explanation"]["author"] > 0


def test_recall_with_variety_shows_something_else_second(world: World) -> None:
    for n in range(4):
        add(world, f"the lighthouse on the cliff is tall, {n}")
    other = add(world, "a lighthouse keeper bakes bread")
    plain = ids(world(Recall("the lighthouse on the cliff is tall", 2)))
    varied = ids(world(Recall("the lighthouse on the cliff is tall", 2, diversity=0.9)))
    assert other not in plain
    assert other in varied


ODD_QUERIES = (
    '"', '""', "'", "AND", "NOT OR NEAR(", "a*", "col:umn", "(((", "🦊", "\x00", "月が綺麗", "-",
    "^start", "foo_bar.baz()", "a & !b | (c", "it's:*", "x <-> y", "\\", "%s ? $1", "x" * 9_000,
    "words " * 1_600,
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_no_query_is_an_error(world: World, way: Any) -> None:
    add(world, "plain text")
    for query in ODD_QUERIES:
        try:
            answer = world(way(query))
        except RecollectError as error:
            assert error.code == "invalid_argument"
            assert "\x00" in query
        else:
            assert answer["status"] == "success"


@pytest.mark.parametrize("variety", [0.0, 0.5])
def test_a_long_walk_through_recall_repeats_nothing(world: World, variety: float) -> None:
    words = ["coffee", "winter", "garden", "river", "stone", "light", "paper", "harbour"]
    items = [
        {"content": f"{words[n % 8]} {words[n % 5]} {words[n % 3]} note {n} in the garden"}
        for n in range(400)
    ]
    world(BatchAddMemories(items))
    seen: list[str] = []
    cursor = None
    for _ in range(100):
        page = world(Recall("coffee in the winter garden", 10, diversity=variety, cursor=cursor))
        seen += [result["id"] for result in page["results"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert cursor is None
    assert len(seen) == len(set(seen)) >= 100


def test_a_filter_on_what_reads_change_sees_the_latest_reads(world: World) -> None:
    memory_id = add(world, "lighthouse on the cliff")
    often = {"access_count": {"gte": 3}}
    for way in WAYS:
        assert ids(world(way("lighthouse", filters=often))) == []
    for _ in range(4):
        world(GetMemory(memory_id))
    world.run(world.orchestrator.parts.accesses.flush())
    for way in WAYS:
        assert ids(world(way("lighthouse", filters=often))) == [memory_id]


def test_the_past_of_many_changed_memories_is_found_by_words(world: World) -> None:
    made = world(BatchAddMemories([{"content": f"token{'x' * n}"} for n in range(1, 40)]))
    several = world(BatchAddMemories([{"content": f"plain {n}"} for n in range(600)]))
    moment = world.clock.now_us() / 1_000_000
    world.clock.advance(60)
    for memory_id in [*several["memory_ids"], *made["memory_ids"]]:
        world(UpdateMemory(memory_id, {"content": "something else"}))
    wanted = made["memory_ids"][4]
    assert ids(world(Recall("tokenxxxxx", 1, as_of=moment))) == [wanted]


def test_a_changed_caption_is_found_by_meaning_at_once(world: World) -> None:
    memory_id = add(world, "look at this", metadata={"caption": "a dog on a beach"})
    world(UpdateMemory(memory_id, {"metadata_patch": {"caption": "a violin in a case"}}))
    assert world(Stats())["embedding"]["waiting"] == 0
    [found] = world(SemanticSearch("a violin in a case", 1))["results"]
    assert found["score"] > 0.6


@pytest.mark.parametrize("way", WAYS)
def test_only_the_fields_that_were_asked_for_are_shown(world: World, way: Any) -> None:
    first = add(world, "The tall lighthouse", metadata={"built": 1890}, tags=["coast"])
    add(world, "Another lighthouse")
    for _ in range(2):  # from the storage, and from what is at hand
        found = world(way("the tall lighthouse", fields=["content", "metadata"]))
        assert {frozenset(result) for result in found["results"]} == {
            frozenset({"id", "content", "metadata", "score"})
        }
        assert found["results"][0]["id"] == first
        assert found["results"][0]["metadata"] == {"built": 1890}
    best = world(way("the tall lighthouse", fields=["strength", "fades_at"]))["results"][0]
    assert set(best) == {"id", "strength", "fades_at", "score"}
    assert 0 < best["strength"] <= 1
    best = world(way("the tall lighthouse", fields=[], explain=True))["results"][0]
    assert set(best) == {"id", "score", "explanation"}
    assert world(way("the tall lighthouse"))["results"][0]["tags"] == ["coast"]


@pytest.mark.parametrize("way", WAYS)
def test_a_field_that_no_memory_has_is_refused_by_name(world: World, way: Any) -> None:
    with pytest.raises(InvalidArgument, match="no field 'colour'") as refused:
        world(way("lighthouse", fields=["content", "colour"]))
    assert refused.value.details["field"] == "fields"
    with pytest.raises(InvalidArgument, match="a memory has"):
        world(way("lighthouse", fields=["content"] * 1_000))


@pytest.mark.parametrize("way", WAYS)
def test_a_page_may_show_other_fields_than_the_one_before(world: World, way: Any) -> None:
    mine = {add(world, f"lighthouse number {n}") for n in range(3)}
    two = {"limit" if way is SearchMemory else "k": 2}
    first = world(way("lighthouse", fields=["content"], **two))
    second = world(way("lighthouse", cursor=first["cursor"], **two))
    assert {*ids(first), *ids(second)} == mine


def test_neighbours_are_whole_whatever_is_shown_of_what_was_found(world: World) -> None:
    session = world(CreateSession("anna"))["session_id"]
    for text in ("We met at the lighthouse", "It rained", "We went home"):
        add(world, text, session=session)
    found = world(Recall("lighthouse", 1, neighbours=1, fields=["content"]))
    [near] = found["results"][0]["neighbours"]
    assert near["content"] == "It rained"
    assert near["session_id"] == session


def answered_at_once(world: World, operation: Any) -> bool:
    """Whether the event loop found the answer itself, while everybody else waited."""

    async def dispatched() -> bool:
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        body = msgspec.msgpack.encode(operation)
        request = Request(v=PROTOCOL_VERSION, id=1, op=operation.spec.name, body=body)
        world.orchestrator.dispatcher.dispatch(
            msgspec.msgpack.encode(request), answered.set_result, LOCAL
        )
        at_once = answered.done()
        await answered
        return at_once

    return world.run(dispatched())


def test_only_small_pages_near_the_beginning_hold_up_the_event_loop(world: World) -> None:
    contents = [f"Note {n} about the sea" for n in range(200)]
    world(BatchAddMemories([{"content": content} for content in contents]))
    for _ in range(3):
        at_once = answered_at_once(world, SemanticSearch("the sea", 5))
    assert at_once is world.storage.inline_reads
    assert not answered_at_once(world, SemanticSearch("the sea", 150))
    first = world(SemanticSearch("the sea", 100))
    then = SemanticSearch("the sea", 100, cursor=first["cursor"])
    assert not answered_at_once(world, then)
    second = world(then)
    assert sorted(m["content"] for m in first["results"] + second["results"]) == sorted(contents)


def test_what_the_index_does_not_know_to_be_archived_is_not_shown(world: World) -> None:
    gone = add(world, "A note about the sea")
    kept = add(world, "A note about the lake")

    async def archive() -> None:
        # As it is for a moment after every commit that archives.
        await world.storage.write(
            lambda transaction: transaction.execute(
                "UPDATE memories SET archived_us = 1 WHERE id = ?", (gone,)
            )
        )

    world.run(archive())
    assert ids(world(SemanticSearch("the sea", 100))) == [kept]
    assert ids(world(SemanticSearch("the sea", 5))) == [kept]


def test_who_has_written_anywhere_is_known_at_every_moment(world: World) -> None:
    def meant(name: str) -> bool:
        results = world(Recall(f"What did {name} say about the sea?", explain=True))["results"]
        return any("author" in result["explanation"] for result in results)

    add(world, "The sea is calm", agent="Anna")
    assert meant("Anna")
    assert not meant("Bertram")
    once = add(world, "The sea is rough", agent="Bertram", namespace="user:b")
    assert meant("Bertram")
    world(Purge(once))
    assert not meant("Bertram")
    add(world, "The sea is rough again", agent="Bertram", namespace="user:c")
    assert meant("Bertram")


def test_the_authors_of_all_namespaces_are_gone_through_once(tmp_path: Path) -> None:
    world = World("sqlite", tmp_path / "data")

    async def fill() -> None:
        await world.storage.write(
            lambda transaction: transaction.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "
                "INSERT INTO authors (namespace, author) SELECT 'user:' || i, 'Anna' FROM n"
            )
        )

    async def took_s() -> float:
        def read(session: Session) -> float:
            began_s = time.thread_time()
            assert list(world.orchestrator.parts.authors.within(session, None)) == ["Anna"]
            return time.thread_time() - began_s

        return await world.storage.read(read)

    world.run(fill())
    first_s = world.run(took_s())
    assert world.run(took_s()) < first_s / 10
    world.close()


def test_recall_is_walked_through_where_a_page_may_be_smaller_than_what_is_ranked(
    storage_url: str, tmp_path: Path
) -> None:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), limits=LimitsSettings(page_items_max=20)
    )
    world = World(storage_url, tmp_path / "data", settings)
    for n in range(30):
        add(world, f"note {n} about the garden")
    first = world(Recall("the garden", 20))
    second = world(Recall("the garden", 20, cursor=first["cursor"]))
    assert len({*ids(first), *ids(second)}) == 30
    world.close()


class Counting:
    """A session that counts what it is asked about."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.params = 0

    def execute(self, sql: str, params: Sequence[Any] = ()) -> Any:
        self.params += len(params)
        return self._session.execute(sql, params)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def test_a_moment_before_most_of_the_store_is_not_looked_for_among_all_of_it(
    tmp_path: Path,
) -> None:
    world = World("sqlite", tmp_path / "data")
    early = [add(world, f"early note {n} about the sea", namespace="user:a") for n in range(8)]
    moment_us = world.clock.now_us()
    world.clock.advance(60)
    for start in range(0, 6_000, 2_000):
        notes = [{"content": f"note {n} about the sea"} for n in range(start, start + 2_000)]
        world(BatchAddMemories(notes, namespace="user:a"))
    parts = world.orchestrator.parts
    meaning = parts.meanings.current
    vector = meaning.embedding.embed_now(["note about the sea"], "query")[0]

    async def looked_at(narrow: Condition | None) -> tuple[int, int]:
        def read(session: Session) -> tuple[int, int]:
            counting: Any = Counting(session)
            scope = Scope(alive_at(moment_us), narrow, narrow, narrow)
            settled = parts.past.settled(counting, scope, moment_us)
            hits = parts.nearest.find(counting, meaning.index, vector, 20, settled)
            return len(hits), counting.params

        return await world.storage.read(read)

    for narrow in (None, namespace_condition("user:a")):
        found, asked = world.run(looked_at(narrow))
        assert found == len(early)
        assert asked < 1_000
    for way in (SemanticSearch, Recall):
        then = world(way("note about the sea", 20, as_of=moment_us / 1_000_000))
        assert sorted(ids(then)) == sorted(early)
    world.close()
