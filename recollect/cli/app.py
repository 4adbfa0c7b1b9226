"""The command line as one command."""

from __future__ import annotations

import sys
from functools import cache
from typing import Annotated, Any

import typer

from recollect._version import VERSION
from recollect.cli import INTERRUPTED
from recollect.cli.late_commands import HELP_NAMES, TopGroup

app = typer.Typer(
    name="recollect",
    cls=TopGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": HELP_NAMES},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"recollect {VERSION}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            callback=_print_version,
            is_eager=True,
            metavar="",
        ),
    ] = False,
) -> None:
    """One shared, durable memory for AI agents."""


@cache
def command() -> Any:
    """All of it as one command; of Typer's click, which its version tells."""
    return typer.main.get_command(app)


def run() -> int:
    """Run the command; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows another one; that is no reason to fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        command()(prog_name="recollect")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0
