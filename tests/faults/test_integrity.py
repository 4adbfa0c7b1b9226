"""`check_integrity` tells what cannot be read from what cannot be had just now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.protocol import operations as ops
from recollect.protocol.errors import StorageFailed
from tests.harness.own_postgres import OwnPostgres
from tests.harness.worlds import World


class FailingDisk(apsw.VFS):
    """A file layer that cannot read databases once it is told so."""

    def __init__(self) -> None:
        super().__init__("failing", "unix", makedefault=True)
        self.fails = False

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return FailingFile(self, name, flags)


class FailingFile(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name: Any, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._disk, self._matters = disk, path.endswith(DATABASE_NAME)
        super().__init__("unix", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        if self._matters and self._disk.fails:
            raise apsw.exception_for(apsw.SQLITE_IOERR_READ)
        return bytes(super().xRead(amount, offset))


@pytest.fixture
def disk() -> Iterator[FailingDisk]:
    disk = FailingDisk()
    try:
        yield disk
    finally:
        disk.unregister()


@pytest.fixture
def postgres() -> Iterator[OwnPostgres]:
    with OwnPostgres() as postgres:
        yield postgres


def test_a_disk_that_cannot_be_read_is_not_told_as_full(disk: FailingDisk, tmp_path: Path) -> None:
    world = World("sqlite", tmp_path / "data")
    try:
        world(ops.AddMemory("The ferry leaves at noon"))
        disk.fails = True
        checked = world(ops.CheckIntegrity())
    finally:
        disk.fails = False
        world.close()
    assert not checked["sound"]
    problem = next(each for each in checked["problems"] if each["part"] == "database")
    assert "cannot be read" in problem["text"]
    assert "recollect restore BACKUP --data" in problem["advice"]


def test_a_server_that_is_away_is_not_taken_for_damage(
    postgres: OwnPostgres, tmp_path: Path
) -> None:
    world = World(postgres.url, tmp_path / "data")
    try:
        postgres.crash()
        with pytest.raises(StorageFailed) as told:
            world(ops.CheckIntegrity())
        assert told.value.retryable
        postgres.start()
        assert world(ops.CheckIntegrity())["sound"]
    finally:
        world.close()


def test_a_table_that_the_server_cannot_read_is_damage(
    postgres: OwnPostgres, tmp_path: Path
) -> None:
    world = World(postgres.url, tmp_path / "data")
    try:
        ids = [world(ops.AddMemory(text))["memory_id"] for text in ("a boat", "its harbour")]
        world(ops.AddRelationship(ids[0], ids[1], "part_of"))
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            [(path,)] = connection.execute("SELECT pg_relation_filepath('relationships')")
        postgres.crash()
        file = postgres.file(path)
        file.write_bytes(b"\xa5" * file.stat().st_size)
        postgres.start()
        checked = world(ops.CheckIntegrity())
    finally:
        world.close()
    assert not checked["sound"]
    [problem] = checked["problems"]
    assert problem["part"] == "links"
    assert "cannot read" in problem["text"]
    assert "--storage postgresql://" in problem["advice"]
