"""Commands that follow what happens: the changes as they come, and what went wrong."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import Annotated

import typer

from recollect.cli import options
from recollect.cli.calling import calling
from recollect.cli.feed_views import change_line, show_errors
from recollect.cli.output import note, out, print_json


def feed(
    from_seq: Annotated[
        int | None,
        typer.Option(
            "--from",
            min=0,
            help="Begin behind this change, 0 for all there are; else with what comes now.",
            metavar="SEQ",
            show_default=False,
        ),
    ] = None,
    namespace: options.Namespace = None,
    operations: Annotated[
        list[str] | None,
        typer.Option(
            "--operation",
            "-o",
            help="Only what this operation did; may be given several times.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(help="Only of this agent.", metavar="AGENT", show_default=False),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Only of this task.", metavar="TASK", show_default=False),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "--count",
            "-l",
            min=1,
            help="End after so many.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each change as a line of JSON.", metavar="")
    ] = False,
) -> None:
    """Follow the changes as they come, until Ctrl-C; over restarts too.

    For example: `recollect feed --namespace user:anna`
    """
    with calling(endpoint, key_file, as_json=as_json) as client, suppress(KeyboardInterrupt):
        changes = client.subscribe(
            from_seq,
            namespace=namespace,
            operations=operations or None,
            agent=agent,
            task_id=task,
        )
        if not as_json and out.is_terminal:
            note(f"Changes behind {changes.seq:,}; Ctrl-C ends it.")
        for change in islice(changes, count):
            if as_json:
                print_json(change)
            else:
                out.print(change_line(change), soft_wrap=True)


def errors(
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            help="Only those of this source, such as orchestrator.",
            metavar="SOURCE",
            show_default=False,
        ),
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(help="Only those with this code.", metavar="CODE", show_default=False),
    ] = None,
    limit: options.Limit = 20,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what went wrong lately, in any process.

    For example: `recollect errors --source orchestrator`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.recent_errors(limit, source, code)
        if as_json:
            return print_json(answer)
        if not answer["errors"]:
            return note("No error is known that fits.", "")
        show_errors(answer["errors"])
