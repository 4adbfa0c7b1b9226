"""The outbox as a file: order, bounds, keys, damage."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from recollect.client.encoding import Call, prepare
from recollect.client.outbox import OutboxFile
from recollect.protocol import errors
from recollect.protocol.operations import AddMemory


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
    assert [file.put(call, "agent", None) for call in calls] == list(range(1, 21))
    file.close()
    again = open_file(tmp_path / "outbox")
    assert again.counts() == (20, 0)
    head = again.head()
    assert head is not None
    assert (head.agent, head.session, head.operation) == ("agent", None, "add_memory")
    assert contents(again) == [call.body for call in calls]
    again.close()


def test_refuses_more_than_the_limit_by_its_name(tmp_path: Path) -> None:
    file = open_file(tmp_path / "outbox", items_max=3)
    for n in range(3):
        file.put(write(str(n)), None, None)
    with pytest.raises(errors.LimitExceeded, match="outbox_items_max"):
        file.put(write("one too many"), None, None)
    head = file.head()
    assert head is not None
    file.remove(head)
    assert file.put(write("now there is room"), None, None) == 3
    file.close()


def test_the_same_key_waits_once_and_with_another_payload_is_a_conflict(tmp_path: Path) -> None:
    file = open_file(tmp_path / "outbox")
    assert file.put(write("text", "k"), None, None) == 1
    assert file.put(write("text", "k"), None, None) == 1
    with pytest.raises(errors.IdempotencyConflict):
        file.put(write("another", "k"), None, None)
    assert file.counts() == (1, 0)
    file.close()


def test_what_is_refused_is_put_aside_with_its_reason(tmp_path: Path) -> None:
    file = open_file(tmp_path / "outbox")
    file.put(write("bad"), None, None)
    file.put(write("good"), None, None)
    head = file.head()
    assert head is not None
    file.refuse(head, errors.NotFound("no such parent"))
    assert file.counts() == (1, 1)
    assert contents(file) == [write("good").body]
    file.close()


def test_two_files_on_one_path_share_one_queue(tmp_path: Path) -> None:
    one, two = open_file(tmp_path / "outbox"), open_file(tmp_path / "outbox")
    one.put(write("a"), None, None)
    assert two.put(write("b"), None, None) == 2
    assert contents(one) == [write("a").body, write("b").body]
    assert two.head() is None
    one.close()
    two.close()


def test_a_file_that_cannot_be_used_is_a_typed_error(tmp_path: Path) -> None:
    missing = open_file(tmp_path / "no" / "such" / "folder")
    with pytest.raises(errors.StorageFailed, match="outbox"):
        missing.put(write("x"), None, None)
    (tmp_path / "garbage").write_bytes(b"this is not a database at all" * 100)
    with pytest.raises(errors.StorageFailed, match="outbox"):
        open_file(tmp_path / "garbage").head()
