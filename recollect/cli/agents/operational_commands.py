"""Commands over operational memory: the last events, and how things stand."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli import options
from recollect.cli.agents.operational_views import show_events, show_snapshot
from recollect.cli.calling import calling
from recollect.cli.output import note, print_json


def events(
    category: Annotated[
        str | None,
        typer.Option(
            "--category",
            "-c",
            help="Only events of this category.",
            metavar="CATEGORY",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-l", min=1, help="How many at most.", metavar="N")
    ] = 20,
    namespace: options.Namespace = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the last events, the newest first.

    For example: `recollect events --category deploy --count 5`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.recent_events(count, category, namespace=namespace)
        if as_json:
            return print_json(answer)
        if not answer["events"]:
            return note("No event is kept that fits and that you may see.", "")
        show_events(answer["events"])


def snapshot(
    namespace: options.Namespace = None,
    count: Annotated[
        int, typer.Option("--events", min=0, help="How many of the last events.", metavar="N")
    ] = 10,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show how things stand: goals, active tasks, metrics and the last events.

    For example: `recollect snapshot --events 3`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.system_snapshot(namespace=namespace, events=count)
        if as_json:
            return print_json(answer)
        show_snapshot(answer)
