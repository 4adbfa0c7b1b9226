"""doctor, where the store is a database on a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from recollect.protocol import operations as ops
from tests.harness.ports import free_port
from tests.harness.postgres import bare_database, new_database
from tests.harness.redis import RedisServer
from tests.harness.worlds import World
from tests.system.cli.commands import CommandLine, Result

IN_DATABASE = ("database", "pgvector", "schema", "indexes", "journal", "vectors", "words", "links")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with four memories, one of them deleted, that nobody serves."""
    address = new_database()
    world = World(address, tmp_path / "world")
    for number in range(4):
        memory_id = world(ops.AddMemory(f"memory {number}"))["memory_id"]
    world(ops.DeleteMemory(memory_id))
    world.close()
    return address


def doctor(folder: Path, url: str, **env: str) -> Result:
    return CommandLine(folder)("doctor", "--json", RECOLLECT_STORAGE_URL=url, **env)


def states(answer: Result) -> dict[str, str]:
    """What is said of the database."""
    return {c["name"]: c["state"] for c in answer.json()["checks"] if c["name"] in IN_DATABASE}


def found(answer: Result, name: str) -> dict[str, str]:
    [check] = [check for check in answer.json()["checks"] if check["name"] == name]
    return check  # type: ignore[no-any-return]


def change(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def test_all_is_well(url: str, tmp_path: Path) -> None:
    answer = doctor(tmp_path, url)
    assert answer.code == 0, answer
    assert states(answer) == dict.fromkeys(IN_DATABASE, "ok")
    assert found(answer, "vectors")["message"].startswith("3 living memories")
    assert "PostgreSQL" in found(answer, "database")["message"]


@pytest.mark.parametrize(
    ("sql", "name", "state"),
    [
        ("UPDATE journal SET operation = 'nothing' WHERE seq = 2", "journal", "fail"),
        ("DELETE FROM vectors WHERE num = 1", "vectors", "fail"),
        ("UPDATE vectors SET model = 'another' WHERE num = 1", "vectors", "fail"),
        ("DELETE FROM memory_words WHERE num = 1", "words", "fail"),
        ("INSERT INTO schema_migrations VALUES (10000, 'future')", "schema", "fail"),
        ("INSERT INTO schema_migrations VALUES (0, 'sqlite:///old')", "schema", "fail"),
        ("DELETE FROM schema_migrations WHERE number > 6", "schema", "warn"),
    ],
)
def test_it_finds_what_is_wrong_and_says_what_to_do(
    url: str, tmp_path: Path, sql: str, name: str, state: str
) -> None:
    change(url, sql)
    answer = doctor(tmp_path, url)
    assert {n: s for n, s in states(answer).items() if s != "ok"} == {name: state}
    assert answer.code == (1 if state == "fail" else 0)
    advice = found(answer, name)["advice"]
    assert advice and "NEW_FOLDER" not in advice


def test_an_index_whose_building_was_broken_off_is_named(url: str, tmp_path: Path) -> None:
    # What a build leaves behind that fails when it has come to the rows.
    change(url, "CREATE TABLE twice (number INTEGER)", "INSERT INTO twice VALUES (1), (1)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        change(url, "CREATE UNIQUE INDEX CONCURRENTLY broken_off ON twice (number)")
    answer = doctor(tmp_path, url)
    assert answer.code == 1
    index = found(answer, "indexes")
    assert index["state"] == "fail" and "broken_off" in index["message"]
    assert "REINDEX INDEX broken_off" in index["advice"]
    change(url, "DELETE FROM twice", "REINDEX INDEX broken_off")
    assert doctor(tmp_path, url).code == 0


def test_many_vectors_without_an_index_are_noticed(url: str, tmp_path: Path) -> None:
    change(
        url,
        "INSERT INTO vectors (num, model, vector) SELECT 1000 + n, model, vector "
        "FROM generate_series(1, 12000) n, (SELECT model, vector FROM vectors LIMIT 1) one",
    )
    assert found(doctor(tmp_path, url), "indexes")["state"] == "warn"


def test_a_database_without_tables_and_one_without_a_server(tmp_path: Path) -> None:
    empty = doctor(tmp_path, bare_database())
    assert empty.code == 0
    assert states(empty) == {"database": "ok", "pgvector": "warn", "schema": "warn"}
    nobody = f"postgresql://somebody:secret@127.0.0.1:{free_port()}/recollect"
    away = doctor(tmp_path, nobody)
    assert (away.code, states(away)) == (1, {"database": "fail"})
    assert "secret" not in away.out + away.err


def test_it_changes_nothing(url: str, tmp_path: Path) -> None:
    written = "SELECT pg_current_wal_insert_lsn()"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        doctor(tmp_path, url)
        before = connection.execute(written).fetchone()
        doctor(tmp_path, url)
        assert connection.execute(written).fetchone() == before


def test_it_says_whether_orchestrators_would_share_what_is_in_no_database(
    url: str, tmp_path: Path
) -> None:
    assert found(doctor(tmp_path, url), "sharing")["state"] == "warn"
    with RedisServer() as redis:
        answer = doctor(tmp_path, url, RECOLLECT_REDIS_URL=redis.url)
        assert found(answer, "sharing")["state"] == "ok"
