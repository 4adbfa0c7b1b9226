"""The pages of the documentation as tests read them: their code blocks, headings and links.

A block that no test can run says why in a comment before it, which a reader does not see:

    <!-- not run: it needs an editor -->
    ```sh
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.harness.forks import ROOT

FENCE = re.compile(r"^```(.*)$")
NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")
HEADING = re.compile(r"^#{1,6} +(.+?) *$")
LINK = re.compile(r"\]\(([^)\s]+)\)|\b(?:href|src)=\"([^\"]+)\"")
_code = re.compile(r"`[^`]*`")
_marked = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class Block(NamedTuple):
    """A piece of code in a page."""

    language: str
    source: str
    line: int
    """Of the page, where its source begins."""
    not_run: str | None
    """Why no test runs it."""


class Page:
    """One page, read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()
        self.blocks: list[Block] = []
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self._read(path.read_text(encoding="utf-8").splitlines())

    def _read(self, lines: list[str]) -> None:
        reason: str | None = None
        numbered = enumerate(lines, 1)
        for number, line in numbered:
            fence = FENCE.match(line)
            if fence:
                inside = list(_until_closed(numbered))
                source = "".join(f"{text}\n" for text in inside)
                self.blocks.append(Block(fence[1], source, number + 1, reason))
            elif heading := HEADING.match(line):
                self.anchors.add(self._anchor(heading[1]))
            self.links += [found[1] or found[2] for found in LINK.finditer(_code.sub("", line))]
            mark = NOT_RUN.match(line)
            if mark or line.strip():
                reason = mark[1] if mark else None

    def _anchor(self, heading: str) -> str:
        """How a heading is linked to; the second of the same text has a number."""
        text = _marked.sub(r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        same = sum(
            known == anchor or bool(re.fullmatch(rf"{re.escape(anchor)}-\d+", known))
            for known in self.anchors
        )
        return f"{anchor}-{same}" if same else anchor


def _until_closed(numbered: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in numbered:
        if line.startswith("```"):
            return
        yield line
    raise AssertionError("a code block is never closed")


PAGES = {
    page.name: page
    for page in map(Page, [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))])
}
"""Every page by its name, such as `docs/search.md`."""
