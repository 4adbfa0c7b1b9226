"""Commands for tasks: those of a goal, and one with its steps."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli import options
from recollect.cli.agents.working_views import show_steps, show_task, show_tasks
from recollect.cli.calling import calling
from recollect.cli.output import counted, note, print_json
from recollect.cli.whole_ids import memory_id_from
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE

tasks = typer.Typer(
    name="tasks",
    help="Look at tasks: how they stand, their steps, and what came of them.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@tasks.command("list")
def list_(
    goal: Annotated[
        str,
        typer.Argument(
            help="Id of their goal, or its end as tables show it.",
            metavar="GOAL",
            show_default=False,
        ),
    ],
    limit: options.Limit = 50,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """List the tasks of a goal, in the order in which they were saved.

    For example: `recollect tasks list GOAL`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.tasks_for_goal(memory_id_from(client, goal), limit)
        if as_json:
            return print_json(answer)
        if not answer["tasks"]:
            return note("The goal has no tasks that you may see.", "")
        show_tasks(answer["tasks"])
        if answer["cursor"] is not None:
            note("There are more tasks; --limit shows them.")


@tasks.command("show")
def show(
    task_id: Annotated[
        str, typer.Argument(help="Id of the task.", metavar="ID", show_default=False)
    ],
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", help="The namespace that it is in.", metavar="NAMESPACE"),
    ] = DEFAULT_NAMESPACE,
    steps: Annotated[
        int, typer.Option(min=0, help="How many of its last steps.", metavar="N")
    ] = 20,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show a task with its last steps.

    For example: `recollect tasks show D-1 -n project:shop --steps 5`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.get_task(task_id, namespace=namespace, steps=steps)
        if as_json:
            return print_json(answer)
        show_task(answer["task"])
        show_steps(answer["recent_steps"])
        earlier = answer["task"]["steps"] - len(answer["recent_steps"])
        if earlier > 0:
            note(f"{counted(earlier, 'earlier step')}; --steps shows more.")
