"""Several stores in one PostgreSQL database, each in a schema of its own."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recollect.cli.postgres_checks import check_postgres
from recollect.config.settings import EmbeddingSettings, Settings
from recollect.orchestrator.relocation.places import place_of
from recollect.orchestrator.relocation.relocating import relocate
from recollect.orchestrator.storage.copies import read_manifest
from recollect.orchestrator.storage.migrations import SchemaError
from recollect.orchestrator.storage.postgres import copies
from recollect.orchestrator.storage.postgres.claims import claim_alone
from recollect.orchestrator.storage.postgres.session import PostgresWriterSession, connect
from recollect.orchestrator.storage.postgres.storage import SIZE
from recollect.orchestrator.vectors import pgvector_indexes
from recollect.protocol import operations as ops
from recollect.protocol.errors import NotFound, StorageFailed
from tests.faults.polling import wait_for
from tests.harness.postgres import bare_database
from tests.harness.worlds import World

SETTINGS = Settings(embedding=EmbeddingSettings(provider="hashed", dimensions=32))


def in_schema(url: str, name: str) -> str:
    return f"{url}&options=-csearch_path%3D{name},public"


def make_schemas(url: str, *names: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for name in names:
            connection.execute(f"CREATE SCHEMA {name}".encode())


def memories(about: str) -> list[Any]:
    return [{"content": f"{about} number {n}"} for n in range(150)]


def is_indexed(world: World) -> bool:
    return bool(world(ops.Stats())["index"]["segments"])


def test_stores_in_two_schemas_know_nothing_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector_indexes, "INDEXED_MIN", 100)
    url = bare_database()
    make_schemas(url, "cell_a", "cell_b")
    first = World(in_schema(url, "cell_a"), tmp_path / "a", SETTINGS)
    second = World(in_schema(url, "cell_b"), tmp_path / "b", SETTINGS)
    try:
        added = first(ops.BatchAddMemories(memories("apples")))["memory_ids"]
        second(ops.BatchAddMemories(memories("boats")))
        for world in (first, second):
            wait_for(partial(is_indexed, world), within_s=20, what="an index of vectors")
        # Each looks after its own index, and leaves that of the other alone.
        second.close()
        second = World(in_schema(url, "cell_b"), tmp_path / "b", SETTINGS)
        assert is_indexed(first) and is_indexed(second)
        for world, about in ((first, "apples"), (second, "boats")):
            for search in (ops.SearchMemory("number 7"), ops.SemanticSearch("apples boats", 20)):
                results = world(search)["results"]
                assert results
                assert all(result["content"].startswith(about) for result in results)
            assert world(ops.VerifyAudit())["valid"] is True
        with pytest.raises(NotFound):
            second(ops.GetMemory(added[0]))
    finally:
        first.close()
        second.close()


def test_a_store_is_copied_from_a_schema_while_its_neighbour_is_served(tmp_path: Path) -> None:
    url = bare_database()
    make_schemas(url, "cell_a", "cell_b")
    leaving = World(in_schema(url, "cell_a"), tmp_path / "a", SETTINGS)
    leaving(ops.BatchAddMemories(memories("apples")))
    leaving.close()
    staying = World(in_schema(url, "cell_b"), tmp_path / "b", SETTINGS)
    try:
        staying(ops.BatchAddMemories(memories("boats")))
        target = tmp_path / "moved"
        told = relocate(place_of(in_schema(url, "cell_a")), place_of(str(target)), lambda *_: None)
        assert told.tables["memories"].rows == 150
        assert staying(ops.SearchMemory("boats"))["results"]
    finally:
        staying.close()
    moved = World("sqlite", target, SETTINGS)
    try:
        results = moved(ops.SearchMemory("number 7"))["results"]
        assert {result["content"].split()[0] for result in results} == {"apples"}
    finally:
        moved.close()


def test_what_is_being_copied_is_not_served_and_its_neighbour_is(tmp_path: Path) -> None:
    url = bare_database()
    make_schemas(url, "cell_a", "cell_b")
    copying = PostgresWriterSession(in_schema(url, "cell_a"), claim_alone)
    try:
        with pytest.raises(StorageFailed, match="migrate-storage"):
            World(in_schema(url, "cell_a"), tmp_path / "a", SETTINGS)
        World(in_schema(url, "cell_b"), tmp_path / "b", SETTINGS).close()
    finally:
        copying.connection.close()


def test_a_schema_that_is_not_there_is_not_taken_for_another(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="CREATE SCHEMA cell_c"):
        World(in_schema(bare_database(), "cell_c"), tmp_path, SETTINGS)


def test_a_schema_is_its_own_though_a_store_lies_in_public_as_well(tmp_path: Path) -> None:
    url = bare_database()
    make_schemas(url, "cell_a")
    filled = World(url, tmp_path / "public", SETTINGS)
    filled(ops.BatchAddMemories(memories("apples")))
    made = filled(ops.Backup(str(tmp_path / "backup")))
    try:
        cell = in_schema(url, "cell_a")
        empty = bytes_of(cell)
        assert empty == 0
        told = {finding.name: finding.message for finding in check_postgres(cell)}
        assert "no tables of Recollect" in told["schema"]
        # A backup may be brought back into it, and what is then there is its own.
        copies.restore(Path(made["path"]), read_manifest(Path(made["path"])), cell, lambda _: None)
        restored = World(cell, tmp_path / "cell", SETTINGS)
        try:
            restored(ops.BatchAddMemories(memories("boats")))
            assert filled(ops.Count())["count"] == 150
            assert restored(ops.Stats())["storage"]["bytes"] == bytes_of(cell) > bytes_of(url)
        finally:
            restored.close()
    finally:
        filled.close()


def bytes_of(url: str) -> int:
    with closing(connect(url)) as connection:
        [(total,)] = connection.execute(SIZE).fetchall()
    return int(total)
