"""Commands that run processes: the orchestrator here, or all of them under a supervisor."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from recollect.cli import options
from recollect.cli.failures import Failure, reporting
from recollect.cli.output import note, show_failure


def orchestrator(
    data: options.Data = None,
    bind: options.Bind = None,
    config: options.Config = None,
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
) -> None:
    """Run the orchestrator in the foreground; `recollect up` is the usual way."""
    with reporting(_log_failure if supervised else show_failure):
        settings = options.settings_from(config, data, bind)
        if supervised:
            from recollect.cli import lifeline

            lifeline.follow()
        from recollect.logs import configure_logging

        # Threads of BLAS would only spin beside the event loop; it must be said before numpy loads.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from recollect.orchestrator import process

        configure_logging(settings.logging, "orchestrator")
        raise typer.Exit(process.run(settings))


def up(data: options.Data = None, bind: options.Bind = None, config: options.Config = None) -> None:
    """Start everything on this machine, and keep it running until Ctrl-C."""
    with reporting(show_failure):
        settings = options.settings_from(config, data, bind)
        if settings.embedding.provider == "local":
            _have_model(settings.embedding.model)
        from recollect.cli.running import keep_up

        given = None if config is None else str(Path(config).resolve())
        asyncio.run(keep_up(settings, Path(settings.storage.data).resolve(), given))


def _have_model(name: str) -> None:
    """Install the model if it is absent. The service starts without it too, on the light one."""
    from recollect.cli.models_command import ensure_installed
    from recollect.models.errors import ModelError

    try:
        ensure_installed(name)
    except ModelError as error:
        note(
            f"{error.message}\nThe light embedder is used for now, which finds by spelling and not "
            "by meaning. `recollect models list` shows the names; set embedding.model to one.",
            "bold yellow",
        )


def _log_failure(failure: Failure) -> None:
    """A failure as an entry of the log, where the supervisor finds it."""
    entry = {
        "action": "fail",
        "code": failure.code,
        "event": failure.message,
        "advice": failure.advice,
        "process": "orchestrator",
        "level": "error",
    }
    sys.stderr.write(msgspec.json.encode(entry).decode() + "\n")
    sys.stderr.flush()
