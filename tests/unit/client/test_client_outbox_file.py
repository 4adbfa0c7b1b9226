"""The outbox as a file: order, bounds, keys, damage."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from recollect.client.encoding import NOBODY, Call, Speaker, prepare
from recollect.client.outbox import OutboxFile
from recollect.protocol import errors
from recollect.protocol.operations import AddMemory
from tests.harness.children import WAIT_S, wait_for_child


def write(content: str, key: str | None = None) -> Call:
    return prepare(
        AddMemory(content, idempotency_key=key), now_ms=lambda: 5, randomness=random.Random(content)
    )


def open_file(path: Path, items_max: int = 100) -> OutboxFile:
    return OutboxFile(path, wall=lambda: 1_700_000_000.0, items_max=items_max)


def contents(file: OutboxFile) -> list[bytes]:
    found = []
    while (item := file.head()) is not None:
        found.append(item.body)
        file.remove(item)
    return found


def test_gives_back_in_the_order_of_arrival_also_after_a_restart(tmp_path: Path) -> None:
    calls = [write(f"memory {n}") for n in range(20)]
    file = open_file(tmp_path / "outbox")
    assert [file.put(call, Speaker("agent", None, "task")) for call in calls] == list(range(1, 21))
    file.close()
    again = open_file(tmp_path / "outbox")
    assert again.counts() == (20, 0)
    head = again.head()
    assert head is not None
    assert (head.speaker, head.operation) == (Speaker("agent", None, "task"), "add_memory")
    assert contents(again) == [call.body for call in calls]
    again.close()


def test_refuses_more_than_the_limit_by_its_name(tmp_path: Path) -> None:
    file = open_file(tmp_path / "outbox", items_max=3)
    for n in range(3):
        file.put(write(str(n)), NOBODY)
    with pytest.raises(errors.LimitExceeded, match="outbox_items_max"):
        file.put(write("one too many"), NOBODY)
    head = file.head()
    assert head is not None
    file.remove(head)
    assert file.put(write("now there is room"), NOBODY) == 3
    file.close()


def test_the_same_key_waits_once_and_with_another_payload_is_a_conflict(tmp_path: Path) -> None:
    file = open_file(tmp_path / "outbox")
    assert file.put(write("text", "k"), NOBODY) == 1
    assert file.put(write("text", "k"), NOBODY) == 1
    with pytest.raises(errors.IdempotencyConflict):
        file.put(write("another", "k"), NOBODY)
    assert file.counts() == (1, 0)
    file.close()


def test_what_is_refused_is_put_aside_with_its_reason(tmp_path: Path) -> None:
    file = open_file(tmp_path / "outbox")
    file.put(write("bad"), NOBODY)
    file.put(write("good"), NOBODY)
    head = file.head()
    assert head is not None
    file.refuse(head, errors.NotFound("no such parent"))
    assert file.counts() == (1, 1)
    assert contents(file) == [write("good").body]
    file.close()


def test_only_its_owner_may_read_what_waits(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        file = open_file(tmp_path / "outbox")
        file.put(write("secret plan"), NOBODY)
    finally:
        os.umask(mask)
    assert [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()] == [0o600]
    file.close()


def test_a_relative_path_is_below_the_folder_in_which_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    file = open_file(Path("outbox"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    file.put(write("x"), NOBODY)
    assert (tmp_path / "outbox").exists()
    file.close()


def test_two_files_on_one_path_share_one_queue(tmp_path: Path) -> None:
    one, two = open_file(tmp_path / "outbox"), open_file(tmp_path / "outbox")
    one.put(write("a"), NOBODY)
    assert two.put(write("b"), NOBODY) == 2
    assert contents(one) == [write("a").body, write("b").body]
    assert two.head() is None
    one.close()
    two.close()


def test_a_file_that_cannot_be_used_is_a_typed_error(tmp_path: Path) -> None:
    missing = open_file(tmp_path / "no" / "such" / "folder")
    with pytest.raises(errors.StorageFailed, match="outbox"):
        missing.put(write("x"), NOBODY)
    (tmp_path / "garbage").write_bytes(b"this is not a database at all" * 100)
    with pytest.raises(errors.StorageFailed, match="outbox"):
        open_file(tmp_path / "garbage").head()


def test_a_fork_while_it_is_busy_leaves_the_child_a_file_that_can_be_used(tmp_path: Path) -> None:
    file = open_file(tmp_path / "outbox", items_max=100_000)
    forked, begun = threading.Event(), threading.Event()

    def keep_writing(name: str) -> None:
        number = 0
        while not forked.is_set():
            file.put(write(f"{name}-{number}"), NOBODY)
            begun.set()
            number += 1

    for turn in range(5):
        forked.clear()
        begun.clear()
        writer = threading.Thread(target=keep_writing, args=(str(turn),))
        writer.start()
        assert begun.wait(WAIT_S)
        child = os.fork()
        if child == 0:
            try:
                file.put(write(f"child {turn}"), NOBODY)
                os._exit(0)
            except BaseException:
                os._exit(1)
        forked.set()
        writer.join(WAIT_S)
        assert wait_for_child(child) == 0
    bodies = contents(file)
    assert [write(f"child {turn}").body in bodies for turn in range(5)] == [True] * 5
    file.close()


def test_a_file_from_before_tasks_is_taken_over_with_what_waits_in_it(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "outbox")
    old.executescript(
        "CREATE TABLE queue (position INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE,"
        " operation TEXT NOT NULL, body BLOB NOT NULL, agent TEXT, session TEXT,"
        " queued_at REAL NOT NULL);"
        "CREATE TABLE refused (position INTEGER PRIMARY KEY, key TEXT NOT NULL,"
        " operation TEXT NOT NULL, body BLOB NOT NULL, agent TEXT, session TEXT,"
        " queued_at REAL NOT NULL, refused_at REAL NOT NULL, code TEXT NOT NULL,"
        " message TEXT NOT NULL);"
        "INSERT INTO queue VALUES (1, 'k', 'add_memory', x'80', 'a', 's', 1.0);"
    )
    old.close()
    file = open_file(tmp_path / "outbox")
    assert file.put(write("new"), Speaker("a", None, "task")) == 2
    head = file.head()
    assert head is not None and head.speaker == Speaker("a", "s", None)
    file.refuse(head, errors.NotFound("no such parent"))
    head = file.head()
    assert head is not None and head.speaker.task == "task"
    assert file.counts() == (1, 1)
    file.close()
