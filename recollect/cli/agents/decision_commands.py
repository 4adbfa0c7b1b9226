"""The command over decisions: the latest, or those made in a like situation."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli import options
from recollect.cli.agents.decision_views import show_decisions
from recollect.cli.calling import calling
from recollect.cli.failures import USAGE, Failure
from recollect.cli.output import note, print_json
from recollect.cli.whole_ids import memory_id_from


def decisions(
    similar: Annotated[
        str | None,
        typer.Option(
            help="Those made in a situation like this one, the nearest first.",
            metavar="SITUATION",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Only those made for this task.", metavar="ID", show_default=False),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(help="Only those that serve this goal.", metavar="ID", show_default=False),
    ] = None,
    with_outcome: Annotated[
        bool,
        typer.Option(
            "--with-outcome",
            help="With --similar: only those with a known outcome.",
            metavar="",
        ),
    ] = False,
    namespace: options.Namespace = None,
    limit: options.Limit = 10,
    full_ids: options.FullIds = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what was decided, why, and what came of it: the latest, or with --similar the nearest.

    For example: `recollect decisions --similar "Which database for the invoices?" --with-outcome`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        if similar is None:
            if with_outcome:
                raise _unfit("--with-outcome goes with --similar.", "Say also --similar SITUATION.")
            answer = client.list_decisions(
                task,
                memory_id_from(client, goal) if goal else None,
                namespace=namespace,
                limit=limit,
            )
            if as_json:
                return print_json(answer)
            show_decisions(answer["decisions"], full_ids=full_ids)
            if answer["cursor"] is not None:
                note("There are older decisions; --limit shows more.")
            return None
        if task or goal:
            raise _unfit("--similar looks at all tasks and goals.", "Leave --task and --goal out.")
        found = client.find_similar_decisions(
            similar, limit, namespace=namespace, with_outcome=with_outcome
        )
        if as_json:
            return print_json(found)
        show_decisions(found["decisions"], full_ids=full_ids)


def _unfit(message: str, advice: str) -> Failure:
    return Failure("invalid_argument", message, advice, exit_code=USAGE)
