"""The write-ahead log is moved into the database beside the writer, and stays bounded."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from recollect.orchestrator.storage.sqlite import checkpoints
from recollect.orchestrator.storage.sqlite.checkpoints import Checkpointer

PAGE_BYTES = 4096


def connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5000)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "off")
    return connection


def write(connection: apsw.Connection, rows: int) -> None:
    for _ in range(rows):
        connection.execute("INSERT INTO t VALUES (zeroblob(3000))")


def test_ceaseless_writes_keep_the_log_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "PAGES_BEFORE", 20)
    monkeypatch.setattr(checkpoints, "PAGES_MAX", 100)
    path = tmp_path / "t.db"
    writer = connect(path)
    writer.execute("CREATE TABLE t (x)")
    checkpointer = Checkpointer(writer, lambda: connect(path))
    write(writer, 5_000)
    checkpointer.close()
    assert (tmp_path / "t.db-wal").stat().st_size < 300 * PAGE_BYTES
    assert writer.execute("SELECT count(*) FROM t").fetchall() == [(5_000,)]
    assert writer.pragma("integrity_check") == "ok"
    writer.close()


def test_a_commit_does_not_do_it_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PAGES_BEFORE", 20)
    path = tmp_path / "t.db"
    threads: set[str] = set()
    moved = threading.Event()
    checkpoint = Checkpointer._checkpoint

    def watched(self: Checkpointer, connection: apsw.Connection) -> None:
        threads.add(threading.current_thread().name)
        checkpoint(self, connection)
        moved.set()

    monkeypatch.setattr(Checkpointer, "_checkpoint", watched)
    writer = connect(path)
    writer.execute("CREATE TABLE t (x)")
    checkpointer = Checkpointer(writer, lambda: connect(path))
    write(writer, 200)
    assert moved.wait(10)
    checkpointer.close()
    assert threads == {"storage-checkpoints"}
    writer.close()


def test_a_log_that_was_moved_begins_anew_instead_of_being_moved_by_every_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "PAGES_BEFORE", 50)
    moves: list[str] = []
    checkpoint = Checkpointer._checkpoint

    def watched(self: Checkpointer, connection: apsw.Connection) -> None:
        moves.append(threading.current_thread().name)
        checkpoint(self, connection)

    monkeypatch.setattr(Checkpointer, "_checkpoint", watched)
    path = tmp_path / "t.db"
    writer = connect(path)
    writer.execute("CREATE TABLE t (x)")
    checkpointer = Checkpointer(writer, lambda: connect(path))
    for _ in range(3_000):
        write(writer, 1)
        checkpointer.move_rest(writer)
    checkpointer.close()
    # A commit takes two to four pages: the log is full every dozen commits at the earliest, and is
    # then moved once beside the writer and once more for the rest.
    assert 2 < len(moves) < 3_000 / 5
    assert (tmp_path / "t.db-wal").stat().st_size < checkpoints.PAGES_MAX * PAGE_BYTES / 4
    assert writer.execute("SELECT count(*) FROM t").fetchall() == [(3_000,)]
    writer.close()


def test_what_has_no_log_does_not_count_as_moved(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    writer = connect(path)
    plain = apsw.Connection(str(tmp_path / "plain.db"))
    plain.execute("CREATE TABLE t (x)")
    checkpointer = Checkpointer(writer, lambda: connect(path))
    assert checkpointer.move(writer)
    assert not checkpointer.move(plain)
    checkpointer.close()
    plain.close()
    writer.close()
