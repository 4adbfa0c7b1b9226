"""Several orchestrators on one database: what one writes, all find at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from recollect.config import HealthSettings
from recollect.config.settings import EmbeddingSettings, RedisSettings, Settings
from recollect.orchestrator.access import keyring
from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.orchestrator.vectors import model_following
from recollect.protocol import operations as ops
from recollect.protocol.bearer_keys import hash_of, key_id_of, new_bearer_key
from recollect.protocol.errors import (
    ChangesAhead,
    Forbidden,
    IdempotencyConflict,
    LeaseLost,
    NotFound,
    Overloaded,
    StorageFailed,
    Unauthenticated,
)
from tests.faults.polling import wait_for
from tests.harness.postgres import bare_database, new_database
from tests.harness.processes import OrchestratorProcess
from tests.harness.redis import RedisServer
from tests.harness.worlds import ANSWERED_WITHIN_S, World

WAYS = (ops.SearchMemory, ops.SemanticSearch, ops.Recall)

NEW_MODEL = "hashed-ngrams-v1/64"
COUNTING = Settings(
    embedding=EmbeddingSettings(provider="hashed"), health=HealthSettings(counts_interval_s=0.0)
)

END_OTHERS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""

OLD_VECTOR = """
UPDATE vectors SET model = 'hashed-ngrams-v1/256'
WHERE num = (SELECT min(num) FROM vectors) RETURNING num
"""

Pair = tuple[World, World]


@pytest.fixture
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    url, settings = new_database(), getattr(request, "param", None)
    worlds = World(url, tmp_path / "one", settings), World(url, tmp_path / "other", settings)
    yield worlds
    for world in worlds:
        world.close()


def until(condition: Callable[[], bool]) -> None:
    wait_for(condition, within_s=ANSWERED_WITHIN_S, what="both agree")


def found(world: World, way: Any, query: str, **given: Any) -> list[str]:
    return [result["id"] for result in world(way(query, **given))["results"]]


def test_what_one_writes_the_other_finds_at_once(pair: Pair) -> None:
    for writer, reader in (pair, pair[::-1]):
        # Whatever is kept of a scope or a word is of before.
        for way in WAYS:
            found(reader, way, "harbour winter", namespace="user:alice")
        added = writer(ops.AddMemory("The harbour froze this winter", namespace="user:alice"))
        memory_id = added["memory_id"]
        for way in WAYS:
            for scope in ({}, {"namespace": "user:alice"}, {"filters": {"trust": {"gt": 0}}}):
                assert memory_id in found(reader, way, "harbour winter", **scope), way
        writer(ops.UpdateMemory(memory_id, {"content": "A violin in its case"}))
        for way in WAYS:
            assert found(reader, way, "violin case")[0] == memory_id
        assert memory_id not in found(reader, ops.SearchMemory, "harbour")
        writer(ops.DeleteMemory(memory_id))
        for way in WAYS:
            assert memory_id not in found(reader, way, "violin case")
        reader(ops.Restore(memory_id))
        for way in WAYS:
            assert memory_id in found(writer, way, "violin case")
        reader(ops.Purge(memory_id))
        for way in WAYS:
            assert memory_id not in found(writer, way, "violin case")


def test_both_write_at_once_and_both_have_all_of_it(pair: Pair) -> None:
    one, other = pair
    for n in range(6):
        for name, world in (("one", one), ("other", other)):
            items = [{"content": f"{name} lantern {n} {m}"} for m in range(5)]
            world(ops.BatchAddMemories(items))
    for world in pair:
        for way in WAYS:
            size = {"limit": 100} if way is ops.SearchMemory else {"k": 100}
            assert len(found(world, way, "lantern", **size)) == 60
        assert world(ops.CheckIndex(repair=False))["agrees"]
        assert world(ops.CheckIntegrity())["sound"]


def test_a_new_model_comes_into_use_with_all_of_them(pair: Pair) -> None:
    one, other = pair
    ids = one(ops.BatchAddMemories([{"content": f"lantern number {n}"} for n in range(30)]))
    one(ops.Reembed("hashed", "hashed", 64))
    until = time.monotonic() + ANSWERED_WITHIN_S
    while time.monotonic() < until:
        other(ops.AddMemory("a lamp that is written meanwhile"))
        models = {world(ops.Stats())["index"]["model"] for world in pair}
        if models == {NEW_MODEL}:
            break
    assert models == {NEW_MODEL}, models
    for world in pair:
        world.settle()
        assert ids["memory_ids"][7] in found(world, ops.SemanticSearch, "lantern number 7")
    later = other(ops.AddMemory("a heron on the roof"))["memory_id"]
    assert found(one, ops.SemanticSearch, "heron roof")[0] == later


def test_who_still_has_the_old_model_leaves_the_vectors_of_the_new_one(pair: Pair) -> None:
    one, other = pair
    old = other.orchestrator.parts.meanings.current
    one(ops.BatchAddMemories([{"content": f"lantern number {n}"} for n in range(20)]))
    one(ops.Reembed("hashed", "hashed", 64))
    until = time.monotonic() + ANSWERED_WITHIN_S
    while one(ops.Stats())["index"]["model"] != NEW_MODEL:
        assert time.monotonic() < until
    other.run(other.orchestrator.parts.indexes.load(other.storage, old))
    stats = one(ops.Stats())
    assert (stats["index"]["vectors"], stats["embedding"]["waiting"]) == (20, 0)


def test_a_new_model_is_taken_up_whole_though_the_storage_fails_meanwhile(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_following, "RETRY_S", 0.1)
    one, other = pair
    indexes = other.orchestrator.parts.indexes
    load, loads = indexes.load, 0

    async def cut_off_once(*given: Any) -> int:
        nonlocal loads
        loads += 1
        if loads == 1:
            # Written just before this one knew of the new model.
            await other.storage.write(lambda t: t.execute(OLD_VECTOR) and None)
            raise StorageFailed("The connection to PostgreSQL was cut.")
        return await load(*given)

    monkeypatch.setattr(indexes, "load", cut_off_once)
    one(ops.BatchAddMemories([{"content": f"lantern number {n}"} for n in range(30)]))
    one(ops.Reembed("hashed", "hashed", 64))
    until(lambda: bool(one(ops.Ping()) and other(ops.Ping())) and loads > 1)
    until(lambda: bool(other(ops.CheckIndex(repair=False))["agrees"]))
    other.settle()
    assert other(ops.CheckIntegrity())["sound"]


@pytest.mark.parametrize("pair", [COUNTING], ids=[""], indirect=True)
def test_a_change_at_one_is_waited_for_and_counted_at_the_other(pair: Pair) -> None:
    one, other = pair
    assert other(ops.Metrics())["memories"]["total"] == 0
    added = one(ops.AddMemory("The ferry leaves at noon"))
    # Nothing was ever written through the other: what it knows, it has to ask for.
    read = other(ops.GetMemory(added["memory_id"], min_seq=added["seq"]))
    assert read["memory"]["content"] == "The ferry leaves at noon"
    assert other(ops.Stats())["seq"] == added["seq"]
    until(lambda: other(ops.Ping())["seq"] == added["seq"])
    until(lambda: other(ops.Metrics())["memories"]["total"] == 1)


def test_an_author_that_one_forgot_is_known_again_when_the_other_writes_for_them(
    pair: Pair,
) -> None:
    one, other = pair
    said: Any = {"metadata": {"speaker": "Ann"}, "namespace": "project:harbour"}
    first = one(ops.AddMemory("The crane needs oil", **said))["memory_id"]
    other(ops.Purge(first))
    one(ops.AddMemory("The crane was painted", **said))
    for world in pair:
        asked = ops.Recall("What did Ann say of the crane?", explain=True)
        [found] = world(asked)["results"]
        assert found["explanation"]["author"] > 0


def test_the_same_key_at_both_at_once_is_written_once(pair: Pair) -> None:
    rounds, barrier = range(15), threading.Barrier(len(pair))

    def add(world: World) -> list[str]:
        told = []
        for n in rounds:
            barrier.wait(ANSWERED_WITHIN_S)
            added = world(ops.AddMemory(f"the toll of round {n}"), key=f"round-{n}")
            told.append(added["memory_id"])
        return told

    with ThreadPoolExecutor(len(pair)) as pool:
        first, second = pool.map(add, pair)
    assert first == second
    assert pair[0](ops.Count())["count"] == len(rounds)
    for world in pair:
        with pytest.raises(IdempotencyConflict):
            world(ops.AddMemory("something else"), key="round-3")


def test_a_session_that_is_answered_again_at_the_other_has_its_temporary_state(
    tmp_path: Path,
) -> None:
    url = new_database()
    create = ops.CreateSession("alice", state={"temp:draft": "half", "topic": "ships"})
    with RedisServer() as server:
        shared = msgspec.structs.replace(
            COUNTING, redis=RedisSettings(server.url, timeout_ms=5_000)
        )
        # The one ends before it has told of what is not kept in the database.
        one = World(url, tmp_path / "one", COUNTING)
        session_id = one(create, key="once")["session_id"]
        one.close()
        other = World(url, tmp_path / "other", shared)
        try:
            assert other(create, key="once")["session_id"] == session_id
            state = other(ops.GetState(session_id))["state"]
            assert state == {"temp:draft": "half", "topic": "ships"}
        finally:
            other.close()


def test_no_reader_of_the_feed_passes_over_a_change_that_is_committed_late(pair: Pair) -> None:
    one, other = pair
    numbered, commit = threading.Event(), threading.Event()

    def slow(transaction: WriteTransaction) -> None:
        call = Call("add_memory", other.clock.now_us(), 2**62, "local")
        record(call, transaction, subject="the slow one")
        numbered.set()
        assert commit.wait(ANSWERED_WITHIN_S)

    async def write_slowly() -> None:
        await other.storage.write(slow)

    start = one(ops.Stats())["seq"]
    with ThreadPoolExecutor(2) as pool:
        slowly = pool.submit(other.run, write_slowly())
        assert numbered.wait(ANSWERED_WITHIN_S)
        # It has its number and is not committed: nothing behind that can be seen before it.
        assert one(ops.ReadChanges(start))["changes"] == []

        async def write_and_read() -> list[dict[str, Any]]:
            writing = asyncio.ensure_future(one.ask(ops.AddMemory("the quick one")))
            reading = asyncio.ensure_future(one.ask(ops.ReadChanges(start, wait_s=10.0)))
            done, _ = await asyncio.wait([writing, reading], timeout=0.3)
            assert not done
            commit.set()
            await writing
            seen = (await reading)["changes"]
            while len(seen) < 2:
                page = await one.ask(ops.ReadChanges(seen[-1]["seq"], wait_s=10.0))
                seen += page["changes"]
            return list(seen)

        seen = one.run(write_and_read())
        slowly.result(ANSWERED_WITHIN_S)
    assert [change["seq"] for change in seen] == [start + 1, start + 2]
    assert seen[0]["subject"] == "the slow one"


def test_readers_at_each_see_every_change_of_both_in_one_order(pair: Pair) -> None:
    url = pair[0].settings.storage.url
    writers = [World(url, Path(world.settings.storage.data) / "writer") for world in pair]
    batches, items = 8, 4
    total = batches * items * len(writers)

    def write(world: World) -> None:
        for n in range(batches):
            world(ops.BatchAddMemories([{"content": f"buoy {n} {m}"} for m in range(items)]))

    def follow(world: World) -> list[tuple[int, str]]:
        seen: list[tuple[int, str]] = []
        while len(seen) < total:
            after = seen[-1][0] if seen else 0
            page = world(ops.ReadChanges(after, limit=7, wait_s=10.0))
            assert page["changes"], f"{len(seen)} of {total}"
            seen += [(change["seq"], change["subject"]) for change in page["changes"]]
        return seen

    try:
        with ThreadPoolExecutor(2 * len(pair)) as pool:
            following = [pool.submit(follow, world) for world in pair]
            for written in [pool.submit(write, world) for world in writers]:
                written.result()
            one, other = (reader.result() for reader in following)
    finally:
        for world in writers:
            world.close()
    assert one == other
    assert [seq for seq, _ in one] == list(range(1, total + 1))


def test_a_lease_is_one_and_the_same_at_both(pair: Pair) -> None:
    one, other = pair
    token = one(ops.AcquireLease("work", "anna", 0.2))["token"]
    assert not other(ops.AcquireLease("work", "ben", 60.0))["acquired"]
    assert other(ops.RenewLease("work", "anna", token, 0.2))["token"] == token
    # Who is silent for so long loses it, whichever orchestrator is asked.
    until(lambda: other(ops.AcquireLease("work", "ben", 60.0))["acquired"])
    for world in pair:
        with pytest.raises(LeaseLost):
            world(ops.AddMemory("too late"), fence=f"work/{token}")
    assert not one(ops.AcquireLease("work", "anna", 60.0))["acquired"]
    assert one(ops.Count())["count"] == 0


def test_a_key_is_known_and_refused_at_both(pair: Pair) -> None:
    one, other = pair
    key = new_bearer_key()
    one(ops.CreateIdentity("alice"))
    one(ops.CreateBearerKey("alice", hash_of(key)))

    def may(world: World, operation: Any) -> bool:
        try:
            world(operation, bearer=key)
        except (Unauthenticated, Forbidden, NotFound, Overloaded):
            # The last one, where it was changed while it was asked.
            return False
        return True

    until(lambda: may(other, ops.WhoAmI()))
    write = ops.AddMemory("hers", namespace="user:alice")
    assert not may(other, write)
    one(ops.GrantAccess("alice", "user:alice", "write"))
    until(lambda: may(other, write))
    other(ops.RevokeAccess("alice", "user:alice"))
    until(lambda: not may(one, write))
    assert not may(one, write)
    other(ops.RevokeBearerKey("alice", key_id_of(hash_of(key))))
    until(lambda: not may(one, ops.WhoAmI()))


SCANS = """
SELECT (SELECT CAST(seq_scan + coalesce(idx_scan, 0) AS BIGINT) FROM pg_stat_user_tables
    WHERE relname = 'properties'),
    (SELECT CAST(seq_scan + coalesce(idx_scan, 0) AS BIGINT) FROM pg_stat_user_tables
    WHERE relname = 'grants')
"""


def test_who_is_known_is_read_when_it_has_changed_and_hardly_ever_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(keyring, "REFRESH_S", 0.01)
    world = World(new_database(), tmp_path / "data")
    try:
        with psycopg.connect(world.settings.storage.url, autocommit=True) as connection:

            def scans() -> tuple[int, int]:
                world(ops.Ping())
                [(looked, read)] = connection.execute(SCANS).fetchall()
                return looked, read

            looked_before, read_before = scans()
            until(lambda: scans()[0] >= looked_before + 50)
            looked, read = scans()
            assert read - read_before < (looked - looked_before) / 10
    finally:
        world.close()


LOSE = (
    "DELETE FROM {table} WHERE num > %s",
    ("memories", "vectors", "memory_words", "unembedded"),
)


def test_a_store_that_has_gone_back_is_followed_from_where_it_is(pair: Pair) -> None:
    """As when a standby takes over that had not got all yet."""
    world, _ = pair
    kept = world(ops.AddMemory("The first"))["seq"]
    [(head,)] = ask(world, "SELECT head FROM ledger")
    for n in range(5):
        lost = world(ops.AddMemory(f"Lost number {n}"))["seq"]
    sql, tables = LOSE
    with psycopg.connect(world.settings.storage.url) as connection:
        for table in tables:
            connection.execute(sql.format(table=table).encode(), (kept,))
        connection.execute("DELETE FROM journal WHERE seq > %s", (kept,))

    async def follow() -> Any:
        waiting = asyncio.ensure_future(world.ask(ops.ReadChanges(lost, wait_s=15.0)))
        while not world.orchestrator.parts.feed.room:
            await asyncio.sleep(0)
        await asyncio.to_thread(go_back, world, kept, head)
        return await waiting

    told = world.run(follow())
    assert told["error"]["code"] == ChangesAhead.code
    until(lambda: world(ops.Ping())["seq"] == kept)
    again = world(ops.AddMemory("The second"))
    assert again["seq"] == kept + 1
    seen = world(ops.ReadChanges(kept, wait_s=10.0))["changes"]
    assert [change["subject"] for change in seen] == [again["memory_id"]]


def ask(world: World, sql: str) -> list[Any]:
    async def read() -> list[Any]:
        return await world.storage.read(lambda session: session.execute(sql))

    return world.run(read())


def go_back(world: World, seq: int, head: bytes) -> None:
    with psycopg.connect(world.settings.storage.url) as connection:
        connection.execute("UPDATE ledger SET seq = %s, head = %s", (seq, head))


def test_two_that_are_told_different_models_agree_on_one(pair: Pair) -> None:
    one, other = pair
    ids = one(ops.BatchAddMemories([{"content": f"lantern number {n}"} for n in range(600)]))
    models = {"hashed-ngrams-v1/64", "hashed-ngrams-v1/96"}
    one(ops.Reembed("hashed", "hashed", 64))
    other(ops.Reembed("hashed", "hashed", 96))

    def settled() -> bool:
        stats = [world(ops.Stats()) for world in pair]
        states = {each["embedding"]["reembedding"]["state"] for each in stats}
        named = {each["index"]["model"] for each in stats}
        return len(named) == 1 and named <= models and states <= {"idle", "done"}

    until(settled)
    for world in pair:
        world.settle()
        assert ids["memory_ids"][7] in found(world, ops.SemanticSearch, "lantern number 7")
        assert world(ops.CheckIndex(repair=False))["agrees"]


def test_a_server_that_ends_all_connections_is_found_again_by_whoever_asks(pair: Pair) -> None:
    one, other = pair

    async def use_all_readers() -> None:
        reads = [one.storage.read(lambda s: s.execute("SELECT pg_sleep(0.01)")) for _ in range(8)]
        await asyncio.gather(*reads)

    one.run(use_all_readers())
    added = one(ops.AddMemory("Before the restart"))
    with psycopg.connect(one.settings.storage.url, autocommit=True) as connection:
        connection.execute(END_OTHERS)
    assert one(ops.GetMemory(added["memory_id"]))["memory"]["content"] == "Before the restart"
    for world in pair:
        world(ops.AddMemory("After the restart"))
        assert world(ops.Count())["count"] == 2 + (world is other)


def test_a_write_that_is_cut_off_says_so_and_is_repeated_by_its_key(pair: Pair) -> None:
    one, other = pair
    commit = one.storage._writer_session.commit  # type: ignore[attr-defined]

    def committed_and_cut_off() -> None:
        commit()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    one.storage._writer_session.commit = committed_and_cut_off  # type: ignore[attr-defined]
    with pytest.raises(StorageFailed, match="may be stored or not") as told:
        one(ops.AddMemory("Once"), key="k-1")
    assert told.value.retryable
    again = other(ops.AddMemory("Once"), key="k-1")
    assert other(ops.GetMemory(again["memory_id"]))["memory"]["content"] == "Once"
    assert other(ops.Count())["count"] == 1
    one.storage._writer_session.commit = commit  # type: ignore[attr-defined]


def test_two_that_start_at_once_on_an_empty_database_both_come_up(tmp_path: Path) -> None:
    env = {"RECOLLECT_STORAGE_URL": bare_database()}
    both = [OrchestratorProcess(tmp_path / name, env=env) for name in ("one", "other")]
    try:
        for process in both:
            process.start(wait=False)
        for process in both:
            process.wait_ready()
        with both[0].client() as one, both[1].client() as other:
            added = one.add_memory("written by the first")
            read = other.get_memory(added["memory_id"], min_seq=added["seq"])
            assert read["memory"]["content"] == "written by the first"
            assert other.semantic_search("written first")["count"] == 1
    finally:
        for process in both:
            process.close()
