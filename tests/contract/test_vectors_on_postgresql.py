"""The index of vectors in PostgreSQL: used where there are many, right wherever it is used."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from recollect.config.settings import EmbeddingSettings, Settings
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.search import nearest_stored
from recollect.orchestrator.search.vectors import pgvector
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.interface import Params, Row, Session
from recollect.orchestrator.storage.migrations import SchemaError
from recollect.orchestrator.storage.postgres.schema import apply_migrations
from recollect.orchestrator.storage.postgres.session import PostgresWriterSession
from recollect.orchestrator.storage.postgres.values import adapt
from recollect.orchestrator.vectors import pgvector_indexes
from recollect.protocol import operations as ops
from tests.faults.polling import wait_for
from tests.harness.postgres import bare_database, new_database
from tests.harness.worlds import World

DIMENSIONS = 32
COUNT = 2_500
WORDS = [f"{a}{b}" for a in ("amber", "birch", "cloud", "delta", "ember") for b in range(60)]


def text(n: int) -> str:
    return " ".join(WORDS[(n * factor + n // 7) % len(WORDS)] for factor in (1, 3, 7, 11))


def memory(n: int) -> dict[str, Any]:
    return {
        "content": text(n),
        "namespace": "user:rare" if n % 250 == 0 else "user:all",
        "memory_type": ("general", "semantic")[n % 2],
        "metadata": {"n": n},
    }


def test_vectors_too_long_for_an_index_are_compared_one_by_one(tmp_path: Path) -> None:
    settings = Settings(embedding=EmbeddingSettings(provider="hashed", dimensions=4_096))
    world = World(new_database(), tmp_path, settings)
    try:
        world(ops.BatchAddMemories([{"content": text(n)} for n in range(5)]))
        assert world(ops.Stats())["index"]["segments"] == []
        [found] = world(ops.SemanticSearch(text(3), 1))["results"]
        assert found["content"] == text(3)
        assert found["score"] == pytest.approx(1.0, abs=1e-5)
    finally:
        world.close()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A store that is taken for a large one."""
    settings = Settings(embedding=EmbeddingSettings(provider="hashed", dimensions=DIMENSIONS))
    with pytest.MonkeyPatch.context() as patch:
        for module in (pgvector, nearest_stored):
            patch.setattr(module, "EXACT_MAX", 100)
        patch.setattr(pgvector_indexes, "INDEXED_MIN", 100)
        world = World(new_database(), tmp_path_factory.mktemp("many"), settings)
        for start in range(0, COUNT, 500):
            world(ops.BatchAddMemories([memory(n) for n in range(start, start + 500)]))
        # It gets its index by itself.
        wait_for(lambda: has_index(world), within_s=20, what="the vectors to get an index")
        with psycopg.connect(world.settings.storage.url, autocommit=True) as connection:
            connection.execute("ANALYZE")
        yield world
        world.close()


def has_index(world: World) -> bool:
    return bool(world(ops.Stats())["index"]["segments"])


class Watched:
    """A session that remembers what it was asked, with how the server went about it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.plans: list[str] = []

    def execute(self, sql: str, params: Params = ()) -> list[Row]:
        if "<#>" in sql:
            plan = self._session.execute(f"EXPLAIN {sql}", params)
            self.plans.append("\n".join(str(line) for (line,) in plan))
        return self._session.execute(sql, params)

    def executemany(self, sql: str, rows: Iterable[Params]) -> None:
        self._session.executemany(sql, rows)


def plans(world: World, k: int, condition: Any, *, few: bool = False) -> list[str]:
    async def read() -> list[str]:
        def look(session: Session) -> list[str]:
            watched = Watched(session)
            index = world.orchestrator.parts.meanings.current.index
            assert isinstance(index, pgvector.PgvectorIndex)
            index.seen_by(watched).find(query("amber1 birch2"), k, condition, few=few)
            return watched.plans

        return await world.storage.read(look)

    return world.run(read())


def query(asked: str) -> Any:
    return HashedEmbedder(DIMENSIONS).embed_now([asked])[0]


def nearest(asked: str, k: int, fitting: Iterable[int]) -> list[float]:
    embedder = HashedEmbedder(DIMENSIONS)
    scores = embedder.embed_now([text(n) for n in fitting]) @ embedder.embed_now([asked])[0]
    return sorted(map(float, scores), reverse=True)[:k]


def test_the_index_is_used_where_much_fits_and_left_alone_where_little_does(many: World) -> None:
    alive = ("deleted_us IS NULL AND memory_type = ?", ["general"])
    for condition in (None, alive):
        [plan] = plans(many, 10, condition)
        assert "Index Scan using hnsw_" in plan
    [plan] = plans(many, 10, alive, few=True)
    assert "hnsw_" not in plan


SCOPES: list[tuple[dict[str, Any], Any]] = [
    ({}, lambda n: True),
    ({"filters": {"memory_type": "semantic"}}, lambda n: n % 2 == 1),
    ({"namespace": "user:rare"}, lambda n: n % 250 == 0),
    ({"filters": {"metadata.n": {"gte": COUNT - 60}}}, lambda n: n >= COUNT - 60),
    ({"filters": {"metadata.n": {"lt": 400}, "memory_type": "general"}}, None),
]


@pytest.mark.parametrize("place", range(len(SCOPES)))
def test_what_is_found_among_many_is_nearest_within_any_scope(many: World, place: int) -> None:
    scope, fits = SCOPES[place]
    fits = fits or (lambda n: n < 400 and n % 2 == 0)
    fitting = [n for n in range(COUNT) if fits(n)]
    found = wanted = 0
    for n in range(0, COUNT, 97):
        results = many(ops.SemanticSearch(text(n), 10, **scope))["results"]
        assert len(results) == min(10, len(fitting))
        assert all(fits(result["metadata"]["n"]) for result in results)
        best = nearest(text(n), 10, fitting)
        found += sum(result["score"] >= best[-1] - 1e-5 for result in results)
        wanted += len(best)
    assert found >= 0.98 * wanted


def test_more_than_the_index_brings_at_once_is_found_to_the_last(many: World) -> None:
    wanted = 1_000
    found = many(ops.SemanticSearch("amber1 birch2", wanted))
    assert found["count"] == wanted
    assert len({result["id"] for result in found["results"]}) == wanted
    scores = [result["score"] for result in found["results"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("expired", [3, 60])
def test_what_has_expired_is_left_out_and_others_take_its_place(many: World, expired: int) -> None:
    near = f"amber1 birch2 cloud3 number{expired}"
    at = to_iso(many.clock.now_us() + 60_000_000)
    items: list[Any] = [{"content": near, "expires_at": at} for _ in range(expired)]
    many(ops.BatchAddMemories(items))
    assert {r["content"] for r in many(ops.SemanticSearch(near, 3))["results"]} == {near}
    many.clock.advance(61)
    found = many(ops.SemanticSearch(near, 10))
    assert found["count"] == 10
    assert near not in {result["content"] for result in found["results"]}


def test_vectors_of_an_older_schema_stay_as_they_are(tmp_path: Path) -> None:
    for path in sorted((migrations.FOLDER / "postgres").glob("000[1-6]_*.sql")):
        shutil.copy(path, tmp_path)
    session = PostgresWriterSession(bare_database())
    apply_migrations(session, tmp_path)
    random = np.random.default_rng(7)
    kept = {num: random.standard_normal(48).astype(np.float32) for num in range(1, 20)}
    kept[20] = np.array([0, -0.0, 1, -1, 2**-126, 3.4e38, 1e-30, 0.1], dtype=np.float32)
    for num, vector in kept.items():
        insert = "INSERT INTO vectors (num, model, vector, seq) VALUES (?, 'm', ?, ?)"
        session.execute(insert, (num, vector.tobytes(), num))
    session.execute("INSERT INTO vectors (num, model, vector) VALUES (21, 'm', '\\x0102')")
    apply_migrations(session, migrations.FOLDER / "postgres")
    adapt(session.connection)
    found: dict[int, bytes] = dict(session.execute("SELECT num, vector FROM vectors"))
    assert found.keys() == kept.keys()
    for num, vector in kept.items():
        assert np.frombuffer(found[num], dtype=np.float32).tolist() == vector.tolist()
    assert session.execute("SELECT num FROM unembedded") == [(21,)]
    assert session.execute("SELECT length(vector) FROM vectors WHERE num = 1") == [(4 * 48,)]
    session.connection.close()


def test_who_may_not_create_the_extension_is_told_what_to_do() -> None:
    url = bare_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS plain")
        connection.execute("CREATE ROLE plain LOGIN")
    session = PostgresWriterSession(url.replace("postgres:", "plain:", 1).replace("@", "@", 1))
    with pytest.raises(SchemaError, match="CREATE EXTENSION vector"):
        apply_migrations(session, migrations.FOLDER / "postgres")
    session.connection.close()
