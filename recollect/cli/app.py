"""All commands, put together."""

from __future__ import annotations

import sys
from functools import cache
from typing import Annotated, Any

import typer

from recollect._version import VERSION
from recollect.cli import (
    INTERRUPTED,
    audit_commands,
    backup_commands,
    doctor_command,
    embedding_commands,
    exchange_commands,
    feed_commands,
    gateway_command,
    health_command,
    keyed_commands,
    logs_command,
    mcp_command,
    memory_commands,
    process_commands,
    run_commands,
    scheduler_command,
    search_commands,
    status_command,
    status_commands,
    storage_command,
)
from recollect.cli.agents import (
    context_commands,
    decision_commands,
    goals_command,
    operational_commands,
    pattern_commands,
)
from recollect.cli.lazy_groups import (
    DocumentsGroup,
    JobsGroup,
    KeysGroup,
    ModelsGroup,
    SessionsGroup,
    TasksGroup,
)
from recollect.cli.output import out

app = typer.Typer(
    name="recollect",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"recollect {VERSION}")
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
    """One shared, durable memory for AI agents.

    Start with `recollect up`, then `recollect add "…"` and `recollect recall "…"`.
    """


PANELS = {
    "Run": (
        process_commands.up,
        process_commands.down,
        logs_command.logs,
        process_commands.orchestrator,
        gateway_command.gateway,
        health_command.health,
        scheduler_command.scheduler,
    ),
    "Remember": (
        memory_commands.add,
        keyed_commands.put,
        memory_commands.get,
        search_commands.recall,
        search_commands.search,
        memory_commands.list_,
        memory_commands.history,
        keyed_commands.namespaces,
    ),
    "Work": (
        context_commands.context,
        context_commands.replay,
        goals_command.goals,
        decision_commands.decisions,
        pattern_commands.patterns,
        operational_commands.events,
        operational_commands.snapshot,
    ),
    "Settle": (
        run_commands.conflicts,
        run_commands.consolidate,
        run_commands.migrate,
        run_commands.forget_source,
        run_commands.runs,
        run_commands.undo,
    ),
    "Look after it": (
        status_command.status,
        status_commands.ping,
        status_commands.stats,
        status_commands.whoami,
        doctor_command.doctor,
        audit_commands.audit,
        feed_commands.feed,
        feed_commands.errors,
        backup_commands.backup,
        backup_commands.restore,
        storage_command.migrate_storage,
        exchange_commands.export,
        exchange_commands.import_,
        embedding_commands.reembed,
        status_commands.version,
    ),
}
for _panel, _commands in PANELS.items():
    for _command in _commands:
        _name = _command.__name__.rstrip("_").replace("_", "-")
        app.command(_name, rich_help_panel=_panel)(_command)
app.command("mcp", rich_help_panel="Run", cls=mcp_command.McpCommand)(mcp_command.mcp)
app.add_typer(
    typer.Typer(cls=SessionsGroup, no_args_is_help=True, pretty_exceptions_enable=False),
    name="sessions",
    help="Look at sessions, their events and their state, and end them.",
    rich_help_panel="Remember",
)
app.add_typer(
    typer.Typer(cls=DocumentsGroup, no_args_is_help=True, pretty_exceptions_enable=False),
    name="documents",
    help="Read files and texts into the memory, keep them up to date, and search them.",
    rich_help_panel="Remember",
)
app.add_typer(
    typer.Typer(cls=TasksGroup, no_args_is_help=True, pretty_exceptions_enable=False),
    name="tasks",
    help="Look at tasks: how they stand, their steps, and what came of them.",
    rich_help_panel="Work",
)
app.add_typer(
    typer.Typer(cls=ModelsGroup, no_args_is_help=True, pretty_exceptions_enable=False),
    name="models",
    help="Install and find the models that turn text into vectors.",
    rich_help_panel="Look after it",
)
app.add_typer(
    typer.Typer(cls=JobsGroup, no_args_is_help=True, pretty_exceptions_enable=False),
    name="jobs",
    help="Look at the jobs of the scheduler and at what they did, and run one now.",
    rich_help_panel="Look after it",
)
app.add_typer(
    typer.Typer(cls=KeysGroup, no_args_is_help=True, pretty_exceptions_enable=False),
    name="keys",
    help="Make keys, and say what their holders may do.",
    rich_help_panel="Look after it",
)


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
