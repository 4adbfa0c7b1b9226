"""The commands of the processes beside the orchestrator: alike in all but what they run."""

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


def _companion(role: str, run: Run, told: str) -> Callable[..., None]:
    """A command that is a process of a role until it is told to stop, with this help."""

    def command(
        data: options.Data = None,
        config: options.Config = None,
        endpoint: options.Endpoint = None,
        key_file: options.KeyFile = None,
        supervised: Supervised = False,
    ) -> None:
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

    command.__doc__ = told
    return command


def _gateway(settings: Settings, find: Find, leave: Leave) -> int:
    from recollect.gateway import process

    return process.run(settings.gateway, find, leave)


def _health(settings: Settings, find: Find, leave: Leave) -> int:
    from recollect.health import process

    return process.run(settings, find, leave)


def _scheduler(settings: Settings, find: Find, leave: Leave) -> int:
    import asyncio

    from recollect.scheduler import process

    return asyncio.run(process.serve(settings, find, leave))


gateway = _companion(
    "gateway",
    _gateway,
    """Speak REST, MCP and gRPC for whoever does not speak ZeroMQ; `recollect up` starts it too.

    For example: `recollect gateway --endpoint tcp://127.0.0.1:7341`
    """,
)
health = _companion(
    "health",
    _health,
    """Watch everything, tell how it is, and serve the dashboard; `recollect up` starts it too.

    For example: `recollect health --endpoint tcp://127.0.0.1:7341`
    """,
)
scheduler = _companion(
    "scheduler",
    _scheduler,
    """Run the scheduler in the foreground; `recollect up` starts one.

    Of several, one runs the jobs and the others stand by.

    For example: `recollect scheduler --endpoint tcp://127.0.0.1:7341`
    """,
)
