"""How a page of a SQLite file is laid out, as far as one must know to tell what in it is unused.

After the header of a tree's page come the places of its cells, then a gap, then the cells up to the
end. Between cells there may be free blocks, in a chain by their place, and fragments of up to three
bytes, which are only counted. See https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

Span = tuple[int, int]
"""From one place in a page up to another."""

FILE_HEADER_BYTES = 100
INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
KINDS = frozenset((INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF))
# Pages that are not part of a tree begin with the number of a page. In a file of more pages than
# this such a number could be taken for a kind.
PAGES_MAX = (INDEX_INNER << 24) - 1
CELL_BYTES_MIN = 4
VARINT_BYTES_MAX = 9


class Misfit(Exception):
    """A file or a page is not laid out as expected; nothing in it was changed."""


def check_header(header: bytes, file_bytes: int) -> int:
    """The size of a page, if the file is one whose pages are understood here."""
    if len(header) < FILE_HEADER_BYTES or not header.startswith(b"SQLite format 3\0"):
        raise Misfit("it is not a database")
    size = int.from_bytes(header[16:18])
    size = 65_536 if size == 1 else size
    if size < 512 or size & (size - 1):
        raise Misfit(f"its pages cannot have {size} bytes")
    if header[18:20] != b"\2\2":
        raise Misfit("it has no write-ahead log")
    if header[20]:
        raise Misfit("the end of each page is reserved for something else")
    if header[52:56] != bytes(4):
        raise Misfit("it is kept compact by itself, and has pages of other kinds for that")
    if file_bytes // size > PAGES_MAX:
        raise Misfit(f"it has more than {PAGES_MAX:,} pages")
    return size


def loose_spans(number: int, page: bytes) -> list[Span]:
    """What in a page seems unused, by a quick look that may be mistaken."""
    start = FILE_HEADER_BYTES if number == 1 else 0
    if page[start] not in KINDS:
        return []
    first, content = _gap(start, page)
    spans = [(first, content)] if first <= content <= len(page) else []
    block = int.from_bytes(page[start + 1 : start + 3])
    while content <= block <= len(page) - 4:
        size = int.from_bytes(page[block + 2 : block + 4])
        spans.append((block + 4, min(block + size, len(page))))
        following = int.from_bytes(page[block : block + 2])
        if following <= block:
            break
        block = following
    return spans


def unused_spans(number: int, page: bytes) -> list[Span]:
    """What in a page of a tree belongs to nothing.

    Raises Misfit unless cells, free blocks and fragments account for all that follows the gap.
    """
    start = FILE_HEADER_BYTES if number == 1 else 0
    kind = page[start]
    first, content = _gap(start, page)
    if kind not in KINDS or not first <= content <= len(page):
        raise Misfit(f"page {number} has no header of a tree's page")
    taken: list[Span] = []
    for place in range(_header_bytes(kind) + start, first, 2):
        cell = int.from_bytes(page[place : place + 2])
        if not content <= cell <= len(page) - CELL_BYTES_MIN:
            raise Misfit(f"page {number} has a cell outside of its content")
        taken.append((cell, cell + max(CELL_BYTES_MIN, _cell_bytes(kind, page, cell))))
    blocks = list(_free_blocks(number, page, start, content))
    end, fragments = content, 0
    for one, other in sorted(taken + blocks):
        if one < end:
            raise Misfit(f"page {number} has cells that overlap")
        fragments += one - end
        end = other
    if end > len(page) or fragments + len(page) - end != page[start + 7]:
        raise Misfit(f"page {number} has bytes that nothing accounts for")
    # A free block begins with the place of the next one and its own size.
    return [(first, content), *((block + 4, stop) for block, stop in blocks)]


def _free_blocks(number: int, page: bytes, start: int, content: int) -> list[Span]:
    blocks: list[Span] = []
    block, least = int.from_bytes(page[start + 1 : start + 3]), content
    while block:
        if not least <= block <= len(page) - 4:
            raise Misfit(f"page {number} has a free block out of order")
        size = int.from_bytes(page[block + 2 : block + 4])
        if not 4 <= size <= len(page) - block:
            raise Misfit(f"page {number} has a free block that does not fit")
        blocks.append((block, block + size))
        least = block + size
        block = int.from_bytes(page[block : block + 2])
    return blocks


def _header_bytes(kind: int) -> int:
    return 8 if kind in (INDEX_LEAF, TABLE_LEAF) else 12


def _gap(start: int, page: bytes) -> Span:
    """Where the places of the cells end, and where the content begins."""
    cells = int.from_bytes(page[start + 3 : start + 5])
    content = int.from_bytes(page[start + 5 : start + 7]) or 65_536
    return start + _header_bytes(page[start]) + 2 * cells, content


def _cell_bytes(kind: int, page: bytes, cell: int) -> int:
    """How many bytes of the page a cell takes."""
    place = cell
    if kind in (INDEX_INNER, TABLE_INNER):
        place += 4  # the page below
    payload, place = _varint(page, place)
    if kind == TABLE_INNER:
        return place - cell  # what was read is the number of a row
    usable = len(page)
    most = (usable - 12) * 64 // 255 - 23
    if kind == TABLE_LEAF:
        _, place = _varint(page, place)
        most = usable - 35
    if payload <= most:
        return place + payload - cell
    # The rest is on pages of its own, and the number of the first of them follows.
    least = (usable - 12) * 32 // 255 - 23
    here = least + (payload - least) % (usable - 4)
    return place + (here if here <= most else least) + 4 - cell


def _varint(page: bytes, place: int) -> tuple[int, int]:
    """A number of up to nine bytes, and the place behind it."""
    value = 0
    for count in range(VARINT_BYTES_MAX):
        if place + count >= len(page):
            raise Misfit("a cell reaches past the end of its page")
        byte = page[place + count]
        if count == VARINT_BYTES_MAX - 1:
            return value << 8 | byte, place + VARINT_BYTES_MAX
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + count + 1
    raise AssertionError("unreachable")
