"""The command over goals."""

from __future__ import annotations

from recollect.cli import options
from recollect.cli.agents.working_views import show_goals
from recollect.cli.calling import calling
from recollect.cli.output import note, print_json


def goals(
    namespace: options.Namespace = None,
    limit: options.Limit = 20,
    full_ids: options.FullIds = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the goals that are active, the most urgent first.

    For example: `recollect goals -n project:shop`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.active_goals(limit, namespace=namespace)
        if as_json:
            return print_json(answer)
        if not answer["goals"]:
            return note("No goal is active that you may see.", "")
        show_goals(answer["goals"], full_ids=full_ids)
        note("`recollect tasks list GOAL` shows the tasks of one.")
