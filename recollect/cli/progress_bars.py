"""Bars for work that takes a while: what the orchestrator does, as far as it tells, and copying."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recollect.cli.output import err, note

if TYPE_CHECKING:
    from rich.progress import Progress

Report = Callable[[str, int, int | None], None]
"""Told what is done, how much of it, and of how much if that is known."""


@contextmanager
def counting(what: str, *, quiet: bool, left: str) -> Iterator[Report]:
    """A bar on a terminal. Ctrl-C ends only the showing; `left` says what becomes of the work."""
    # Brought in before anything is begun, so that Ctrl-C meanwhile leaves nothing begun.
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal)
    try:
        with bars:
            task = bars.add_task(what, total=None)
            yield lambda told, done, total: bars.update(
                task, description=told, completed=done, total=total
            )
    except KeyboardInterrupt:
        if not quiet:
            note(left, "yellow")
        raise


def transfer_bars() -> Progress:
    """Bars on a terminal for bytes that are copied; elsewhere nothing is shown."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
