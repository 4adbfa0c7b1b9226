"""Ways to damage the folder of the vector index, of which each leaves the memories as they were.

A damage is called with the folder of one model's index and a source of randomness, and says what it
did. It works with whatever an earlier damage has left.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path, random.Random], str]

MANIFEST, VECTORS = "manifest.json", "vectors.f32"
FLIPS_MAX = 64
SCRIBBLED_BYTES_MAX = 4_096


def segments(index: Path) -> list[Path]:
    """The folders of finished segments."""
    return sorted(path for path in index.glob("segment-*") if path.suffix == "" and path.is_dir())


def files(index: Path) -> list[Path]:
    """The files of finished segments."""
    return sorted(p for folder in segments(index) for p in folder.iterdir() if p.is_file())


def one_file(index: Path, chance: random.Random) -> Path:
    """Any file, and half of the time one with vectors: those are most of what lies on a disk."""
    found = files(index)
    vectors = [path for path in found if path.name == VECTORS]
    return chance.choice(vectors if vectors and chance.random() < 0.5 else found)


def truncate(index: Path, chance: random.Random) -> str:
    path = one_file(index, chance)
    length = chance.randrange(path.stat().st_size) if path.stat().st_size else 0
    os.truncate(path, length)
    return f"{path} truncated to {length} bytes"


def lengthen(index: Path, chance: random.Random) -> str:
    path = one_file(index, chance)
    with path.open("ab") as file:
        file.write(chance.randbytes(chance.randint(1, 4096)))
    return f"{path} lengthened"


def flip_bits(index: Path, chance: random.Random) -> str:
    path = one_file(index, chance)
    content = bytearray(path.read_bytes())
    places = [chance.randrange(len(content)) for _ in range(chance.randint(1, FLIPS_MAX))]
    for place in set(places):
        content[place] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return f"{path} has flipped bits at {places}"


def scribble(index: Path, chance: random.Random) -> str:
    """Something else is written over a part of a file."""
    path = one_file(index, chance)
    content = path.read_bytes()
    start = chance.randrange(len(content))
    length = min(chance.randint(1, SCRIBBLED_BYTES_MAX), len(content) - start)
    path.write_bytes(content[:start] + chance.randbytes(length) + content[start + length :])
    return f"{path} has other bytes from {start} to {start + length}"


def blank(index: Path, chance: random.Random) -> str:
    """A file of the right length without its content, as some file systems leave after a crash."""
    path = one_file(index, chance)
    path.write_bytes(bytes(path.stat().st_size))
    return f"{path} is all zeros"


def swap_files(index: Path, chance: random.Random) -> str:
    """Two files change places; of the same kind, where there are two."""
    one = one_file(index, chance)
    others = [path for path in files(index) if path.name == one.name and path != one]
    two = chance.choice(others or [path for path in files(index) if path != one])
    _exchange(one, two)
    return f"{one} and {two} changed places"


def swap_segments(index: Path, chance: random.Random) -> str:
    found = segments(index)
    one, two = chance.sample(found, 2) if len(found) > 1 else (found[0], index / "segment-00000000")
    _exchange(one, two)
    return f"{one} and {two} changed places"


def copy_segment(index: Path, chance: random.Random) -> str:
    source = chance.choice(segments(index))
    target = index / f"segment-{chance.randint(10_000_000, 99_999_999)}"
    shutil.copytree(source, target)
    return f"{source} is also there as {target}"


def delete_file(index: Path, chance: random.Random) -> str:
    path = one_file(index, chance)
    path.unlink()
    return f"{path} deleted"


def delete_segment(index: Path, chance: random.Random) -> str:
    path = chance.choice(segments(index))
    shutil.rmtree(path)
    return f"{path} deleted"


def delete_model(index: Path, _: random.Random) -> str:
    shutil.rmtree(index)
    return f"{index} deleted"


def delete_index(index: Path, _: random.Random) -> str:
    shutil.rmtree(index.parent)
    return f"{index.parent} deleted"


def leave_strays(index: Path, chance: random.Random) -> str:
    """Leftovers of every kind, with names that are used here and names that are not."""
    index.mkdir(parents=True, exist_ok=True)
    unfinished = index / f"segment-{chance.randint(1, 99_999_999):08}.partial"
    unfinished.mkdir(exist_ok=True)
    (unfinished / "vectors.f32").write_bytes(chance.randbytes(1000))
    (index / f"segment-{chance.randint(1, 99_999_999):08}.removed.partial").write_bytes(b"")
    (index / f"segment-{chance.randint(10_000, 99_999):08}").mkdir(exist_ok=True)
    (index / "segment-00099999999").write_bytes(b"a file by the name of a segment")
    (index / "notes.tmp").write_bytes(chance.randbytes(10))
    (index.parent / "stray").mkdir(exist_ok=True)
    return f"strays in {index}"


def folder_for_file(index: Path, chance: random.Random) -> str:
    path = one_file(index, chance)
    path.unlink()
    path.mkdir()
    if chance.random() < 0.5:
        (path / "something").write_text("inside")
    return f"{path} became a folder"


def file_for_segment(index: Path, chance: random.Random) -> str:
    path = chance.choice(segments(index))
    shutil.rmtree(path)
    path.write_bytes(chance.randbytes(chance.randint(0, 100)))
    return f"{path} became a file"


def link_to_nowhere(index: Path, chance: random.Random) -> str:
    path = one_file(index, chance)
    path.unlink()
    path.symlink_to(index / "nowhere")
    return f"{path} became a link to nowhere"


def empty_manifest(index: Path, chance: random.Random) -> str:
    path = chance.choice(segments(index)) / MANIFEST
    path.write_bytes(b"")
    return f"{path} is empty"


def foreign_model(index: Path, chance: random.Random) -> str:
    return _rewrite_manifest(index, chance, model="another-model/64")


def foreign_format(index: Path, chance: random.Random) -> str:
    return _rewrite_manifest(index, chance, format=999)


def other_dimensions(index: Path, chance: random.Random) -> str:
    return _rewrite_manifest(index, chance, dimensions=48)


def other_rows(index: Path, chance: random.Random) -> str:
    return _rewrite_manifest(index, chance, rows=chance.choice([-1, 0, 1, 7, 10**9]))


ALL: tuple[Damage, ...] = (
    flip_bits,
    scribble,
    blank,
    truncate,
    swap_files,
    delete_file,
    delete_segment,
    delete_model,
    delete_index,
    leave_strays,
    folder_for_file,
    file_for_segment,
    foreign_model,
    empty_manifest,
    swap_segments,
    copy_segment,
    lengthen,
    link_to_nowhere,
    other_dimensions,
    other_rows,
    foreign_format,
)

UNDER_A_RUNNING_ONE: tuple[Damage, ...] = (
    delete_file,
    swap_files,
    delete_segment,
    swap_segments,
    folder_for_file,
    file_for_segment,
    delete_model,
    leave_strays,
    delete_index,
)
"""Those that give names to other files or to none, and leave what is mapped as it is."""


def _exchange(one: Path, two: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    if two.exists():
        two.rename(one)
    aside.rename(two)


def _rewrite_manifest(index: Path, chance: random.Random, **changes: object) -> str:
    """A manifest that says something else and is consistent in itself."""
    path = chance.choice(segments(index)) / MANIFEST
    try:
        body = json.loads(path.read_bytes().rpartition(b"\n")[0])
    except (OSError, ValueError):
        return f"{path} was damaged before"
    written = json.dumps({**body, **changes}).encode()
    path.write_bytes(written + b"\n" + hashlib.sha256(written).hexdigest().encode())
    return f"{path} says {changes}"
