"""`recollect mcp`: the memory as tools for an AI client, over stdin and stdout."""

from __future__ import annotations

import signal
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from recollect.cli import options
from recollect.cli.failures import reporting
from recollect.cli.output import show_failure

ROLE = "mcp"


class McpCommand(TyperCommand):
    """A command whose help ends with lines to copy, which must not be wrapped."""

    # Typer has its own copy of click or the installed one, by its version: hence Any.
    def format_help(self, ctx: Any, formatter: Any) -> None:
        from recollect.cli.local_key import data_folder
        from recollect.cli.mcp_pasting import own_command, pasted

        super().format_help(ctx, formatter)
        lines = pasted(own_command(data_folder()))
        # Without Rich the help is in the formatter, with it on the screen already.
        if formatter.getvalue():
            formatter.write(f"\n{lines}")
        else:
            typer.echo(lines)


def mcp(
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    bearer: Annotated[
        str | None,
        typer.Option(
            help="A bearer key in whose name all is done; better in RECOLLECT_BEARER, because "
            "others on this machine can read a command line.",
            show_default=False,
            metavar="KEY",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help="Who writes, for the memory; else the client's own name.",
            show_default=False,
            metavar="NAME",
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            help="The session that new memories belong to.", show_default=False, metavar="ID"
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Where memories are written and looked for, unless a call says otherwise.",
            show_default=False,
            metavar="NAMESPACE",
        ),
    ] = None,
) -> None:
    """Serve the memory as MCP tools to an AI client that starts this command.

    It talks over stdin and stdout with the client, and with the orchestrator that `recollect up`
    started; while none runs, each answer says so. Paste the lines below into your client.

    For example: `recollect mcp --agent editor --namespace project:apollo`
    """
    with reporting(show_failure):
        settings = options.settings_from(config, data)
        from recollect.cli.companions import place_of
        from recollect.client.settings import bearer_or_default
        from recollect.logs import configure_logging

        configure_logging(settings.logging, ROLE)
        from recollect.gateway.mcp import stdio
        from recollect.gateway.mcp.speaking import Given

        given = Given(agent, session, bearer_or_default(bearer), namespace)
        find = partial(place_of, settings, endpoint, key_file)
        gateway = settings.gateway
        # Where stdin is a file, a thread waits for its next line, and nothing gentler would end it.
        # Nothing is lost: what was sent to the orchestrator is done there.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        stdio.run(find, timeout_s=gateway.timeout_s, tokens_max=gateway.mcp_tokens_max, given=given)


served = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
served.command("mcp", cls=McpCommand)(mcp)
