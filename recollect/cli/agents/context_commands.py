"""Commands that give the context for a task, and give it again."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from recollect.cli import options
from recollect.cli.agents.context_views import (
    show_assembled,
    show_pieces,
    show_replayed,
    write_context,
)
from recollect.cli.calling import calling
from recollect.cli.output import print_json
from recollect.protocol.operations.context import CONTEXT_TIERS, ContextTier

Pieces = Annotated[
    bool,
    typer.Option("--pieces", help="Show a table of its pieces instead of the text.", metavar=""),
]


def context(
    task: Annotated[
        str, typer.Argument(help="What is to be done.", metavar="TASK", show_default=False)
    ],
    tokens: Annotated[
        int, typer.Option(min=1, help="How many tokens at most.", metavar="N")
    ] = 4000,
    task_id: Annotated[
        str | None,
        typer.Option(
            "--task",
            help="Id of the task at hand; what belongs to it comes first.",
            metavar="ID",
            show_default=False,
        ),
    ] = None,
    tier: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Look only here: {', '.join(CONTEXT_TIERS)}. May be repeated.",
            metavar="TIER",
            show_default=False,
        ),
    ] = None,
    namespace: options.Namespace = None,
    trust_min: Annotated[
        float,
        typer.Option(min=0, max=1, help="Leave out what is trusted less.", metavar="NUMBER"),
    ] = 0.0,
    pieces: Pieces = False,
    full_ids: options.FullIds = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Print what to have in view for a task: how things stand, and what is remembered of it.

    For example: `recollect context "Deploy the web shop" --tokens 2000 --tier working`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        # Whether there is such a tier, the orchestrator says.
        tiers = cast("list[ContextTier]", tier or list(CONTEXT_TIERS))
        answer = client.assemble_context(
            task, tokens, tiers, namespace=namespace, task_id=task_id, trust_min=trust_min
        )
        if as_json:
            return print_json(answer)
        if pieces:
            show_pieces(answer["chunks"], full_ids=full_ids)
        else:
            write_context(answer["context"])
        show_assembled(answer)


def replay(
    receipt: Annotated[
        str,
        typer.Argument(
            help="The receipt that came with the context.",
            metavar="RECEIPT",
            show_default=False,
        ),
    ],
    pieces: Pieces = False,
    full_ids: options.FullIds = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Print a context as it was given before: the same memories in the same versions.

    For example: `recollect replay RECEIPT --pieces`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.replay_context(receipt)
        if as_json:
            return print_json(answer)
        if pieces:
            show_pieces(answer["chunks"], full_ids=full_ids)
        else:
            write_context(answer["context"])
        show_replayed(answer)
