"""The command over patterns: what was learned, or what fits a task."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import typer

from recollect.cli import options
from recollect.cli.agents.pattern_views import show_patterns
from recollect.cli.calling import calling
from recollect.cli.failures import USAGE, Failure
from recollect.cli.output import note, print_json


def patterns(
    find: Annotated[
        str | None,
        typer.Option(
            help="Only the one that fits this task best.", metavar="TASK", show_default=False
        ),
    ] = None,
    task_type: Annotated[
        str | None,
        typer.Option(
            "--type",
            "-t",
            help="Only for types of task that contain this regular expression.",
            metavar="REGEX",
            show_default=False,
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(
            "--of",
            help="Only those learned of success, of failure, or mixed.",
            metavar="KIND",
            show_default=False,
        ),
    ] = None,
    min_confidence: Annotated[
        float,
        typer.Option(
            "--confidence", min=0, max=1, help="Only what is at least so certain.", metavar="NUMBER"
        ),
    ] = 0.0,
    namespace: options.Namespace = None,
    limit: options.Limit = 5,
    full_ids: options.FullIds = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what was learned from how tasks went, the most certain first; or what fits a task.

    For example: `recollect patterns --find "Deploy the web shop"`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        if find is not None:
            if task_type or of or min_confidence:
                raise Failure(
                    "invalid_argument",
                    "--find goes with --namespace alone.",
                    "Leave the others out.",
                    exit_code=USAGE,
                )
            found = client.find_pattern(find, namespace=namespace)
            if as_json:
                return print_json(found)
            if found["pattern"] is None:
                return note("Nothing that was learned fits this task.", "")
            return show_patterns([found["pattern"]], full_ids=full_ids)
        answer = client.search_patterns(
            task_type,
            # Whether there is such a kind, the orchestrator says.
            cast("Literal['mixed'] | None", of),
            limit,
            namespace=namespace,
            min_confidence=min_confidence,
        )
        if as_json:
            return print_json(answer)
        if not answer["patterns"]:
            return note("Nothing was learned yet that fits and that you may see.", "")
        show_patterns(answer["patterns"], full_ids=full_ids)
        if answer["count"] == limit:
            note("There may be more; --limit shows them.")
