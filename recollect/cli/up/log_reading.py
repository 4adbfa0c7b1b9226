"""What the processes of a data folder wrote, read back: the last lines of all, in order of time."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from rich.text import Text

from recollect.cli.output import clean, one_line, plain

READ_BYTES_MAX = 4 * 1024 * 1024
"""Of each file, from its end."""
SHOWN_APART = frozenset({"event", "level", "timestamp", "process", "action"})
STYLES = {"debug": "dim", "info": "", "warning": "yellow", "error": "bold red", "critical": "red"}


class Line(NamedTuple):
    """One line of a log."""

    process: str
    at: str
    """ISO 8601; of a line that says no time, as in a traceback, that of the line before."""
    text: str


class LogFile:
    """One log, read from its end and then on as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = 0
        self._rest = b""
        self._at = ""

    def last(self, count: int) -> list[Line]:
        """The last lines so far."""
        try:
            self._position = max(0, self.path.stat().st_size - READ_BYTES_MAX)
        except OSError:
            return []
        return list(deque(self.new(), count))

    def new(self) -> list[Line]:
        """The whole lines that came since the last look."""
        try:
            with self.path.open("rb") as file:
                if self.path.stat().st_size < self._position:
                    self._position, self._rest = 0, b""  # It was moved aside and begun anew.
                file.seek(self._position)
                read = file.read(READ_BYTES_MAX)
        except OSError:
            return []
        self._position += len(read)
        *whole, self._rest = (self._rest + read).split(b"\n")
        return [self._line(line.decode(errors="replace")) for line in whole]

    def _line(self, text: str) -> Line:
        self._at = str(entry_of(text).get("timestamp", self._at))
        return Line(self.path.stem, self._at, text)


def log_files(folder: Path, names: Sequence[str] = ()) -> list[LogFile]:
    """The logs of a data folder, or those of some processes."""
    found = sorted((folder / "logs").glob("*.log"))
    return [LogFile(path) for path in found if not names or path.stem in names]


def in_order(lines: Iterable[Line]) -> list[Line]:
    """By time; those of one log stay as they stood."""
    return sorted(lines, key=lambda line: line.at)


def entry_of(text: str) -> dict[str, object]:
    """The fields of a line that is an entry; none of any other."""
    try:
        entry = json.loads(text)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def shown(line: Line) -> Text:
    """A line for people: when, who, what, and the fields behind it."""
    entry = entry_of(line.text)
    if "event" not in entry:
        return Text.assemble((f"{'':<9}{line.process:<13}", "dim"), clean(line.text))
    level = str(entry.get("level", "info"))
    text = Text.assemble(
        (f"{_clock(line.at):<9}", "dim"),
        (f"{line.process:<13}", "cyan"),
        (clean(str(entry["event"])), STYLES.get(level, "")),
    )
    for name, value in _fields(entry):
        text.append(f" {name}=", "dim").append(value, "dim")
    return text


def _fields(entry: dict[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in entry.items():
        if name == "exception":
            yield name, "\n" + clean(str(value))
        elif name not in SHOWN_APART:
            yield clean(name), one_line(plain(value))


def _clock(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"
    except ValueError:
        return ""
