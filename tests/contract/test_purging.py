"""What is purged is in no table any more, and the answers say so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.consolidation.purging import REWRITE
from recollect.orchestrator.documents.purging import FORGET_CHUNK, RETITLE
from recollect.orchestrator.memories.memory_store import ERASE, TYPED
from recollect.orchestrator.search.authors import FORGET as FORGET_AUTHOR
from recollect.orchestrator.storage.interface import Session
from recollect.protocol.errors import NotFound
from recollect.protocol.operations import (
    AddMemory,
    AddRelationship,
    Consolidate,
    DeleteMemory,
    GetByKey,
    GetMemory,
    LogDecision,
    Purge,
    Put,
    Stats,
    UpdateMemory,
)
from tests.harness.postgres import new_database
from tests.harness.worlds import World

WORD = "zkqvmarkerk"
SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
POSTGRES_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


def rows_with(world: World, word: str) -> list[str]:
    """The tables in which a word is found."""

    def read(session: Session) -> list[str]:
        sqlite = world.settings.storage.url == "sqlite"
        tables = session.execute(SQLITE_TABLES if sqlite else POSTGRES_TABLES)
        return [
            name
            for (name,) in tables
            for row in session.execute(f"SELECT * FROM {name}")
            if any(word.encode() in _bytes(value) for value in row)
        ]

    async def reading() -> list[str]:
        return await world.storage.read(read)

    return world.run(reading())


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def test_nothing_of_a_purged_memory_is_in_any_table(world: World) -> None:
    other = world(AddMemory("one that stays"))["memory_id"]
    added = world(
        AddMemory(
            f"a text with {WORD}",
            key=f"key {WORD}",
            namespace="app:a",
            metadata={"who": WORD},
            tags=[WORD],
            source=WORD,
        ),
        key="add",
    )["memory_id"]
    put = world(Put("app:a", f"other {WORD}", {"value": [WORD]}), key="put")["memory_id"]
    world(UpdateMemory(added, {"content": f"again {WORD}"}), key="update")
    world(AddRelationship(added, other, "near", 0.5))
    world(DeleteMemory(put))
    assert {"memories", "versions"} <= set(rows_with(world, WORD))
    for memory_id in (added, put):
        assert world(Purge(memory_id)) | {"seq": 0} == {
            "status": "success",
            "seq": 0,
            "purged": 1,
            "derived_ids": [],
            "wiped": True,
        }
        with pytest.raises(NotFound):
            world(GetMemory(memory_id, include_deleted=True))
    assert rows_with(world, WORD) == []
    assert world(Stats())["purges"] == {"wiped": True, "reason": None}
    world.restart()
    assert world(Stats())["purges"]["wiped"]
    assert world(GetMemory(other))["memory"]["content"] == "one that stays"


def test_a_purge_tells_what_was_made_from_it_and_may_repeat_it(world: World) -> None:
    for thing in ("lamp", "river", "guitar", "bicycle"):
        world(AddMemory(f"The {thing} was painted by somebody unknown", namespace="app:a"))
    first, second = (
        world(AddMemory(text, namespace="app:a"))["memory_id"]
        for text in (f"The {WORD} is red", f"The {WORD} is red.")
    )
    [group] = world(Consolidate("app:a", "merge"))["groups"]
    assert group["created"]
    merged = group["kept_id"]
    summaries = [
        world(AddMemory(f"{home} knows that the {WORD} is red", namespace=home))["memory_id"]
        for home in ("app:b", "app:c")
    ]
    for summary in summaries:
        world(AddRelationship(summary, merged, "derived_from"))
    world(AddRelationship(first, second, "near"))
    world(DeleteMemory(summaries[0]))
    who = Identity("who", Grants((Grant("app:a", "admin"), Grant("app:b", "read"))))
    told = world(Purge(first), who)
    assert told["derived_ids"] == [merged, summaries[0]]
    assert world(Purge(second))["derived_ids"] == [merged, *summaries]
    assert world(Purge(merged))["derived_ids"] == summaries
    for summary in summaries:
        assert world(Purge(summary))["derived_ids"] == []
    assert rows_with(world, WORD) == []


def test_of_a_tree_that_is_purged_only_what_stays_is_told(world: World) -> None:
    root = world(AddMemory("root"))["memory_id"]
    child = world(AddMemory("child", parent_id=root))["memory_id"]
    outside = world(AddMemory("outside"))["memory_id"]
    world(AddRelationship(child, root, "derived_from"))
    world(AddRelationship(outside, child, "derived_from"))
    # What leads in a circle is walked once.
    world(AddRelationship(root, outside, "derived_from"))
    assert world(Purge(root, cascade=True))["derived_ids"] == [outside]


def test_a_purge_that_is_repeated_gets_the_same_answer(world: World) -> None:
    memory_id = world(AddMemory("gone soon"))["memory_id"]
    first = world(Purge(memory_id), key="once")
    assert world(Purge(memory_id), key="once") == first
    with pytest.raises(NotFound):
        world(Purge(memory_id), key="twice")


def test_a_put_that_is_repeated_after_its_purge_stores_nothing(world: World) -> None:
    """Its answer is the same as before, although its key is kept nowhere."""
    put = Put("app:a", f"key {WORD}", "a value")
    first = world(put, key="once")
    assert first["key"] == f"key {WORD}"
    assert world(put, key="once") == first
    world(Purge(first["memory_id"]))
    assert world(put, key="once") == first
    with pytest.raises(NotFound):
        world(GetByKey("app:a", f"key {WORD}"))
    assert rows_with(world, WORD) == []


def test_an_add_that_is_repeated_is_answered_as_it_was(world: World) -> None:
    add = AddMemory("with a key", key="a key")
    first = world(add, key="once")
    assert "key" not in first
    assert world(add, key="once") == first


# Where nothing is dead any more: the server takes down when it was last asked to look.
VACUUMED = "SELECT relname FROM pg_stat_user_tables WHERE last_vacuum IS NOT NULL"


def test_the_server_is_asked_to_clean_every_table_that_a_purge_takes_rows_from(
    tmp_path: Path,
) -> None:
    world = World(new_database(), tmp_path / "data")
    try:
        decision = world(LogDecision("which boat", ["red", "blue"], "red", "it floats"))
        purged = world(Purge(decision["decision_id"]))
        assert purged["wiped"]
        touched = {
            name
            for statement in (*ERASE, RETITLE, REWRITE, FORGET_CHUNK, FORGET_AUTHOR)
            for name in re.findall(r"(?:DELETE FROM|UPDATE) (\w+)", statement)
        }
        assert touched >= {*TYPED, "receipts", "documents", "runs", "authors"}
        with psycopg.connect(world.settings.storage.url) as connection:
            cleaned = {name for (name,) in connection.execute(VACUUMED).fetchall()}
        assert touched <= cleaned
    finally:
        world.close()
