"""Searching some collections: filters before the best, one ranking over all that were named."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from recollect.orchestrator.storage import migrations
from recollect.protocol import errors
from recollect.protocol import operations as ops
from recollect.protocol.collection_names import COLLECTIONS
from tests.harness.somebody import somebody
from tests.harness.worlds import World

WAYS = (ops.SearchMemory, ops.SemanticSearch, ops.Recall)


def found(world: World, way: Any, query: str, **given: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = world(way(query, **given))["results"]
    return results


def ids(results: list[dict[str, Any]]) -> list[str]:
    return [result["id"] for result in results]


def furnish(world: World, plain: int = 400) -> dict[str, list[str]]:
    """A few of each of some collections among many plain memories that fit a search better."""
    seen = [{"content": f"the tall lighthouse, seen {n} times"} for n in range(plain)]
    made = {"memories": world(ops.BatchAddMemories(seen))["memory_ids"]}
    made["knowledge"] = [
        world(ops.StoreKnowledge(f"Lighthouse {n}", "It stands on a rock by the sea."))["memory_id"]
        for n in range(4)
    ]
    made["incidents"] = [
        world(ops.StoreIncident(f"The lamp of lighthouse {n} broke"))["memory_id"] for n in range(3)
    ]
    made["decisions"] = [
        world(ops.LogDecision(f"Which lamp for lighthouse {n}?", ["oil", "gas"], "oil"))[
            "decision_id"
        ]
        for n in range(3)
    ]
    return made


def test_a_rare_collection_gets_its_results_among_many_better_ones(world: World) -> None:
    made = furnish(world)
    for way in WAYS:
        check_rare(world, way, made)


def check_rare(world: World, way: Any, made: dict[str, list[str]]) -> None:
    query = "the tall lighthouse"
    for names in (["knowledge"], ["incidents"], ["knowledge", "decisions", "knowledge"]):
        results = found(world, way, query, collections=names)
        expected = {memory_id for name in set(names) for memory_id in made[name]}
        assert set(ids(results)) <= expected
        whole = found(world, way, query, collections=names, **{limit_of(way): 50})
        # Recall shows only the best of those that say the same.
        shown = set(ids(whole)) | {other for result in whole for other in result.get("also", ())}
        assert shown == expected
    both = found(world, way, query, collections=["memories", "incidents"], **{limit_of(way): 500})
    assert {result["collection"] for result in both} == {"memories", "incidents"}
    everything = found(world, way, query, **{limit_of(way): 500})
    assert {result["collection"] for result in everything} == made.keys()


def limit_of(way: Any) -> str:
    return "limit" if way is ops.SearchMemory else "k"


def test_one_search_ranks_all_collections_by_the_scores_that_each_has_alone(world: World) -> None:
    made = furnish(world)
    query = "a lamp for the lighthouse"
    names = list(made)
    alone = {
        result["id"]: result["score"]
        for name in names
        for result in found(world, ops.SemanticSearch, query, k=1000, collections=[name])
    }
    assert len(alone) == sum(map(len, made.values()))
    for asked in (names, names[1:], None):
        together = found(world, ops.SemanticSearch, query, k=1000, collections=asked)
        scores = [result["score"] for result in together]
        assert scores == sorted(scores, reverse=True)
        assert {result["id"]: result["score"] for result in together} == pytest.approx(
            {memory_id: alone[memory_id] for name in asked or names for memory_id in made[name]},
            abs=1e-6,
        )


def test_pages_of_some_collections_fit_together(world: World) -> None:
    furnish(world, plain=30)
    for way in WAYS:
        check_pages(world, way)


def check_pages(world: World, way: Any) -> None:
    asked: dict[str, Any] = {"collections": ["knowledge", "incidents", "decisions"]}
    if way is ops.Recall:
        asked["collapse"] = False
    whole = ids(found(world, way, "lighthouse", **asked, **{limit_of(way): 50}))
    assert len(whole) == 10
    seen: list[str] = []
    cursor = None
    for _ in range(4):
        page = world(way("lighthouse", **asked, cursor=cursor, **{limit_of(way): 3}))
        seen += ids(page["results"])
        cursor = page["cursor"]
    assert (seen, cursor) == (whole, None)
    first = world(way("lighthouse", **asked, **{limit_of(way): 3}))
    with pytest.raises(errors.InvalidArgument, match="cursor"):
        world(way("lighthouse", collections=["knowledge"], cursor=first["cursor"]))


def test_the_past_of_a_collection_is_searched(world: World) -> None:
    title = "Opening hours of the lighthouse"
    world(ops.AddMemory("The lighthouse opens at nine"))
    memory_id = world(ops.StoreKnowledge(title, "It opens at nine"))["memory_id"]
    world.clock.advance(60)
    then = world.clock.now_us() / 1_000_000
    world.clock.advance(60)
    world(ops.StoreKnowledge(title, "It opens at ten"))
    for way in WAYS:
        [was] = found(world, way, "lighthouse opens", collections=["knowledge"], as_of=then)
        assert (was["id"], was["content"]) == (memory_id, f"{title}\nIt opens at nine")
        [now] = found(world, way, "lighthouse opens", collections=["knowledge"])
        assert now["content"] == f"{title}\nIt opens at ten"
        assert found(world, way, "lighthouse", collections=["incidents"], as_of=then) == []


def test_collections_go_with_filters_and_namespaces(world: World) -> None:
    mine = world(ops.StoreIncident("The lamp broke", severity="low", namespace="user:a:b"))
    world(ops.StoreIncident("The lamp broke", namespace="user:c"))
    world(ops.StoreIncident("The lamp broke", namespace="user:a", importance=0.1))
    world(ops.AddMemory("The lamp broke", namespace="user:a", importance=0.9))
    given = {"collections": ["incidents"], "filters": {"importance": {"gte": 0.3}}}
    reader = somebody("reader", read=("user:a:b",))
    for way in WAYS:
        assert ids(found(world, way, "lamp", namespace="user:a", **given)) == [mine["memory_id"]]
        results = world(way("lamp", collections=["incidents", "memories"]), reader)["results"]
        assert ids(results) == [mine["memory_id"]]


def test_collections_must_be_some_that_are_known(world: World) -> None:
    for way, names in itertools.product(WAYS, (["decisons"], ["memories", ""], [])):
        with pytest.raises(errors.InvalidArgument) as refused:
            world(way("lighthouse", collections=names))
        assert refused.value.details["field"] == "collections"
        assert all(name in str(refused.value) for name in COLLECTIONS)


def test_chunks_of_documents_are_a_collection_also_those_from_before_there_were_any(
    world: World,
) -> None:
    world(ops.AddMemory("The harbour is closed in winter."))
    added = world(ops.IndexDocument(text="# Harbour\n\nThe harbour freezes in January."))
    results = found(world, ops.SemanticSearch, "harbour", collections=["documents"])
    assert len(results) == added["added"] == 1
    assert results[0]["collection"] == "documents"
    searched = world(ops.SearchDocuments("harbour"))["results"]
    assert ids(searched) == ids(results)
    # As they were stored before, and as the migration finds them.
    kind = "sqlite" if world.storage.inline_reads else "postgres"
    [sql] = [
        sql for number, _, sql in migrations.available(migrations.FOLDER / kind) if number == 4
    ]
    [moving] = [one for one in migrations.statements(sql) if one.startswith("UPDATE memories")]
    world.run(execute(world, "UPDATE memories SET collection = 'memories'"))
    world.run(execute(world, moving))
    assert ids(found(world, ops.Recall, "harbour", collections=["documents"])) == ids(results)
    [plain] = found(world, ops.SemanticSearch, "harbour", collections=["memories"])
    assert plain["content"] == "The harbour is closed in winter."


async def execute(world: World, sql: str) -> None:
    await world.storage.write(lambda transaction: transaction.execute(sql))
