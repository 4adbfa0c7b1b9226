"""Commands that settle conflicts, move memories on, take back a source, and undo each of these."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import typer

from recollect.cli import options, run_views
from recollect.cli.calling import calling
from recollect.cli.output import print_json
from recollect.cli.whole_ids import run_id_from

# A run through many memories, or one that asks a chat model, takes its time.
PATIENCE_S = 600.0

Where = Annotated[
    str,
    typer.Argument(
        help="This namespace and those below it.", metavar="NAMESPACE", show_default=False
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.", metavar="")]


def conflicts(
    namespace: Where,
    limit: options.Limit = 20,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show memories that nearly repeat one another, or contradict one another.

    For example: `recollect conflicts user:anna`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.find_conflicts(namespace, limit, timeout=PATIENCE_S)
        if as_json:
            return print_json(answer)
        run_views.show_conflicts(answer)


def consolidate(
    namespace: Where,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            "-s",
            help="keep_latest, keep_most_trusted, merge (joins what they say), or llm_based.",
            metavar="STRATEGY",
        ),
    ] = "merge",
    dry_run: DryRun = False,
    limit: options.Limit = 100,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Settle what repeats or contradicts. What is given up is archived, and can be undone.

    For example: `recollect consolidate user:anna --strategy merge --dry-run`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        chosen = cast("Literal['keep_latest', 'keep_most_trusted', 'merge', 'llm_based']", strategy)
        answer = client.consolidate(namespace, chosen, dry_run, limit=limit, timeout=PATIENCE_S)
        if as_json:
            return print_json(answer)
        run_views.show_consolidated(answer)


def migrate(
    namespace: options.Namespace = None,
    from_tier: Annotated[
        str | None,
        typer.Option(
            "--from", help="Only out of this tier: operational or working.", metavar="TIER"
        ),
    ] = None,
    older_than_days: Annotated[
        float | None,
        typer.Option(
            "--older-than", help="Instead of the configured ages: older than so many days."
        ),
    ] = None,
    dry_run: DryRun = False,
    limit: options.Limit = 1000,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Move old memories on to the next tier, and sum up those that belong together.

    For example: `recollect migrate --from working --dry-run`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        chosen = cast("Literal['operational', 'working'] | None", from_tier)
        answer = client.migrate(
            namespace,
            chosen,
            dry_run,
            limit=limit,
            older_than_days=older_than_days,
            timeout=PATIENCE_S,
        )
        if as_json:
            return print_json(answer)
        run_views.show_migrated(answer)


def forget_source(
    source: Annotated[
        str,
        typer.Argument(
            help="What memories name as their source, or the agent that wrote them.",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    namespace: options.Namespace = None,
    dry_run: DryRun = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Take back all that a source wrote, and all that was made from it.

    For example: `recollect forget-source crawler --dry-run`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.forget_source(source, dry_run, namespace=namespace, timeout=PATIENCE_S)
        if as_json:
            return print_json(answer)
        run_views.show_forgotten(answer)


def undo(
    run: Annotated[
        str,
        typer.Argument(
            help="Id of the run, or its end, as `recollect runs` shows it.",
            metavar="RUN",
            show_default=False,
        ),
    ],
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Undo a run: what it archived or deleted is back, what it wrote is gone.

    For example: `recollect undo RUN`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.undo(run_id_from(client, run), timeout=PATIENCE_S)
        if as_json:
            return print_json(answer)
        run_views.show_undone(answer)


def runs(
    namespace: options.Namespace = None,
    kind: Annotated[
        str | None,
        typer.Option(help="Only consolidate, migrate or forget_source.", metavar="KIND"),
    ] = None,
    limit: options.Limit = 20,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show runs, the latest first.

    For example: `recollect runs --limit 5`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.list_runs(namespace, kind, limit=limit)
        if as_json:
            return print_json(answer)
        run_views.show_runs(answer["runs"])
