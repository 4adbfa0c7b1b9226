"""Zeroing what is left over in a database file changes nothing that is stored in it."""

from __future__ import annotations

import contextlib
import itertools
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from recollect.orchestrator.storage.sqlite.pages import (
    KINDS,
    Misfit,
    check_header,
    loose_spans,
    unused_spans,
)
from recollect.orchestrator.storage.sqlite.slack import DatabaseFile, Wiping

PAGE_SIZES = (512, 1024, 4096, 65_536)
SCHEMA = """
CREATE TABLE rows (num INTEGER PRIMARY KEY, body TEXT, blob BLOB);
CREATE INDEX rows_by_body ON rows (body);
CREATE TABLE links (one TEXT, two INTEGER, PRIMARY KEY (one, two)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (body, content = '', contentless_delete = 1);
"""
DUMP = (
    "SELECT num, body, blob FROM rows ORDER BY num",
    "SELECT body, num FROM rows INDEXED BY rows_by_body ORDER BY body, num",
    "SELECT one, two FROM links ORDER BY one, two",
    "SELECT id, block FROM words_data ORDER BY id",
)


def connect(path: Path, page_bytes: int = 4096, *, secure: bool = True) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)
    connection.pragma("page_size", page_bytes)
    connection.pragma("journal_mode", "wal")
    connection.pragma("secure_delete", secure)
    return connection


def create(path: Path, page_bytes: int = 4096, *, secure: bool = True) -> apsw.Connection:
    connection = connect(path, page_bytes, secure=secure)
    connection.execute(SCHEMA)
    return connection


def change(connection: apsw.Connection, chance: random.Random, count: int) -> None:
    """Rows that come, grow, shrink and go, some with pages of their own."""
    for _ in range(count):
        num = chance.randrange(400)
        body = f"row{num} " + "text " * chance.choice([0, 3, 30, chance.randrange(400)])
        kind = chance.random()
        with connection:
            if kind < 0.6:
                blob = chance.randbytes(chance.choice([0, 8, 300, 9_000]))
                connection.execute("REPLACE INTO rows VALUES (?, ?, ?)", (num, body, blob))
                connection.execute("REPLACE INTO links VALUES (?, ?)", (body[:90], num))
                connection.execute("DELETE FROM words WHERE rowid = ?", (num,))
                connection.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (num, body))
            elif kind < 0.9:
                connection.execute("DELETE FROM rows WHERE num = ?", (num,))
                connection.execute("DELETE FROM words WHERE rowid = ?", (num,))
            else:
                low = chance.randrange(400)
                connection.execute("DELETE FROM rows WHERE num BETWEEN ? AND ?", (low, low + 60))
                connection.execute("DELETE FROM links WHERE two BETWEEN ? AND ?", (low, low + 60))


def dump(connection: apsw.Connection) -> list[Any]:
    connection.execute("BEGIN")
    try:
        return [connection.execute(sql).fetchall() for sql in DUMP]
    finally:
        connection.execute("ROLLBACK")


def check_integrity(connection: apsw.Connection) -> None:
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def moving(connection: apsw.Connection) -> bool:
    try:
        in_log, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except apsw.BusyError:
        return False
    return bool(in_log == moved)


@contextlib.contextmanager
def wiping(path: Path) -> Iterator[Wiping]:
    with contextlib.closing(connect(path)) as writer, contextlib.closing(connect(path)) as mover:
        yield Wiping(
            path,
            writer,
            moved=lambda: moving(mover),
            go_on=lambda: True,
            pause=threading.Event().wait,
        )


def leftover_pages(path: Path) -> set[int]:
    with contextlib.closing(DatabaseFile(path)) as file:
        return file.soiled(lambda: True)


@pytest.mark.parametrize("page_bytes", PAGE_SIZES)
@pytest.mark.parametrize("secure", [True, False], ids=["overwriting", "not overwriting"])
def test_wiping_changes_nothing_that_is_stored(
    tmp_path: Path, page_bytes: int, secure: bool
) -> None:
    path = tmp_path / "a.db"
    chance = random.Random(page_bytes)
    with contextlib.closing(create(path, page_bytes, secure=secure)) as connection:
        wiped = 0
        for _ in range(6):
            change(connection, chance, 120)
            before = dump(connection)
            with wiping(path) as work:
                wiped += work.once(10) or 0
                assert work.once(10) == 0
            assert leftover_pages(path) == set()
            assert dump(connection) == before
            check_integrity(connection)
        assert wiped > 0, "nothing was ever left over"
        with contextlib.closing(connect(path)) as fresh:
            assert dump(fresh) == before
            check_integrity(fresh)


def test_every_page_of_a_tree_is_understood_to_the_last_byte(tmp_path: Path) -> None:
    for page_bytes in PAGE_SIZES:
        path = tmp_path / f"{page_bytes}.db"
        with contextlib.closing(create(path, page_bytes)) as connection:
            change(connection, random.Random(1), 300)
            assert moving(connection)
            unused = dict[int, int]()
            with contextlib.closing(DatabaseFile(path)) as file:
                for number in range(1, file.pages + 1):
                    page = file.read(number)
                    if page[100 if number == 1 else 0] in KINDS:
                        spans = unused_spans(number, page)
                        assert {s for s in loose_spans(number, page) if s[0] < s[1]} == {
                            s for s in spans if s[0] < s[1]
                        }
                        unused[number] = sum(end - start for start, end in spans)
            # What SQLite itself counts as unused are the same bytes, and the heads of free blocks
            # and the fragments.
            told: list[Any] = connection.execute(
                "SELECT pageno, unused FROM dbstat WHERE pagetype <> 'overflow'"
            ).fetchall()
            assert {number for number, _ in told} == unused.keys()
            for number, count in told:
                assert unused[number] <= count


def test_what_moved_rows_leave_behind_is_found_and_wiped(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    marker = b"zanzibar"
    with contextlib.closing(create(path)) as connection:
        chance = random.Random(0)
        for _ in range(1_500):
            num = chance.randrange(600)
            word = "zanzibar" if num % 10 == 0 else "kept"
            body = f"{num} {word} {'x' * chance.randrange(400)}"
            connection.execute("REPLACE INTO rows VALUES (?, ?, NULL)", (num, body))
            connection.execute("REPLACE INTO links VALUES (?, ?)", (body[:200], num))
        connection.execute("DELETE FROM rows WHERE num % 10 = 0")
        connection.execute("DELETE FROM links WHERE two % 10 = 0")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        assert marker in path.read_bytes(), "overwriting alone was enough"
        with wiping(path) as work:
            assert work.once(10)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        assert marker not in path.read_bytes()
        # Neither does a connection bring it back that had the pages in memory.
        for num in range(20):
            connection.execute("INSERT INTO rows VALUES (?, 'new', NULL)", (num * 30,))
        assert marker not in path.read_bytes()
        assert marker not in Path(f"{path}-wal").read_bytes()
        check_integrity(connection)


@pytest.mark.parametrize("page_bytes", PAGE_SIZES)
def test_free_pages_hold_nothing_that_would_have_to_be_wiped(
    tmp_path: Path, page_bytes: int
) -> None:
    path = tmp_path / "a.db"
    with contextlib.closing(create(path, page_bytes)) as connection:
        for num in range(900):
            blob = b"zanzibar" * (page_bytes // 20)
            connection.execute("INSERT INTO rows VALUES (?, 'few', ?)", (num, blob))
        change(connection, random.Random(page_bytes), 60)
        connection.execute("DELETE FROM rows WHERE num > 3")
        assert int(connection.pragma("freelist_count")) > 100
        assert moving(connection)
        free = free_pages(path.read_bytes(), page_bytes)
        assert len(free) == connection.pragma("freelist_count")
        assert not any(free)


def free_pages(content: bytes, size: int) -> list[bytes]:
    """What the pages on the list of free ones hold beside that list."""
    found = []
    trunk = int.from_bytes(content[32:36])
    while trunk:
        page = content[(trunk - 1) * size : trunk * size]
        end = 8 + 4 * int.from_bytes(page[4:8])
        found.append(page[end:].strip(b"\0"))
        for place in range(8, end, 4):
            leaf = int.from_bytes(page[place : place + 4])
            found.append(content[(leaf - 1) * size : leaf * size].strip(b"\0"))
        trunk = int.from_bytes(page[:4])
    return found


def soil(connection: apsw.Connection) -> None:
    """Leave something of deleted rows between those that stay."""
    chance = random.Random(0)
    for _ in range(1_500):
        num = chance.randrange(600)
        word = "zanzibar" if num % 10 == 0 else "kept"
        body = f"{num} {word} {'x' * chance.randrange(400)}"
        connection.execute("REPLACE INTO rows VALUES (?, ?, NULL)", (num, body))
    connection.execute("DELETE FROM rows WHERE num % 10 = 0")


def write_everywhere(connection: apsw.Connection) -> None:
    """Have about every page of the rows written."""
    for num in range(0, 600, 10):
        connection.execute("INSERT INTO rows VALUES (?, 'new', NULL)", (num,))


def test_what_the_log_still_holds_of_a_wiped_page_does_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with (
        contextlib.closing(create(path)) as connection,
        contextlib.closing(connect(path)) as reader,
    ):
        connection.wal_autocheckpoint(0)
        soil(connection)
        # It sees what is there now, and the log cannot begin anew while it does.
        reader.execute("BEGIN")
        seen = reader.execute(DUMP[0]).fetchall()
        with wiping(path) as work:
            assert work.once(10)
        assert b"zanzibar" in Path(f"{path}-wal").read_bytes()
        write_everywhere(connection)
        assert reader.execute(DUMP[0]).fetchall() == seen
        reader.execute("ROLLBACK")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        assert b"zanzibar" not in path.read_bytes()
        check_integrity(connection)


def test_after_a_failure_nothing_comes_back_from_what_others_remember(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with contextlib.closing(create(path)) as connection:
        soil(connection)
        with (
            contextlib.closing(connect(path)) as writer,
            contextlib.closing(connect(path)) as mover,
        ):
            # As if the disk were full: the file is wiped, but others are not told.
            writer.set_commit_hook(lambda: True)
            failing = Wiping(path, writer, lambda: moving(mover), lambda: True, lambda _: None)
            with pytest.raises(apsw.ConstraintError):
                for _ in range(10):
                    failing.once(10)
        assert b"zanzibar" not in path.read_bytes(), "a step is too small for this"
        with wiping(path) as work:
            assert work.once(10) == 0
        write_everywhere(connection)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        assert b"zanzibar" not in path.read_bytes()
        check_integrity(connection)


def test_nothing_is_wiped_while_a_reader_needs_what_was_before(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with (
        contextlib.closing(create(path)) as connection,
        contextlib.closing(connect(path)) as reader,
    ):
        connection.wal_autocheckpoint(0)
        change(connection, random.Random(1), 200)
        reader.execute("BEGIN")
        seen = reader.execute(DUMP[0]).fetchall()
        soil(connection)
        with (
            contextlib.closing(connect(path)) as writer,
            contextlib.closing(connect(path)) as mover,
        ):
            assert not moving(mover)
            before = path.read_bytes()
            pauses = list[float]()
            work = Wiping(path, writer, lambda: moving(mover), lambda: True, pauses.append)
            assert work.once(10) is None
            assert len(pauses) == 10, "a bounded number of tries"
            assert path.read_bytes() == before
        assert reader.execute(DUMP[0]).fetchall() == seen
        check_integrity(reader)


def test_nothing_is_wiped_while_somebody_writes_or_the_log_is_not_moved(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with (
        contextlib.closing(create(path)) as connection,
        contextlib.closing(connect(path)) as writer,
    ):
        soil(connection)
        assert moving(connection)
        before = path.read_bytes()
        writer.set_busy_timeout(0)
        connection.execute("BEGIN IMMEDIATE")
        work = Wiping(path, writer, lambda: True, lambda: True, lambda _: None)
        with pytest.raises(apsw.BusyError):
            work.once(1)
        connection.execute("ROLLBACK")
        # Moved when it looks, and once more before it has the lock, but no longer within it.
        moved = itertools.chain([True, True], itertools.repeat(False))
        work = Wiping(path, writer, lambda: next(moved), lambda: True, lambda _: None)
        assert work.once(1) is None
        assert path.read_bytes() == before
        assert not writer.in_transaction


def test_readers_and_writers_beside_it_see_only_what_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with contextlib.closing(create(path)) as connection:
        change(connection, random.Random(0), 300)
    done, wrong = threading.Event(), list[str]()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with contextlib.closing(connect(path)) as connection:
            while not done.is_set():
                change(connection, chance, 5)

    def read() -> None:
        while not done.is_set():
            # A new connection each time, since FTS5 checks what it remembers of an earlier state.
            with contextlib.closing(connect(path)) as connection:
                try:
                    # One snapshot, kept for a while: twice the same, and sound.
                    with connection:
                        first = [connection.execute(sql).fetchall() for sql in DUMP]
                        check_integrity(connection)
                        if [connection.execute(sql).fetchall() for sql in DUMP] != first:
                            wrong.append("a snapshot changed")
                except (AssertionError, apsw.CorruptError) as error:
                    wrong.append(repr(error))

    threads = [threading.Thread(target=write, args=(seed,)) for seed in (1, 2)]
    threads += [threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    passes = 0
    try:
        with wiping(path) as work:
            for _ in range(60):
                passes += bool(work.once(200))
                if passes == 3:
                    break
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
    assert not wrong, wrong[:3]
    assert passes == 3, "it hardly ever came to wiping"
    with contextlib.closing(connect(path)) as connection:
        check_integrity(connection)


WIPE_FOREVER = """
import sys
from pathlib import Path
from tests.unit.orchestrator.storage.test_slack import change, connect, wiping
import random
path, chance = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
connection = connect(path)
change(connection, chance, 50)
print("begun", flush=True)
with wiping(path) as work:
    while True:
        change(connection, chance, 3)
        work.once(10)
"""


def test_a_kill_in_the_middle_leaves_a_sound_database(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with contextlib.closing(create(path)) as connection:
        change(connection, random.Random(0), 300)
    chance = random.Random(7)
    for number in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", WIPE_FOREVER, str(path), str(number)],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[4],
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.0, 0.3))
            assert process.poll() is None, "it ended by itself"
        finally:
            process.kill()
            process.wait(30)
            if process.stdout is not None:
                process.stdout.close()
        with contextlib.closing(connect(path)) as connection:
            check_integrity(connection)
            for (num, body), *_ in zip(
                connection.execute("SELECT num, body FROM rows ORDER BY num"), itertools.count()
            ):
                assert str(body).startswith(f"row{num} ")


# Needs that nobody else has the database open, as SQLite knows by the locks on its file.
LEAVE_LOG = """
import apsw, sys
try:
    print(apsw.Connection(sys.argv[1]).pragma("journal_mode", "delete"))
except apsw.BusyError:
    print("refused")
"""


def test_the_locks_of_the_process_outlive_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    def leave_log() -> str:
        command = [sys.executable, "-c", LEAVE_LOG, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    with contextlib.closing(create(path)) as connection:
        change(connection, random.Random(0), 100)
        with wiping(path) as work:
            assert work.once(10)
        assert leave_log() == "refused"
    assert leave_log() == "delete"


def test_files_of_another_make_are_left_alone(tmp_path: Path) -> None:
    compact = tmp_path / "compact.db"
    connection = apsw.Connection(str(compact))
    connection.pragma("auto_vacuum", "full")
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    plain = tmp_path / "plain.db"
    apsw.Connection(str(plain)).execute("CREATE TABLE t (a)")
    other = tmp_path / "other.db"
    other.write_bytes(b"something else" * 100)
    for path in (compact, plain, other):
        before = path.read_bytes()
        with pytest.raises(Misfit):
            DatabaseFile(path)
        assert path.read_bytes() == before


def test_a_page_that_is_not_as_it_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with contextlib.closing(create(path)) as connection:
        change(connection, random.Random(3), 200)
        assert moving(connection)
    with path.open("rb") as file:
        page_bytes = check_header(file.read(100), path.stat().st_size)
        file.seek(0)
        content = file.read()
    chance = random.Random(4)
    refused = tried = 0
    for number in range(2, len(content) // page_bytes + 1):
        page = bytearray(content[(number - 1) * page_bytes : number * page_bytes])
        if page[0] not in KINDS or not page[4]:
            continue
        unused_spans(number, bytes(page))
        # Another number of cells, another beginning of the content, another count of fragments.
        place, amount = chance.choice([(4, 1), (6, 2), (7, 1)])
        page[place] = (page[place] + amount) % 256
        tried += 1
        with contextlib.suppress(Misfit):
            unused_spans(number, bytes(page))
            refused -= 1
        refused += 1
    assert tried > 10
    assert refused == tried
