"""The command that takes a store to another storage."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.failures import reporting
from recollect.cli.output import counted, out, print_json, show_failure
from recollect.cli.progress_bars import counting

if TYPE_CHECKING:
    from recollect.config import Settings
    from recollect.orchestrator.relocation.places import Place

GOES_ON = "The copy is not complete; the same command again goes on with it."


def migrate_storage(
    to: Annotated[
        str,
        typer.Option(
            help="Where to: postgresql://user@host/name, sqlite:///folder, or a data folder.",
            metavar="PLACE",
            show_default=False,
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Where the store is now, written alike; else the configured storage.",
            metavar="PLACE",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
    config: options.Config = None,
    as_json: options.AsJson = False,
) -> None:
    """Copy a stopped store from SQLite to PostgreSQL, or back, with everything in it.

    Nothing may have either open meanwhile. The store it comes from is left as it is.

    For example: `recollect migrate-storage --to postgresql://recollect@db.example.org/recollect`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        settings = options.settings_from(config, data)
        from recollect.logs import configure_logging
        from recollect.orchestrator.relocation.places import place_of
        from recollect.orchestrator.relocation.relocating import relocate
        from recollect.orchestrator.running import failpoints

        # Only what goes wrong is worth a line beside the bar.
        configure_logging(msgspec.structs.replace(settings.logging, level="warning"), "migrate")
        failpoints.arm_from_environment()
        here = place_of(source) if source is not None else _configured(settings)
        there = place_of(to)
        with counting("Copying", quiet=as_json, left=GOES_ON) as report:
            told = relocate(here, there, report)
        answer: dict[str, Any] = {
            "status": "success",
            "from": here.name,
            "to": there.name,
            **msgspec.to_builtins(told),
        }
        if as_json:
            return print_json(answer)
        memories = told.tables["memories"].rows
        out.print(
            Text.assemble(
                ("Copied ", "green"),
                f"{counted(memories, 'memory')}, {counted(told.rows, 'row')} in "
                f"{counted(len(told.tables), 'table')}, up to change {told.seq:,}, to {there.name}",
                "\nEvery table was read again on both sides, and is the same.",
                (f"\n{_next(there)}", "dim"),
            ),
            soft_wrap=True,
        )


def _configured(settings: Settings) -> Place:
    from recollect.orchestrator.relocation.places import place_of
    from recollect.orchestrator.running.opening import SQLITE

    url = settings.storage.url
    return place_of(settings.storage.data if url == SQLITE else url)


def _next(there: Place) -> str:
    if there.kind == "sqlite":
        return f"Serve it with storage.url: sqlite and storage.data: {there.address}"
    return "Serve it with storage.url set to that address; keys stay in the data folder."
