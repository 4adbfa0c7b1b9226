"""The help of the whole: what there is, where to begin, and what the exit codes mean."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap

from recollect.cli.command_table import EXIT_CODES, PANELS

NAME_CHARS = 17
WIDTH_MAX = 100
WIDTH_MIN = 50
FIRST_STEPS = (
    ("recollect demo", "see it remember, forget and survive a crash"),
    ("recollect up", "start it on this machine"),
    ('recollect add "Anna prefers green tea"', "remember something"),
    ('recollect recall "what does Anna drink?"', "find it again"),
)
OPTIONS = (
    ("-h, --help", "Show this, or the help of a command: recollect add --help."),
    ("--version", "Show the version."),
    ("--install-completion", "Let your shell complete commands and options."),
    ("--show-completion", "Show what that would add."),
)
BOLD, CYAN = "1", "36"


def top_help(*, coloured: bool | None = None, width: int | None = None) -> str:
    """The help as text, in colours where a terminal shows it."""
    painted = _has_colours() if coloured is None else coloured
    columns = shutil.get_terminal_size().columns if width is None else width
    page = _Page(painted, max(WIDTH_MIN, min(columns, WIDTH_MAX)))
    page.lines += ["", page.paint("Usage: recollect COMMAND [OPTIONS] [ARGUMENTS]", BOLD), ""]
    page.lines += ["One shared, durable memory for AI agents.", ""]
    page.head("First steps")
    wide = max(len(call) for call, _ in FIRST_STEPS) + 2
    for call, meaning in FIRST_STEPS:
        page.row(call, meaning, wide)
    for panel, entries in PANELS.items():
        page.head(panel)
        for entry in entries:
            page.row(entry.name, entry.summary, NAME_CHARS)
    page.head("Options")
    for option, meaning in OPTIONS:
        page.row(option, meaning, 22)
    page.head("Exit codes")
    for code, meaning in EXIT_CODES.items():
        page.row(str(code), meaning, 5)
    return "\n".join(page.lines)


class _Page:
    """Lines that grow downwards."""

    def __init__(self, painted: bool, width: int) -> None:
        self.lines: list[str] = []
        self._painted = painted
        self._width = width

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._painted else text

    def head(self, text: str) -> None:
        if self.lines[-1]:
            self.lines.append("")
        self.lines.append(self.paint(text, BOLD))

    def row(self, name: str, meaning: str, name_chars: int) -> None:
        first, *rest = textwrap.wrap(meaning, self._width - name_chars - 2) or [""]
        self.lines.append(f"  {self.paint(f'{name:<{name_chars}}', CYAN)}{first}")
        self.lines += [f"  {'':<{name_chars}}{line}" for line in rest]


def _has_colours() -> bool:
    """Only on terminals that want them; an empty NO_COLOR says nothing."""
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return terminal and not os.environ.get("NO_COLOR")
