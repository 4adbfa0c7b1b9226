"""How the demo speaks: acts with a head, the call that is made, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recollect.cli.output import bar, clean, one_line, out
from recollect.protocol.records import FoundMemory

INDENT = 3
WIDTH_MAX = 96


class Telling:
    """Tells the story act by act, to a terminal or into a file."""

    def __init__(self) -> None:
        self._acts = 0
        self._width = min(out.width, WIDTH_MAX)

    def opening(self) -> None:
        out.print(Text.assemble("\n", ("Recollect", "bold green"), "  one memory for all agents"))
        self.remark(
            "A whole system starts now, in a temporary folder. It is gone when this ends; nothing "
            "else on this machine is touched."
        )

    def act(self, title: str, meaning: str) -> None:
        self._acts += 1
        out.print(
            Text.assemble("\n", (f" {self._acts} ", "bold reverse"), f" {title}", style="bold")
        )
        self.remark(meaning)

    def remark(self, text: str, style: str = "dim") -> None:
        self._print(Text(text, style))

    def call(self, text: str) -> None:
        """The call as a program would make it."""
        out.print(Text(f"\n   >>> {text}", "cyan"), soft_wrap=True)

    def fact(self, text: str, style: str = "") -> None:
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row(Text("✓", "green"), Text(text, style))
        self._print(row)

    def found(self, results: Sequence[FoundMemory]) -> None:
        """What a search found, the best first."""
        best = max((result["score"] for result in results), default=0.0)
        table = self._table(4)
        for result in results:
            who = result["created_by"] or ""
            table.add_row(
                bar(result["score"] / best if best else 0.0),
                Text(one_line(result["content"])),
                Text(clean(who), "magenta"),
                Text(result["created_at"][:10], "dim"),
            )
        self._print(table)

    def rows(self, rows: Sequence[Sequence[Text | str]], head: Sequence[str] = ()) -> None:
        """Facts in columns."""
        table = self._table(len(rows[0]) if rows else len(head), head)
        for row in rows:
            table.add_row(*row)
        self._print(table)

    def _table(self, columns: int, head: Sequence[str] = ()) -> Table:
        table = Table(
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
            header_style="dim",
            show_header=bool(head),
        )
        for number in range(columns):
            table.add_column(head[number] if head else "")
        return table

    def _print(self, shown: Text | Table) -> None:
        out.print(Padding(shown, (0, 0, 0, INDENT)), width=self._width)
