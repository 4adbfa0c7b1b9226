"""All commands, put together."""

import sys

import typer

from recollect.cli import process_commands

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(process_commands.orchestrator)
app.command()(process_commands.up)


def run() -> int:
    app()
    return 0
