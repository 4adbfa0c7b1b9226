"""Commands that are there by name, and whose modules are brought in when one of them is called."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from recollect.cli.command_table import BY_NAME, PANELS, Entry
from recollect.cli.top_help import top_help

HELP_NAMES = ["-h", "--help"]


class LateCommand(TyperCommand):
    """Stands for a command until it is called; listings and completion need no more."""

    def __init__(self, entry: Entry, panel: str) -> None:
        super().__init__(entry.name, help=entry.summary, rich_help_panel=panel)
        self._entry = entry

    @cached_property
    def real(self) -> Any:
        """The command itself, or the group, from its module."""
        module, _, name = self._entry.place.partition(":")
        found = getattr(import_module(f"recollect.cli.{module}"), name)
        if not isinstance(found, typer.Typer):
            found = _alone(self._entry.name, found)
        command = typer.main.get_command(found)
        command.name = self._entry.name
        for one in (command, *getattr(command, "commands", {}).values()):
            _without_type(one)
        return command

    # Typer has its own copy of click or the installed one, by its version: hence Any.
    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        return self.real.make_context(*args, **kwargs)


class TopGroup(TyperGroup):
    """`recollect` itself."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for panel, entries in PANELS.items():
            for entry in entries:
                self.add_command(LateCommand(entry, panel))

    # The one help that everybody meets is made without Rich, which takes longer than all of it.
    def format_help(self, ctx: Any, formatter: Any) -> None:
        typer.echo(top_help(), color=ctx.color)


def _alone(name: str, function: Any) -> typer.Typer:
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": HELP_NAMES},
    )
    app.command(name)(function)
    return app


def _without_type(command: Any) -> None:
    """Show --help as the flag that it is; Typer names the type of every option else."""
    option = command.get_help_option(typer.Context(command, help_option_names=HELP_NAMES))
    if option is not None:
        option.metavar = ""


def bring_in_all() -> None:
    """Bring in every command, for whoever calls many of them."""
    for name, entry in BY_NAME.items():
        assert LateCommand(entry, "").real.name == name
