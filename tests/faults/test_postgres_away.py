"""PostgreSQL goes away and comes back: what is asked meanwhile is told so, and then it goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.protocol.errors import StorageFailed
from tests.harness.own_postgres import OwnPostgres
from tests.harness.worlds import World

# Whoever reads waits so long for a connection, and no longer.
REFUSED_WITHIN_S = 15.0
BACK_WITHIN_S = 5.0


@pytest.fixture
def postgres() -> Iterator[OwnPostgres]:
    with OwnPostgres() as postgres:
        yield postgres


async def read_all(world: World, count: int = 1) -> list[object]:
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
