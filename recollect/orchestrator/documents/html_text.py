"""HTML as plain text with its headings, lists and code blocks."""

from __future__ import annotations

import re
from typing import Any

from recollect.orchestrator.documents.markdown_chunks import HEADING_CHARS_MAX, Outline
from recollect.orchestrator.documents.packing import Range
from recollect.protocol.errors import Unsupported


def names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


TEXT = "-text"
LEFT_OUT = names(
    "script style template noscript svg math iframe object canvas head nav form button select "
    "-comment"
)
# What begins a line of its own; everything else stands within one.
BLOCKS = names(
    "address article aside blockquote body dd details div dl dt fieldset figcaption figure "
    "footer header hr html li main ol p section summary table tbody td tfoot th thead tr ul"
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
# After these a blank line follows, so that they are paragraphs.
PARTED = names("p ul ol dl table blockquote figure section article div details")
CELLS = names("td th")
FENCE = "```"
_spaces = re.compile(r"[ \t\n\r\f\v]+")


def html_text(source: str) -> tuple[str, Outline]:
    """The text of a page, and where its headings and code blocks stand in it."""
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError:
        raise Unsupported(
            "HTML is read with the package selectolax: pip install 'recollect[documents]'.",
            extra="documents",
        ) from None
    tree = LexborHTMLParser(source)
    titled = tree.css_first("title")
    title = _plain(titled.text()) if titled is not None else None
    page = _Page()
    if tree.body is not None:
        page.walk(tree.body)
    page.end_line()
    headings = [(line, level, words) for line, level, words in page.headings if words]
    found = title or next((words for _, _, words in headings), None)
    return "\n".join(page.lines), Outline(headings, page.code, found)


def _plain(text: str) -> str:
    return " ".join(text.split())[:HEADING_CHARS_MAX]


class _Page:
    """A page on its way into lines. Walked without recursion: pages can be nested very deeply."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.headings: list[tuple[int, int, str]] = []
        self.code: list[Range] = []
        self._line: list[str] = []
        self._lead = ""

    def walk(self, body: Any) -> None:
        # Nodes to enter, and after their children the same ones to leave.
        waiting: list[tuple[Any, bool]] = [(body, False)]
        while waiting:
            node, entered = waiting.pop()
            if entered:
                self._leave(node.tag)
            elif node.tag == TEXT:
                self._line.append(_spaces.sub(" ", node.text(deep=False) or ""))
            elif self._enter(node):
                waiting.append((node, True))
                children = list(node.iter(include_text=True))
                waiting += [(child, False) for child in reversed(children)]

    def _enter(self, node: Any) -> bool:
        """Begin an element; whether its children are to be gone through."""
        tag = node.tag
        if tag in LEFT_OUT:
            return False
        if tag == "br":
            self.end_line()
            return False
        if tag == "pre":
            self._add_code(node.text() or "")
            return False
        if tag in HEADINGS:
            self._add_heading(HEADINGS[tag], _plain(node.text(separator=" ") or ""))
            return False
        if tag in CELLS:
            if self._line:
                self._line.append(" | ")
        elif tag in BLOCKS:
            self.end_line()
            if tag == "li":
                self._lead = "- "
        return True

    def _leave(self, tag: str) -> None:
        if tag in BLOCKS and tag not in CELLS:
            self.end_line()
            self._lead = ""
        if tag in PARTED:
            self._part()

    def end_line(self) -> None:
        """Finish the line that is being put together."""
        text = _spaces.sub(" ", "".join(self._line)).strip(" |")
        self._line.clear()
        if text:
            self.lines.append(self._lead + text)
            self._lead = ""

    def _part(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def _add_heading(self, level: int, words: str) -> None:
        self.end_line()
        if words:
            self._part()
            self.headings.append((len(self.lines), level, words))
            self.lines += [f"{'#' * level} {words}", ""]

    def _add_code(self, text: str) -> None:
        self.end_line()
        lines = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n").split("\n")
        if any(line.strip() for line in lines):
            self._part()
            start = len(self.lines)
            self.lines += [FENCE, *lines, FENCE]
            self.code.append((start, len(self.lines)))
            self.lines.append("")
