"""The power may go at any write while a file is wiped: all that was committed is there.

Every write and sync of SQLite and of the wiping is recorded. Then the files are made again as they
may be found on a disk after a loss of power: what was synced is there, of everything after it each
sector is there or not, by chance.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from tests.unit.orchestrator.storage.test_slack import change, check_integrity, create, dump, wiping

SECTOR_BYTES = 512
LOSSES = 40
WIPINGS = 3


class Event(NamedTuple):
    kind: str
    name: str
    place: int = 0
    data: bytes = b""


class Recorder(apsw.VFS):
    """The file layer that everything goes through, with a memory."""

    def __init__(self) -> None:
        super().__init__("recorder", "unix", makedefault=True)
        self.events: list[Event] = []

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return RecordedFile(self.events, name, flags)


class RecordedFile(apsw.VFSFile):
    def __init__(self, events: list[Event], name: Any, flags: list[int]) -> None:
        self._events = events
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("unix", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self._events.append(Event("write", self._path, offset, bytes(data)))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._events.append(Event("sync", self._path))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._events.append(Event("truncate", self._path, newsize))


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    try:
        yield recorder
    finally:
        recorder.unregister()


def after_loss(events: list[Event], name: str, chance: random.Random) -> bytes:
    """What may be left of a file."""
    content = bytearray()
    mine = [event for event in events if event.name == name]
    synced = max((n for n, event in enumerate(mine) if event.kind == "sync"), default=-1)
    for number, event in enumerate(mine):
        if event.kind == "truncate":
            del content[event.place :]
            content.extend(bytes(event.place - len(content)))
        if event.kind != "write":
            continue
        place, end = event.place, event.place + len(event.data)
        while place < end:
            stop = min(end, (place // SECTOR_BYTES + 1) * SECTOR_BYTES)
            if number <= synced or chance.random() < 0.5:
                content.extend(bytes(max(0, stop - len(content))))
                content[place:stop] = event.data[place - event.place : stop - event.place]
            place = stop
    return bytes(content)


@pytest.mark.parametrize("page_bytes", [512, 4096])
def test_a_loss_of_power_while_wiping_loses_nothing(
    tmp_path: Path, recorder: Recorder, page_bytes: int
) -> None:
    path, lost = tmp_path / "a.db", tmp_path / "lost.db"
    chance, events = random.Random(page_bytes), recorder.events
    # What was stored when so many events had happened; and where a wiping begins and ends.
    states: list[tuple[int, list[Any]]] = []
    wipings: list[tuple[int, int]] = []
    with contextlib.closing(create(path, page_bytes)) as connection, wiping(path) as work:
        change(connection, chance, 60)
        for number in range(WIPINGS):
            change(connection, chance, 5)
            if number:
                # Then no log makes up for what becomes of the file.
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            states.append((len(events), dump(connection)))
            assert work.once(10), "there was nothing to wipe"
            wipings.append((states[-1][0], len(events)))
    for _ in range(LOSSES):
        (_, stored), (begin, end) = chance.choice(list(zip(states, wipings, strict=True)))
        so_far = events[: chance.randint(begin, end)]
        for suffix in ("", "-wal"):
            Path(f"{lost}{suffix}").write_bytes(after_loss(so_far, f"{path}{suffix}", chance))
        with contextlib.closing(apsw.Connection(str(lost), vfs="unix")) as connection:
            check_integrity(connection)
            assert dump(connection) == stored
