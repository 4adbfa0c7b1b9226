"""What else is known of a thing, in small print below it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.text import Text

from recollect.cli.output import one_line


def facts_text(facts: Iterable[str | None], columns: int) -> Text:
    """The facts that there are, dim; a line breaks between two of them rather than in one."""
    lines = [""]
    for fact in (one_line(fact) for fact in facts if fact):
        joined = f"{lines[-1]} · {fact}" if lines[-1] else fact
        if lines[-1] and cell_len(joined) > columns:
            lines.append(fact)
        else:
            lines[-1] = joined
    return Text("\n".join(lines), "dim")
