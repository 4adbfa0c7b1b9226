"""Markdown cut along its headings; code blocks are kept whole where they fit."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec

from recollect.orchestrator.documents.packing import Range, Unit, text_of, units_of
from recollect.protocol.errors import Unsupported

FRONT_MATTER_LINES_MAX = 200
HEADING_CHARS_MAX = 120
SMALL_PART = 4
"""A section shorter than this part of a chunk shares one with its neighbours."""
_mark_up = re.compile(r"[*_`]+|!?\[([^\]]*)\]\([^)]*\)|\s#+$")


class Section(msgspec.Struct):
    """A heading with what stands below it."""

    level: int
    path: tuple[str, ...]
    start: int
    end: int
    opened: int
    """How many headings of the path stand at the beginning of its text."""
    children: list[Section]


class Outline(msgspec.Struct, frozen=True):
    """Where headings and code blocks of a text stand, by lines."""

    headings: list[tuple[int, int, str]]
    """The line, the level and the words of each."""
    code: list[Range]
    title: str | None


def outline_of(lines: Sequence[str]) -> Outline:
    """The outline of a markdown text."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise Unsupported(
            "Markdown is read with the package markdown-it-py: pip install 'recollect[documents]'.",
            extra="documents",
        ) from None
    # Only blocks are wanted; what stands inside of a paragraph stays as it is.
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    skipped, named = _front_matter(lines)
    tokens = parser.parse("\n".join(lines[skipped:]))
    headings: list[tuple[int, int, str]] = []
    code: list[Range] = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.map is None:
            continue
        first, last = token.map[0] + skipped, min(token.map[1] + skipped, len(lines))
        if token.type == "heading_open" and token.level == 0 and following is not None:
            headings.append((first, int(token.tag[1:]), _plain(following.content)))
        elif token.type in ("fence", "code_block"):
            while last > first and not lines[last - 1].strip():
                last -= 1
            code.append((first, last))
    return Outline(
        headings, code, named or next((words for _, _, words in headings if words), None)
    )


def _front_matter(lines: Sequence[str]) -> tuple[int, str | None]:
    """How many lines stand in front of the text as its properties, and the title among them."""
    if not lines or lines[0].rstrip() != "---":
        return 0, None
    title = None
    for place, line in enumerate(lines[1:FRONT_MATTER_LINES_MAX], 1):
        if line.rstrip() in ("---", "..."):
            return place + 1, title
        if line.startswith("title:"):
            title = line.removeprefix("title:").strip().strip("\"'") or None
    return 0, None


def _plain(heading: str) -> str:
    words = _mark_up.sub(lambda found: found.group(1) or "", " ".join(heading.split()))
    return words.strip()[:HEADING_CHARS_MAX]


def markdown_runs(lines: Sequence[str], outline: Outline, size: int) -> Iterator[list[Unit]]:
    """Runs of units that may be packed together, none across the bounds of a large section."""
    top = Section(level=0, path=(), start=0, end=len(lines), opened=0, children=[])
    stack = [top]
    for line, level, words in outline.headings:
        while stack[-1].level >= level:
            stack.pop().end = line
        parent = stack[-1]
        child = Section(level, (*parent.path, words), line, len(lines), 1, [])
        parent.children.append(child)
        stack.append(child)
    for open_ in stack[1:]:
        open_.end = len(lines)
    yield from _Cutting(lines, outline.code, size).runs(top)


class _Cutting:
    """One document on its way into units."""

    def __init__(self, lines: Sequence[str], code: Sequence[Range], size: int) -> None:
        self._lines = lines
        self._code = code
        self._size = size

    def runs(self, section: Section) -> Iterator[list[Unit]]:
        """What a section that is too long for one chunk is cut into."""
        own_end = section.children[0].start if section.children else section.end
        run: list[Unit] = []
        if section.children and section.path and self._is_bare(section, own_end):
            # A heading alone says little: it goes with what comes first below it.
            first = section.children[0]
            first.start, first.opened = section.start, section.opened + 1
        else:
            run = self._own(section, own_end)
            if sum(len(unit.text) for unit in run) * SMALL_PART >= self._size:
                yield run
                run = []
        for child in section.children:
            text = text_of(self._lines, child.start, child.end)
            if len(text) > self._size:
                if run:
                    yield run
                run = []
                yield from self.runs(child)
                continue
            unit = Unit(child.start, text, "\n\n", child.path, child.opened)
            if len(text) * SMALL_PART < self._size:
                run.append(unit)
                continue
            if run:
                yield run
            run = []
            yield [unit]
        if run:
            yield run

    def _own(self, section: Section, end: int) -> list[Unit]:
        """What stands in a section itself; only the first unit begins with its heading."""
        first, last = (bisect_left(self._code, (line, 0)) for line in (section.start, end))
        code = self._code[first:last]
        units = units_of(self._lines, section.start, end, self._size, code)
        opened = section.opened
        placed = []
        for place, unit in enumerate(units):
            placed.append(
                msgspec.structs.replace(unit, path=section.path, opened=opened if place == 0 else 0)
            )
        return placed

    def _is_bare(self, section: Section, end: int) -> bool:
        """Whether nothing but headings stands between the beginning of a section and its first
        child."""
        filled = [line for line in self._lines[section.start : end] if line.strip()]
        # A heading may be underlined, and so take two lines.
        return len(filled) <= section.opened or all(
            line.lstrip().startswith("#") or not line.strip().strip("=-") for line in filled[1:]
        )
