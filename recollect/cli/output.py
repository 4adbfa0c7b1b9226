"""How commands speak: JSON for programs; for people, text that never carries out what it quotes.

What is stored is data. A memory may hold escape sequences, and a terminal would obey them, so
stored text is shown through `clean` and as plain text, never as markup.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from recollect.cli.failures import Failure
from recollect.protocol.explanations import BY_CODE

BAR_CELLS = 5
SHORT_ID_CHARS = 8

# Stored text is neither coloured nor turned into pictures, and what looks like markup is text too.
PLAIN = {"highlight": False, "emoji": False, "markup": False}
out = Console(**PLAIN)  # type: ignore[arg-type]
err = Console(stderr=True, **PLAIN)  # type: ignore[arg-type]

# C0 without tab and newline, DEL, C1, and the marks that reorder the text around them.
_DANGEROUS = [
    *(code for code in range(0x20) if code not in (0x09, 0x0A)),
    *range(0x7F, 0xA0),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
]
_CLEANED = {code: "\ufffd" for code in _DANGEROUS}

AGES_S = (
    (365 * 86_400, "year"),
    (30 * 86_400, "month"),
    (86_400, "day"),
    (3_600, "hour"),
    (60, "minute"),
)
BYTE_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def clean(text: str) -> str:
    """Text that a terminal only shows: control characters are replaced."""
    return text.translate(_CLEANED)


def one_line(text: str) -> str:
    """The text on one line, fit for a cell of a table."""
    return clean(" ".join(text.split()))


def plain(value: Any) -> str:
    """Text as it is, all else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def bare_table() -> Table:
    """A table without lines, its columns a little apart."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")


def short_id(memory_id: str) -> str:
    """The end of an id, which tells memories apart; ids begin with their time."""
    return memory_id[-SHORT_ID_CHARS:]


def bar(fraction: float, style: str = "") -> Text:
    """A number from 0 to 1 as a small bar, coloured by how much it is if no style is given."""
    bounded = min(1.0, max(0.0, fraction))
    # What is there at all shows at least one cell.
    full = max(round(bounded * BAR_CELLS), 1 if bounded > 0 else 0)
    style = style or ("green" if bounded >= 0.5 else "yellow" if bounded >= 0.2 else "red")
    return Text.assemble(("■" * full, style), ("·" * (BAR_CELLS - full), "dim"))


def in_words(seconds: float) -> str:
    """A span of time in its largest unit: `3 hours`."""
    for unit_s, name in AGES_S:
        if seconds >= unit_s:
            count = int(seconds // unit_s)
            return f"{count} {name}" + ("s" if count > 1 else "")
    return f"{max(0, int(seconds))} s"


def ago(moment: str, now: datetime | None = None) -> str:
    """How long ago a moment was; how long until it is, if it is yet to come."""
    seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()
    if seconds < -1:
        return f"in {in_words(-seconds)}"
    return "just now" if seconds < 2 else f"{in_words(seconds)} ago"


def size(count: int) -> str:
    """A number of bytes for people: `12.3 MB`."""
    amount, unit = float(count), 0
    while amount >= 1000 and unit < len(BYTE_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{count} {BYTE_UNITS[0]}" if unit == 0 else f"{amount:.1f} {BYTE_UNITS[unit]}"


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 memory`, `3 memories`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def print_json(answer: Mapping[str, Any]) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
    sys.stdout.flush()


def show_failure(failure: Failure, *, as_json: bool = False) -> None:
    """Say what went wrong: to people on standard error, to programs on standard output."""
    if as_json:
        print_json(failure.reply())
        return
    text = Text.assemble(("Error: ", "bold red"), clean(failure.message))
    if failure.advice:
        text.append(f"\n{failure.advice}")
    text.append(f"\n({failure.code})", "dim")
    if err.is_terminal and failure.code in BY_CODE:
        text.append(f"  `recollect explain {failure.code}` tells more.", "dim")
    err.print(text, soft_wrap=not err.is_terminal)


def note(message: str, style: str = "dim") -> None:
    """A remark beside the answer, kept off standard output."""
    err.print(Text(message, style), soft_wrap=not err.is_terminal)
