"""What the commands of the processes beside the orchestrator do alike."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli import options
from recollect.cli.failures import reporting
from recollect.cli.output import show_failure
from recollect.cli.supervised import log_failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from recollect.client.places import Find
    from recollect.config import Settings

    Leave = Callable[[dict[str, Any]], None]
    # Is the process to its end; what it is made of is imported by then and not before.
    Run = Callable[[Settings, Find, Leave], int]

Supervised = Annotated[bool, typer.Option("--supervised", hidden=True)]


def run_companion(
    role: str,
    run: Run,
    *,
    data: str | None,
    config: str | None,
    endpoint: str | None,
    key_file: str | None,
    supervised: bool,
) -> None:
    """Be a process of a role until it is told to stop, and leave word of it meanwhile."""
    with reporting(partial(log_failure, role) if supervised else show_failure):
        settings = options.settings_from(config, data)
        if supervised:
            from recollect.cli import lifeline

            lifeline.follow()
        from recollect.cli.companions import Word, place_of
        from recollect.logs import configure_logging

        configure_logging(settings.logging, role)
        word = Word(Path(settings.storage.data), role)
        try:
            code = run(settings, partial(place_of, settings, endpoint, key_file), word.leave)
        finally:
            word.take_back()
        raise typer.Exit(code)
