"""PostgreSQL goes away and comes back: what is asked meanwhile is told so, and then it goes on."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.storage.interface import WriteFunction, WriteTransaction
from recollect.orchestrator.storage.postgres.session import connect
from recollect.orchestrator.storage.properties import get_property, set_property
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError, StorageFailed
from tests.faults.tools.silent_line import SilentLine
from tests.harness.own_postgres import OwnPostgres
from tests.harness.worlds import World

# Whoever reads waits so long for a connection, and no longer.
REFUSED_WITHIN_S = 15.0
BACK_WITHIN_S = 5.0
STOPPED_WITHIN_S = 30.0
SILENCE_MS_MAX = 15_000
CONNECT_S = 2
END_WRITER = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE state = 'idle in transaction'
"""
CALL = Call(operation="test", now_us=1, deadline_us=2, identity="tester")


@pytest.fixture
def postgres() -> Iterator[OwnPostgres]:
    with OwnPostgres() as postgres:
        yield postgres


@pytest.fixture
def line(postgres: OwnPostgres) -> Iterator[SilentLine]:
    folder = conninfo_to_dict(postgres.url)["host"]
    with SilentLine(f"{folder}/.s.PGSQL.5432") as line:
        yield line


def address_of(line: SilentLine, options: str = "") -> str:
    return f"postgresql://postgres@127.0.0.1:{line.port}/postgres{options}"


async def read_all(world: World, count: int = 1) -> list[Any]:
    """What several readers are told who ask at once: 1, or an error."""
    return await asyncio.gather(
        *(
            world.storage.read(lambda session: session.execute("SELECT 1")[0][0])
            for _ in range(count)
        ),
        return_exceptions=True,
    )


def test_reads_go_on_as_soon_as_the_server_is_back(postgres: OwnPostgres, tmp_path: Path) -> None:
    world = World(postgres.url, tmp_path / "data")
    try:
        postgres.crash()
        began_s = time.monotonic()
        told = world.run(read_all(world, 2))
        assert all(isinstance(error, StorageFailed) and error.retryable for error in told), told
        assert time.monotonic() - began_s < REFUSED_WITHIN_S
        postgres.start()
        began_s = time.monotonic()
        assert world.run(read_all(world)) == [1]
        assert time.monotonic() - began_s < BACK_WITHIN_S
    finally:
        world.close()


def test_a_stop_does_not_wait_for_a_server_that_fell_silent(
    line: SilentLine, tmp_path: Path
) -> None:
    world = World(address_of(line), tmp_path / "data")
    world(ops.AddMemory("The ferry leaves at noon"))

    async def ask_and_stop() -> list[object]:
        line.fall_silent()
        asked = [
            asyncio.ensure_future(world.storage.read(lambda session: session.execute("SELECT 1")))
            for _ in range(6)
        ]
        asked += [asyncio.ensure_future(world.storage.write(lambda t: t.execute("SELECT 1")))]
        # What is only noted would be written while it stops.
        world.orchestrator.parts.reuse.note(1)
        began_s = time.monotonic()
        await world.orchestrator.stop()
        assert time.monotonic() - began_s < STOPPED_WITHIN_S
        return await asyncio.gather(*asked, return_exceptions=True)

    told = world._runner.run(asyncio.wait_for(ask_and_stop(), 2 * STOPPED_WITHIN_S))
    assert all(isinstance(each, RecollectError) and each.retryable for each in told), told
    world._runner.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has it")
def test_a_silent_server_is_given_up_by_the_system_unless_its_address_says_otherwise(
    line: SilentLine,
) -> None:
    def of(options: str = "") -> list[int]:
        with (
            connect(address_of(line, options)) as connection,
            socket.socket(fileno=os.dup(connection.fileno())) as end,
        ):
            alive = end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            return [alive] + [
                end.getsockopt(socket.IPPROTO_TCP, option)
                for option in (
                    socket.TCP_USER_TIMEOUT,
                    socket.TCP_KEEPIDLE,
                    socket.TCP_KEEPINTVL,
                    socket.TCP_KEEPCNT,
                )
            ]

    alive, unanswered_ms, idle_s, between_s, count = of()
    assert alive
    assert 0 < unanswered_ms <= SILENCE_MS_MAX
    assert idle_s + between_s * count <= SILENCE_MS_MAX / 1000
    assert of("?keepalives_idle=40&tcp_user_timeout=90000")[1:3] == [90_000, 40]


async def write_together(world: World, *writes: WriteFunction[Any]) -> list[Any]:
    """What those are told whose writes fall into one batch."""
    begun, queued = threading.Event(), threading.Event()

    def keep_busy(_: WriteTransaction) -> bool:
        begun.set()
        return queued.wait(10)

    busy = world.storage.write(keep_busy)
    await asyncio.to_thread(begun.wait, 10)
    waiting = [world.storage.write(write) for write in writes]
    queued.set()
    await busy
    return await asyncio.gather(*waiting, return_exceptions=True)


def test_a_batch_waits_once_for_a_server_that_cannot_be_reached(
    line: SilentLine, tmp_path: Path
) -> None:
    world = World(address_of(line, f"?connect_timeout={CONNECT_S}"), tmp_path / "data")

    def lose(transaction: WriteTransaction) -> None:
        line.cut_and_fall_silent()
        transaction.execute("SELECT 1")

    began_s = time.monotonic()
    told = world.run(write_together(world, lose, *(6 * [lambda t: t.execute("SELECT 1")])))
    assert all(isinstance(each, StorageFailed) and each.retryable for each in told), told
    assert time.monotonic() - began_s < 3 * CONNECT_S
    world.close()


def test_what_was_committed_is_told_so_whatever_becomes_of_the_next(
    postgres: OwnPostgres, tmp_path: Path
) -> None:
    world = World(postgres.url, tmp_path / "data")
    tries = 0

    def first(transaction: WriteTransaction) -> str:
        set_property(transaction, "first", "written")
        return "written"

    def second(transaction: WriteTransaction) -> None:
        nonlocal tries
        tries += 1
        # Its words cannot be indexed, so that it is tried alone, and then its connection is lost.
        transaction.texts[record(CALL, transaction, subject="x")] = 7  # type: ignore[assignment]
        if tries > 1:
            with connect(postgres.url) as other:
                other.execute(END_WRITER)

    told, refused = world.run(write_together(world, first, second))
    assert (told, tries) == ("written", 2)
    assert isinstance(refused, RecollectError)

    async def kept() -> str | None:
        return await world.storage.read(lambda session: get_property(session, "first"))

    assert world.run(kept()) == "written"
    world.close()
