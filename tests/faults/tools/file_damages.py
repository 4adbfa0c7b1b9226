"""Ways to damage a database file at rest, as disks, copies and people do.

A damage is called with the file and a source of randomness, and says what it did.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path, random.Random], str]

PAGE_BYTES = 4_096
HEADER_BYTES = 100


def pages(path: Path) -> int:
    return path.stat().st_size // PAGE_BYTES


def read(path: Path, page: int) -> bytes:
    with path.open("rb") as file:
        file.seek(page * PAGE_BYTES)
        return file.read(PAGE_BYTES)


def write(path: Path, page: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(page * PAGE_BYTES)
        file.write(content)


def cut_at_a_page(path: Path, chance: random.Random) -> str:
    """As a copy that was broken off leaves it."""
    kept = chance.randrange(1, pages(path))
    os.truncate(path, kept * PAGE_BYTES)
    return f"cut to {kept} pages"


def cut_anywhere(path: Path, chance: random.Random) -> str:
    length = chance.randrange(1, path.stat().st_size)
    os.truncate(path, length)
    return f"cut to {length} bytes"


def empty(path: Path, _: random.Random) -> str:
    os.truncate(path, 0)
    return "emptied"


def delete(path: Path, _: random.Random) -> str:
    path.unlink()
    return "deleted"


def blank_page(path: Path, chance: random.Random) -> str:
    """As a file system that lost a block shows it."""
    page = chance.randrange(pages(path))
    write(path, page, bytes(PAGE_BYTES))
    return f"page {page} is all zeros"


def scribble_page(path: Path, chance: random.Random) -> str:
    page = chance.randrange(pages(path))
    write(path, page, chance.randbytes(PAGE_BYTES))
    return f"page {page} is noise"


def swap_pages(path: Path, chance: random.Random) -> str:
    """Both are whole, and in the wrong place."""
    one, other = chance.sample(range(pages(path)), 2)
    first, second = read(path, one), read(path, other)
    write(path, one, second)
    write(path, other, first)
    return f"pages {one} and {other} changed places"


def misdirect_page(path: Path, chance: random.Random) -> str:
    """What was meant for one page was written to another."""
    source, target = chance.sample(range(pages(path)), 2)
    write(path, target, read(path, source))
    return f"page {target} is a copy of page {source}"


def tear_page(path: Path, chance: random.Random) -> str:
    """Half of a page is of another one, as when power fails between two sectors."""
    one, other = chance.sample(range(pages(path)), 2)
    half = PAGE_BYTES // 2
    write(path, one, read(path, one)[:half] + read(path, other)[half:])
    return f"the second half of page {one} is of page {other}"


def flip_page(path: Path, chance: random.Random) -> str:
    """Every bit of a page is the other one."""
    page = chance.randrange(pages(path))
    write(path, page, bytes(byte ^ 0xFF for byte in read(path, page)))
    return f"page {page} is flipped"


def scribble_header(path: Path, chance: random.Random) -> str:
    start = chance.randrange(HEADER_BYTES - 16)
    content = read(path, 0)
    write(path, 0, content[:start] + chance.randbytes(16) + content[start + 16 :])
    return f"the header has noise from byte {start}"


ALL: tuple[Damage, ...] = (
    cut_at_a_page,
    scribble_page,
    swap_pages,
    blank_page,
    flip_page,
    misdirect_page,
    tear_page,
    empty,
    cut_anywhere,
    scribble_header,
    delete,
)
