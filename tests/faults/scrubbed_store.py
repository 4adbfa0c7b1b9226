"""A store that is written, read, backed up and scrubbed all at once, until it is killed.

Run as a module with a folder, a seed and the bytes of a page. It says `begun`, and then a line for
each write that was acknowledged and each scrubbing that was finished.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
from functools import partial
from pathlib import Path

import apsw
import structlog

from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.storage.sqlite.storage import SqliteStorage

ROWS = 240
WRITERS = 3
BODY_BYTES_MAX = 12_000
PAUSE_S_MAX = 0.2  # for readers: what they still need is not wiped
SCRUBBED = "scrubbed"
SET = "INSERT OR REPLACE INTO properties (name, value) VALUES (?, ?)"
REMOVE = "DELETE FROM properties WHERE name = ?"
ROWS_FROM = "SELECT substr(name, 5), value FROM properties WHERE name LIKE ? ORDER BY name"
LEARN = "INSERT INTO memories_fts (rowid, content) VALUES (?, ?)"
FORGET = "DELETE FROM memories_fts WHERE rowid = ?"
MATCHING = "SELECT rowid FROM memories_fts WHERE memories_fts MATCH 'river'"


def body(num: int, generation: int) -> str | None:
    """What a row holds in its so-manieth generation; None if it is gone then."""
    chance = random.Random(num * 1_000_003 + generation)
    if chance.random() < 0.25:
        return None
    words = chance.choice([1, 20, 200, chance.randrange(BODY_BYTES_MAX // 6)])
    return " ".join(chance.choices(["river", "stone", f"n{num}"], [0.01, 0.5, 0.5], k=words))


def put(num: int, generation: int, transaction: WriteTransaction) -> None:
    text = body(num, generation)
    transaction.execute(SET, (f"gen {num}", str(generation)))
    transaction.execute(FORGET, (num,))
    if text is None:
        transaction.execute(REMOVE, (f"row {num}",))
    else:
        transaction.execute(SET, (f"row {num}", text))
        transaction.execute(LEARN, (num, text))


def generations(session: Session) -> dict[int, int]:
    """The generation of each row, after a look at everything that belongs to it."""
    found = {int(num): int(value) for num, value in session.execute(ROWS_FROM, ("gen %",))}
    texts = {int(num): value for num, value in session.execute(ROWS_FROM, ("row %",))}
    expected = {num: body(num, generation) for num, generation in found.items()}
    assert texts == {num: text for num, text in expected.items() if text is not None}
    words = {num for num, text in texts.items() if "river" in text.split()}
    assert {num for (num,) in session.execute(MATCHING)} == words
    assert session.execute("PRAGMA integrity_check(5)") == [("ok",)]
    return found


async def serve(folder: Path, chance: random.Random) -> None:
    storage = SqliteStorage(folder, loop=asyncio.get_running_loop(), page_cache_mb=1)
    known = await storage.read(generations)

    async def write(first: int) -> None:
        while True:
            num = chance.randrange(first, ROWS, WRITERS)
            known[num] = known.get(num, 0) + 1
            await storage.write(partial(put, num, known[num]))
            print(num, known[num], flush=True)

    async def read() -> None:
        while True:
            await storage.read(lambda session: [generations(session) for _ in range(2)])
            await asyncio.sleep(chance.uniform(0, PAUSE_S_MAX))

    async def back_up() -> None:
        while True:
            await storage.backup(str(folder / "backup"))
            shutil.rmtree(folder / "backup")
            await asyncio.sleep(chance.uniform(0, PAUSE_S_MAX))

    async def scrub() -> None:
        while True:
            if await storage.scrub():
                print(SCRUBBED, flush=True)

    print("begun", flush=True)
    async with asyncio.TaskGroup() as tasks:
        for work in (*(write(first) for first in range(WRITERS)), read(), back_up(), scrub()):
            tasks.create_task(work)


def main(folder: Path, seed: int, page_bytes: int) -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    if not (folder / DATABASE_NAME).exists():
        connection = apsw.Connection(str(folder / DATABASE_NAME))
        connection.pragma("page_size", page_bytes)
        connection.pragma("journal_mode", "wal")
        connection.close()
    shutil.rmtree(folder / "backup", ignore_errors=True)
    asyncio.run(serve(folder, random.Random(seed)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
