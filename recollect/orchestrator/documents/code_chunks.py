"""Programs cut between their definitions; a definition is kept whole where it fits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from recollect.orchestrator.documents.packing import WHOLE_SIZES_MAX, Unit, units_of

# What begins a definition in most languages, even where no blank line stands before it.
_defines = re.compile(
    r"(export\s+|default\s+|pub(\([a-z]+\))?\s+|public\s+|private\s+|protected\s+|static\s+|"
    r"abstract\s+|final\s+|async\s+|unsafe\s+)*"
    r"(def|class|function|func|fn|fun|sub|proc|impl|trait|struct|enum|interface|module|"
    r"namespace|CREATE)\b"
)
# What belongs to the line below it: decorators, attributes and comments.
_leads_on = re.compile(r"(@|#|//|/\*|\*|--|;|%)")
# What still belongs to the definition above it.
_closes = re.compile(r"[\])}]|end\b|else\b|elif\b|except\b|finally\b|catch\b|EOF\b")


def code_runs(lines: Sequence[str], size: int) -> Iterator[list[Unit]]:
    """One run of units: definitions, and the parts of those that are too long."""
    units: list[Unit] = []
    starts = [*_starts(lines), len(lines)]
    for start, end in zip([0, *starts], starts, strict=False):
        while start < end and not lines[start].strip():
            start += 1
        if start == end:
            continue
        chars = sum(map(len, lines[start:end])) + end - start
        # What is longer than a chunk and yet kept whole stands alone.
        whole = [(start, _filled_end(lines, start, end))] if chars <= WHOLE_SIZES_MAX * size else []
        units += units_of(lines, start, end, size, whole)
    yield units


def _starts(lines: Sequence[str]) -> Iterator[int]:
    """The lines at which something new begins at the outermost level."""
    for place in range(1, len(lines)):
        line, before = lines[place], lines[place - 1]
        if not line.strip() or line[0].isspace() or _closes.match(line):
            continue
        parted = not before.strip()
        defined = bool(_defines.match(line)) and not _leads_on.match(before)
        if parted or defined:
            yield place


def _filled_end(lines: Sequence[str], start: int, end: int) -> int:
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end
