"""Commands that run processes: the orchestrator here, or all of them under a supervisor."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli import options
from recollect.cli.failures import USAGE, Failure, reporting
from recollect.cli.output import note, out, print_json, show_failure
from recollect.cli.supervised import log_failure
from recollect.client.settings import BEARER_VARIABLE

if TYPE_CHECKING:
    from recollect.config import Settings

DOWN_SLACK_S = 30.0


def orchestrator(
    data: options.Data = None,
    bind: options.Bind = None,
    config: options.Config = None,
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
) -> None:
    """Run the orchestrator in the foreground; `recollect up` is the usual way.

    For example: `recollect orchestrator --data ./memories --bind tcp://127.0.0.1:7341`
    """
    with reporting(partial(log_failure, "orchestrator") if supervised else show_failure):
        settings = options.settings_from(config, data, bind)
        if supervised:
            from recollect.cli import lifeline

            lifeline.follow()
        from recollect.logs import configure_logging

        # Threads of BLAS would only spin beside the event loop; it must be said before numpy loads.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from recollect.orchestrator.running import process

        configure_logging(settings.logging, "orchestrator")
        raise typer.Exit(process.run(settings))


def up(
    data: options.Data = None,
    bind: options.Bind = None,
    config: options.Config = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it running in the background.", metavar="")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="Leave out the scheduler, the gateway or the health manager.", metavar="NAME"
        ),
    ] = None,
) -> None:
    """Start everything on this machine, and keep it running until Ctrl-C.

    For example: `recollect up --data ./memories --detach`
    """
    with reporting(show_failure):
        # What is started here is the system itself, and not whom that key is for.
        os.environ.pop(BEARER_VARIABLE, None)
        settings = options.settings_from(config, data, bind)
        left_out = _known(without or [])
        if settings.embedding.provider == "local":
            _have_model(settings.embedding.model)
        folder = Path(settings.storage.data).resolve()
        given = None if config is None else str(Path(config).resolve())
        if detach:
            return _detach(settings, folder, given, left_out)
        from recollect.cli.up.keeping import keep_up

        asyncio.run(keep_up(settings, folder, given, left_out))


def down(
    data: options.Data = None, config: options.Config = None, as_json: options.AsJson = False
) -> None:
    """Stop everything that `recollect up` started on a data folder.

    For example: `recollect down --data ./memories`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        settings = options.settings_from(config, data)
        from recollect.cli.up.detaching import bring_down

        folder = Path(settings.storage.data).resolve()
        pid = bring_down(folder, settings.network.drain_s + DOWN_SLACK_S)
        if as_json:
            return print_json({"status": "success", "stopped": pid is not None, "pid": pid})
        if pid is None:
            return note(f"Nothing runs on {folder}.")
        out.print(f"Stopped (process {pid}); what was acknowledged is in {folder}", soft_wrap=True)


def _detach(settings: Settings, folder: Path, config: str | None, without: list[str]) -> None:
    from recollect.cli.up.detaching import detach
    from recollect.cli.up.programs import Companion, Orchestrator
    from recollect.cli.up.welcome import welcome

    arguments = ["--data", str(folder), "--bind", settings.network.bind]
    arguments += ["--config", config] if config else []
    for name in without:
        arguments += ["--without", name]
    announced = detach(folder, arguments)
    orchestrator = Orchestrator(settings, folder, config)
    orchestrator.endpoint = announced["endpoint"]
    orchestrator.asks_for_keys = announced["keys"]
    companions = []
    for name, said in announced["companions"].items():
        companions.append(Companion(name, orchestrator, config))
        companions[-1].said = said
    out.print(welcome(orchestrator, companions, detached=True), soft_wrap=True)


def _known(without: list[str]) -> list[str]:
    from recollect.cli.up.programs import COMPANIONS

    for name in without:
        if name not in COMPANIONS:
            raise Failure(
                "unknown_process",
                f"There is no process {name!r} that could be left out.",
                f"These can: {', '.join(COMPANIONS)}.",
                exit_code=USAGE,
            )
    return without


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
