"""How a score came about, as a small table with bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recollect.cli.output import BAR_CELLS, bar, one_line

MEANINGS_FROM_COLUMNS = 60
NUMBER_CELLS = 6
NEGLIGIBLE = 0.0005

# A part that is not here is shown by its name alone.
MEANINGS = {
    "lexical": "words in common",
    "semantic": "nearness in meaning",
    "author": "by the person asked about",
    "mention": "speaks of the person asked about",
    "when": "has a time, and a time was asked for",
    "period": "from the time asked about",
    "question": "only asks, answers nothing",
    "specifics": "has names, numbers or quotations",
    "turns": "what was said around it fits",
    "reply": "replies to a question that fits",
    "session": "its conversation fits",
    "recency": "how new it is",
    "importance": "how important it is",
    "strength": "how well it is remembered",
}


def explanation_of(explanation: Mapping[str, Any], columns: int) -> Padding:
    """The parts of a score, the largest first, then what else is said of it."""
    parts = dict(_flat(explanation))
    numbers = {name: value for name, value in parts.items() if _is_number(value)}
    told = {name: value for name, value in parts.items() if not _is_number(value)}
    largest = max((abs(value) for value in numbers.values()), default=0.0)
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True, min_width=BAR_CELLS)
    table.add_column(no_wrap=True, min_width=NUMBER_CELLS, justify="right")
    table.add_column(style="dim", overflow="ellipsis", no_wrap=True)
    for name, value in sorted(numbers.items(), key=lambda part: -abs(part[1])):
        if abs(value) < NEGLIGIBLE:
            continue
        table.add_row(
            one_line(name),
            bar(abs(value) / largest, "green" if value > 0 else "red"),
            f"{value:+.3f}",
            MEANINGS.get(name, "") if columns >= MEANINGS_FROM_COLUMNS else "",
        )
    for name, value in told.items():
        table.add_row(one_line(name), Text(""), Text(""), Text(one_line(str(value))))
    return Padding(table, (0, 0, 0, 2))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flat(explanation: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values, with those of inner objects under their own names."""
    for name, value in explanation.items():
        if isinstance(value, Mapping):
            # The parts themselves need no heading; anything else keeps it.
            yield from _flat(value, above if name == "parts" else f"{above}{name}.")
        elif value is not None:
            yield f"{above}{name}", value
