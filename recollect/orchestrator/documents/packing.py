"""Putting small units of text together into chunks of about one size, and cutting large ones.

Where a chunk ends depends on the text around that place and not on how much comes before it: of
the boundaries that would do, the one whose next unit has the smallest hash is taken. So after a
change, the boundaries soon fall where they fell before, and the chunks beyond stay the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import msgspec

WHOLE_SIZES_MAX = 2
"""A code block or a function that is not longer than so many chunks is kept whole."""


class Unit(msgspec.Struct, frozen=True):
    """A piece of a document that is not divided any more."""

    line: int
    """Where it begins, counted from 0."""
    text: str
    glue: str = "\n"
    """What stands between it and the unit before it."""
    path: tuple[str, ...] = ()
    """The headings that it stands under."""
    opened: int = 0
    """How many of the last of these headings stand at the beginning of its own text."""


Range = tuple[int, int]


def pack(units: Sequence[Unit], size: int) -> list[Sequence[Unit]]:
    """Groups of neighbours, each of about a size; a unit beyond the size is a group of its own."""
    groups: list[Sequence[Unit]] = []
    start = 0
    while start < len(units):
        ends = _ends(units, start, size)
        end = ends[-1][0]
        if end < len(units):
            good = [place for place, chars in ends if 2 * chars >= size]
            end = min(good, key=lambda place: _mark(units[place].text), default=end)
        groups.append(units[start:end])
        start = end
    return groups


def _ends(units: Sequence[Unit], start: int, size: int) -> list[tuple[int, int]]:
    """Where a group that begins at `start` could end, with how long it would be."""
    chars = len(units[start].text)
    ends = [(start + 1, chars)]
    for place in range(start + 1, len(units)):
        chars += len(units[place].glue) + len(units[place].text)
        if chars > size:
            break
        ends.append((place + 1, chars))
    return ends


def _mark(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def joined(units: Sequence[Unit]) -> str:
    """The text of neighbours, as it stood in the document."""
    first, *rest = units
    return first.text + "".join(unit.glue + unit.text for unit in rest)


def text_of(lines: Sequence[str], start: int, end: int) -> str:
    """Some lines as one text, without the blank ones at its edges."""
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return "\n".join(lines[start:end])


def units_of(
    lines: Sequence[str], start: int, end: int, size: int, whole: Sequence[Range] = ()
) -> list[Unit]:
    """The paragraphs of some lines; those that are too long, line by line.

    `whole` are ranges of lines, in their order, that are not divided unless they are too long.
    """
    units: list[Unit] = []
    for first, last, kept in _parts(lines, start, end, size, whole):
        text = "\n".join(lines[first:last])
        limit = WHOLE_SIZES_MAX * size if kept else size
        if len(text) <= limit:
            units.append(Unit(first, text, "\n" * (1 + _blanks_before(lines, first))))
            continue
        for place in range(first, last):
            gap = _blanks_before(lines, place)
            for nth, piece in enumerate(cut_line(lines[place], size)):
                units.append(Unit(place, piece, "" if nth else "\n" * (1 + gap)))
    return units


def _parts(
    lines: Sequence[str], start: int, end: int, size: int, whole: Sequence[Range]
) -> Iterator[tuple[int, int, bool]]:
    """Ranges of lines: paragraphs, and what is kept whole."""
    kept = {
        first: last
        for first, last in whole
        if start <= first < last <= end
        and sum(map(len, lines[first:last])) + last - first <= WHOLE_SIZES_MAX * size
    }
    place = start
    while place < end:
        if place in kept:
            yield place, kept[place], True
            place = kept[place]
        elif not lines[place].strip():
            place += 1
        else:
            first = place
            while place < end and lines[place].strip() and (place == first or place not in kept):
                place += 1
            yield first, place, False


def _blanks_before(lines: Sequence[str], place: int) -> int:
    count = 0
    while place - count - 1 >= 0 and not lines[place - count - 1].strip():
        count += 1
    return count


def cut_line(line: str, size: int) -> Iterator[str]:
    """A line in pieces of at most a size, cut after a sentence or a word if it has any."""
    start = 0
    while len(line) - start > size:
        half = start + size // 2
        at = max(line.rfind(mark, half, start + size) for mark in (". ", "! ", "? ", "。"))
        if at < 0:
            at = line.rfind(" ", half, start + size)
        end = start + size if at < 0 else at + 1
        if line[start:end].strip():
            yield line[start:end]
        start = end
    if line[start:].strip():
        yield line[start:]
