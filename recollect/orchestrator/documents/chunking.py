"""From a text to its chunks: each with its place, its headings, and a hash to know it again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from recollect.orchestrator.documents.code_chunks import code_runs
from recollect.orchestrator.documents.markdown_chunks import Outline, markdown_runs
from recollect.orchestrator.documents.packing import Unit, joined, pack, units_of
from recollect.protocol.errors import LimitExceeded

PATH_SIGN = " > "
CUT_BY = "1"
"""The rules of cutting; another number cuts all documents anew when they are next indexed."""


class Text(msgspec.Struct, frozen=True):
    """What was read of a document, ready to be cut."""

    document_type: str
    pages: Sequence[str]
    """One, unless the document has pages."""
    outline: Outline | None = None
    """Its headings and code blocks, if it can have any."""
    title: str | None = None


class Chunk(msgspec.Struct, frozen=True):
    """A part of a document."""

    text: str
    """As it stands in the document."""
    line: int
    """Where it begins in the document, or on its page; counted from 1."""
    heading: str = ""
    """The headings that it stands under, such as `Guide > Install > Linux`."""
    above: str = ""
    """Those of them that are not in the text itself."""
    page: int | None = None

    @property
    def content(self) -> str:
        """What is remembered: the text, led by what it stands under."""
        return f"{self.above}\n\n{self.text}" if self.above else self.text

    @property
    def hash(self) -> bytes:
        return hashlib.blake2b(self.content.encode(), digest_size=16).digest()


def chunks_of(text: Text, size: int, chunks_max: int) -> list[Chunk]:
    """The chunks of a document, in their order; none is blank, and no line is lost."""
    chunks: list[Chunk] = []
    for chunk in _chunks(text, size):
        if len(chunks) == chunks_max:
            raise LimitExceeded(
                f"The document has more than {chunks_max:,} chunks; the limit is "
                "documents.chunks_max. Divide it, or raise the limit.",
                limit="documents.chunks_max",
                maximum=chunks_max,
            )
        chunks.append(chunk)
    return chunks


def _chunks(text: Text, size: int) -> Iterator[Chunk]:
    paged = text.document_type == "pdf"
    for page, page_text in enumerate(text.pages, 1):
        lines = page_text.split("\n")
        runs: Iterable[list[Unit]]
        if text.outline is not None:
            runs = markdown_runs(lines, text.outline, size)
        elif text.document_type == "code":
            runs = code_runs(lines, size)
        else:
            runs = [units_of(lines, 0, len(lines), size)]
        for run in runs:
            yield from _packed(run, size, page if paged else None)


def _packed(run: Sequence[Unit], size: int, page: int | None) -> Iterator[Chunk]:
    for group in pack(run, size):
        first = group[0]
        path = _common(group) or first.path
        yield Chunk(
            text=joined(group),
            line=first.line + 1,
            heading=PATH_SIGN.join(path),
            above=PATH_SIGN.join(first.path[: len(first.path) - first.opened]),
            page=page,
        )


def _common(group: Sequence[Unit]) -> tuple[str, ...]:
    """The headings that all units of a group stand under."""
    path = group[0].path
    for unit in group[1:]:
        while path != unit.path[: len(path)]:
            path = path[:-1]
    return path
