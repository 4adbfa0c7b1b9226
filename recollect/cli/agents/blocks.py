"""Records as blocks: a heading, lines below it, and in small print what else is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from recollect.cli.facts import facts_text
from recollect.cli.output import one_line, out

INDENT = 3


class Block(NamedTuple):
    """One record as it is shown."""

    heading: str
    lines: Sequence[Text]
    facts: Iterable[str | None]


def show_blocks(blocks: Iterable[Block]) -> None:
    """One below another, with room in between."""
    for place, block in enumerate(blocks):
        if place:
            out.print()
        facts = facts_text(block.facts, out.width - INDENT)
        out.print(Text(one_line(block.heading), "bold"))
        out.print(Padding(Group(*block.lines, facts), (0, 0, 0, INDENT), expand=False))
