"""What every storage must do: transactions that are whole, ordered and durable."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.storage import journal_walk
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.protocol.errors import AlreadyExists, InternalError, NotFound, ShuttingDown
from recollect.protocol.operations import AddMemory, BatchAddMemories
from tests.harness.worlds import World

CALL = Call(operation="test", now_us=1, deadline_us=2, identity="tester")
SESSION_COLUMNS = (
    "id",
    "user_id",
    "session_type",
    "metadata",
    "status",
    "version",
    "created_us",
    "updated_us",
)
INSERT = """
INSERT INTO sessions
    (id, user_id, session_type, metadata, status, version, created_us, updated_us, created_by)
VALUES (?, 'u', 't', '{}', 'created', 1, 1, 1, NULL)
"""


def insert(name: str, error: Exception | None = None) -> Any:
    def write(transaction: WriteTransaction) -> str:
        transaction.execute(INSERT, (name,))
        record(CALL, transaction, subject=name)
        if error is not None:
            raise error
        return name

    return write


def names(world: World) -> list[str]:
    async def read() -> list[str]:
        return await world.storage.read(
            lambda session: [
                row[0] for row in session.execute("SELECT id FROM sessions ORDER BY id")
            ]
        )

    return world.run(read())


def journal_fault(world: World) -> str | None:
    async def read() -> str | None:
        return await world.storage.read(journal_walk.verify)

    return world.run(read())


def test_a_write_is_visible_to_the_next_read(world: World) -> None:
    async def work() -> str:
        return await world.storage.write(insert("a"))

    assert world.run(work()) == "a"
    assert names(world) == ["a"]


def test_a_failed_write_leaves_nothing_and_harms_no_other_of_its_batch(world: World) -> None:
    async def work() -> list[Any]:
        writes = [
            world.storage.write(insert("a")),
            world.storage.write(insert("b", NotFound("no such thing"))),
            world.storage.write(insert("c", ValueError("a defect"))),
            world.storage.write(insert("a")),
            world.storage.write(insert("d")),
        ]
        return await asyncio.gather(*writes, return_exceptions=True)

    first, refused, defect, duplicate, last = world.run(work())
    assert (first, last) == ("a", "d")
    assert isinstance(refused, NotFound)
    assert isinstance(defect, InternalError)
    assert duplicate.code == "already_exists"
    assert names(world) == ["a", "d"]
    assert journal_fault(world) is None


def test_sequence_numbers_have_no_gap_and_follow_the_order_of_commits(world: World) -> None:
    before = world.storage.committed_seq

    async def work() -> None:
        writes = [
            world.storage.write(insert(f"s{at}", NotFound("x") if at % 3 == 0 else None))
            for at in range(30)
        ]
        await asyncio.gather(*writes, return_exceptions=True)

    world.run(work())

    async def read() -> list[Any]:
        return await world.storage.read(
            lambda session: session.execute("SELECT seq, subject FROM journal ORDER BY seq")
        )

    rows = world.run(read())
    assert [seq for seq, _ in rows] == list(range(before + 1, before + 21))
    assert [subject for _, subject in rows] == [f"s{at}" for at in range(30) if at % 3]
    assert world.storage.committed_seq == before + 20


def test_what_follows_a_commit_runs_before_the_write_is_answered(world: World) -> None:
    seen: list[str] = []

    def write(transaction: WriteTransaction) -> None:
        transaction.execute(INSERT, ("a",))
        transaction.after_commit.append(lambda: seen.append("after"))

    async def work() -> list[str]:
        await world.storage.write(write)
        return list(seen)

    assert world.run(work()) == ["after"]


def test_nothing_follows_a_write_that_failed(world: World) -> None:
    seen: list[str] = []

    def write(transaction: WriteTransaction) -> None:
        transaction.after_commit.append(lambda: seen.append("after"))
        raise NotFound("x")

    async def work() -> None:
        with pytest.raises(NotFound):
            await world.storage.write(write)

    world.run(work())
    assert seen == []


@pytest.mark.parametrize("asks_once", [False, True])
def test_a_read_sees_one_moment(world: World, asks_once: bool) -> None:
    async def work() -> tuple[int, int]:
        await world.storage.write(insert("a"))
        loop = asyncio.get_running_loop()
        later = iter("bcd")

        def read(session: Any) -> tuple[int, int]:
            [(first,)] = session.execute("SELECT count(*) FROM sessions")
            written = asyncio.run_coroutine_threadsafe(write_another(), loop)
            written.result(10)
            [(second,)] = session.execute("SELECT count(*) FROM sessions")
            return first, second

        async def write_another() -> None:
            await world.storage.write(insert(next(later)))

        return await world.storage.read(read, asks_once=asks_once)

    first, second = world.run(work())
    assert first == second
    # One that asks again, though it was said to ask once, was begun anew.
    assert names(world)[: first + 1] == ["a", "b", "c"][: first + 1]
    assert len(names(world)) == first + 1


def test_a_reader_cannot_write(world: World) -> None:
    async def work() -> None:
        await world.storage.read(lambda session: session.execute(INSERT, ("a",)))

    with pytest.raises(Exception, match=r"(?i)read-?only|readonly"):
        world.run(work())
    assert names(world) == []


def test_rows_survive_closing_and_the_schema_is_applied_once(world: World) -> None:
    async def work() -> None:
        await world.storage.write(insert("a"))

    world.run(work())
    seq = world.storage.committed_seq
    world.restart()
    assert names(world) == ["a"]
    assert world.storage.committed_seq == seq


def test_a_closed_storage_refuses_writes(world: World) -> None:
    async def work() -> None:
        await asyncio.to_thread(world.storage.close)
        with pytest.raises(ShuttingDown):
            await world.storage.write(insert("a"))

    world.run(work())
    world.open()


def test_a_changed_journal_row_is_noticed(world: World) -> None:
    async def work() -> None:
        for name in "abc":
            await world.storage.write(insert(name))
        assert await world.storage.read(journal_walk.verify) is None
        await world.storage.write(
            lambda transaction: transaction.execute(
                "UPDATE journal SET subject = 'z' WHERE subject = 'b'"
            )
        )

    world.run(work())
    fault = journal_fault(world)
    assert fault is not None
    assert "entry 2 was changed" in fault


def test_rows_that_cannot_be_written_together_fail_only_their_own_write(world: World) -> None:
    sessions = Insert("sessions", SESSION_COLUMNS)

    def gathered(name: str) -> Any:
        def write(transaction: WriteTransaction) -> str:
            transaction.insert(sessions, [(name, "u", "t", "{}", "created", 1, 1, 1)])
            record(CALL, transaction, subject=name)
            return name

        return write

    async def work() -> list[Any]:
        await world.storage.write(gathered("taken"))
        writes = [world.storage.write(gathered(name)) for name in ("a", "taken", "b", "taken", "c")]
        return await asyncio.gather(*writes, return_exceptions=True)

    outcomes = world.run(work())
    assert [o if isinstance(o, str) else o.code for o in outcomes] == [
        "a",
        "already_exists",
        "b",
        "already_exists",
        "c",
    ]
    assert names(world) == ["a", "b", "c", "taken"]
    assert journal_fault(world) is None


def test_what_was_to_be_written_is_quoted_in_neither_answer_nor_log(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    sessions = Insert("sessions", SESSION_COLUMNS)

    def write(transaction: WriteTransaction) -> None:
        transaction.insert(sessions, [("zkqv", "u", "t", "{}", "created", 1, 1, 1)])

    async def work() -> None:
        await world.storage.write(write)
        with pytest.raises(AlreadyExists) as told:
            await world.storage.write(write)
        assert "zkqv" not in told.value.message

    world.run(work())
    logged = capsys.readouterr()
    assert "refused a write" in logged.out + logged.err
    assert "zkqv" not in logged.out + logged.err


def test_a_write_refused_because_of_one_that_is_undone_is_tried_again(world: World) -> None:
    """`taken` makes the batch fail at its end; what was refused in its shadow must not stay so."""
    sessions = Insert("sessions", SESSION_COLUMNS)

    def gathered(name: str) -> Any:
        def write(transaction: WriteTransaction) -> str:
            transaction.insert(sessions, [(name, "u", "t", "{}", "created", 1, 1, 1)])
            return name

        return write

    attempts: list[int] = []

    def refused_at_first(transaction: WriteTransaction) -> str:
        attempts.append(1)
        if len(attempts) == 1:
            raise NotFound("because of another write of this batch")
        transaction.insert(sessions, [("second", "u", "t", "{}", "created", 1, 1, 1)])
        return "second"

    async def work() -> list[Any]:
        await world.storage.write(gathered("taken"))
        begun, queued = threading.Event(), threading.Event()

        def keep_busy(_: WriteTransaction) -> bool:
            begun.set()
            return queued.wait(10)

        # The writer is kept busy until both wait, so that they fall into one batch.
        busy = world.storage.write(keep_busy)
        await asyncio.to_thread(begun.wait, 10)
        writes = [world.storage.write(refused_at_first), world.storage.write(gathered("taken"))]
        queued.set()
        await busy
        return await asyncio.gather(*writes, return_exceptions=True)

    outcome, duplicate = world.run(work())
    assert duplicate.code == "already_exists"
    assert outcome == "second"
    assert names(world) == ["second", "taken"]


def test_an_item_refused_because_of_a_write_that_is_undone_is_stored_after_all(
    world: World,
) -> None:
    parent = world(AddMemory("A parent"))["memory_id"]
    sessions = Insert("sessions", SESSION_COLUMNS)

    def taken(transaction: WriteTransaction) -> None:
        transaction.insert(sessions, [("taken", "u", "t", "{}", "created", 1, 1, 1)])

    attempts: list[int] = []

    def undone(transaction: WriteTransaction) -> None:
        attempts.append(1)
        if len(attempts) > 1:
            raise NotFound("it is not done again")
        transaction.execute("UPDATE memories SET deleted_us = 1 WHERE id = ?", (parent,))

    async def work() -> Any:
        await world.storage.write(taken)
        begun, queued = threading.Event(), threading.Event()

        def keep_busy(_: WriteTransaction) -> bool:
            begun.set()
            return queued.wait(10)

        busy = world.storage.write(keep_busy)
        await asyncio.to_thread(begun.wait, 10)
        waiting = [world.storage.write(undone)]
        items = [{"content": "A child", "parent_id": parent}, {"content": "Another"}]
        adding = asyncio.ensure_future(world.ask(BatchAddMemories(items)))
        while world.storage.write_queue_length() < 2:
            await asyncio.sleep(0)
        # By this one the batch fails at its end.
        waiting.append(world.storage.write(taken))
        queued.set()
        await busy
        await asyncio.gather(*waiting, return_exceptions=True)
        return await adding

    added = world.run(work())
    assert (added["status"], added["stored"], added["failed"]) == ("success", 2, 0)
