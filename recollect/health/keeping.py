"""What the health manager keeps in its folder, and outlives its restarts with: the changes of state
and the sizes of the database.

They are files of its own and not memories of the store, since they matter most when the store
cannot be written.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import msgspec
import structlog

from recollect.health.states import Transition

log = structlog.get_logger()

HISTORY_NAME = "history.jsonl"
SIZES_NAME = "sizes.json"
HOUR_S = 3600.0
WEEK_S = 7 * 24 * HOUR_S


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file at one moment; a disk that refuses costs the file, not the process."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_bytes(content)
        partial.rename(path)
    except OSError as error:
        log.warning("A file was not written.", action="keep", path=str(path), reason=str(error))


class History:
    """The last changes of state, in a file of a line each."""

    def __init__(self, folder: Path, entries_max: int) -> None:
        self._path = folder / HISTORY_NAME
        self._entries: deque[Transition] = deque(_read_history(self._path), entries_max)
        # Lines in the file, which is written anew when it has twice as many as are kept.
        self._lines = len(self._entries)
        self._lines_max = 2 * entries_max
        self._rewrite()

    def add(self, transition: Transition) -> None:
        self._entries.append(transition)
        self._lines += 1
        if self._lines > self._lines_max:
            self._rewrite()
            return
        try:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(transition) + b"\n")
        except OSError as error:
            log.warning("A change was not kept.", action="keep", reason=str(error))

    def latest(self, count: int) -> list[Transition]:
        """The last changes, the newest first."""
        entries = list(self._entries)[-count:]
        return entries[::-1]

    def last_of(self) -> dict[str, Transition]:
        """The last change of each component."""
        return {entry.component: entry for entry in self._entries}

    def _rewrite(self) -> None:
        self._lines = len(self._entries)
        write_whole(self._path, b"".join(msgspec.json.encode(e) + b"\n" for e in self._entries))


def _read_history(path: Path) -> list[Transition]:
    entries = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            entries.append(msgspec.json.decode(line, type=Transition))
        except msgspec.MsgspecError:
            continue  # A line that a crash cut off, or of another version.
    return entries


class Sizes:
    """How large the database was, once an hour for a week and a day."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / SIZES_NAME
        self._samples = _read_sizes(self._path)

    def note(self, at_s: float, size_bytes: int) -> None:
        """Keep a size, unless one was kept within the hour."""
        # A clock that was set back leaves samples from the future; they say nothing.
        kept = [(s, b) for s, b in self._samples if at_s - WEEK_S - HOUR_S * 24 <= s <= at_s]
        if kept and at_s - kept[-1][0] < HOUR_S:
            self._samples = kept
            return
        self._samples = [*kept, (at_s, size_bytes)]
        write_whole(self._path, msgspec.json.encode(self._samples))

    def growth(self, at_s: float, size_bytes: int) -> dict[str, Any]:
        """Bytes by which it grew within the last week, and how many days of it are known."""
        week = [(s, b) for s, b in self._samples if at_s - WEEK_S <= s <= at_s]
        if not week:
            return {"growth_bytes": 0, "growth_days": 0.0}
        since_s, before_bytes = week[0]
        return {
            "growth_bytes": size_bytes - before_bytes,
            "growth_days": (at_s - since_s) / (24 * HOUR_S),
        }


def _read_sizes(path: Path) -> list[tuple[float, int]]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[tuple[float, int]])
    except (OSError, msgspec.MsgspecError):
        return []
