"""Commands for jobs: list, run, history and show."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from recollect.cli import job_views, options
from recollect.cli.calling import calling
from recollect.cli.failures import FAILED, Failure
from recollect.cli.output import err, note, print_json
from recollect.cli.whole_ids import job_run_id_from
from recollect.client import MemoryClient
from recollect.protocol.records import JobRunRecord

jobs = typer.Typer(
    name="jobs",
    help="Look at the jobs of the scheduler and at what they did, and run one now.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

LOOK_S = 0.2
BEGUN_WITHIN_S = 30.0
OPEN = ("requested", "running")
GOOD = ("done", "skipped")


@jobs.command("list")
def list_(
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """List the jobs, when each comes next, and how it went last.

    For example: `recollect jobs list`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.list_jobs()
        if as_json:
            return print_json(answer)
        job_views.show_jobs(answer)


@jobs.command("run")
def run(
    name: Annotated[
        str, typer.Argument(help="Name of the job.", metavar="NAME", show_default=False)
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.", metavar="")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until it is done, and show it.")
    ] = True,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Have the scheduler run a job now.

    For example: `recollect jobs run decay --dry-run`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.request_job(name, dry_run)
        job_run_id = answer["job_run_id"]
        if not wait:
            if as_json:
                return print_json(answer)
            return note(f"Asked for. `recollect jobs show {job_run_id}` shows how it is.", "")
        ended = _waited_for(client, job_run_id, shown=not as_json)
        if as_json:
            print_json({"status": "success", "run": ended})
        else:
            job_views.show_run(ended)
        if ended["run_status"] not in GOOD:
            raise typer.Exit(FAILED)


def _waited_for(client: MemoryClient, job_run_id: str, *, shown: bool) -> JobRunRecord:
    """The run when it has ended. Ctrl-C ends the waiting, not the run."""
    until_s = time.monotonic() + BEGUN_WITHIN_S
    with err.status("Waiting for the scheduler …") as status:
        while (found := client.get_job_run(job_run_id)["run"])["run_status"] in OPEN:
            if found["run_status"] == "running":
                status.update(job_views.progress_text(found))
            elif time.monotonic() > until_s and not client.list_jobs()["scheduler"]["alive"]:
                raise Failure(
                    "no_scheduler",
                    "No scheduler is at work; the run waits for one.",
                    "`recollect up` starts everything, `recollect scheduler` the scheduler alone.",
                    job_run_id=job_run_id,
                )
            time.sleep(LOOK_S)
    return found


@jobs.command("history")
def history(
    name: Annotated[
        str | None,
        typer.Argument(help="Only runs of this job.", metavar="NAME", show_default=False),
    ] = None,
    limit: options.Limit = 20,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what the jobs did, the latest first.

    For example: `recollect jobs history backup --limit 5`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.job_history(name, limit)
        if as_json:
            return print_json(answer)
        job_views.show_history(answer["runs"])


@jobs.command("show")
def show(
    run_id: Annotated[
        str,
        typer.Argument(
            help="Id of the run, or its end, as `recollect jobs history` shows it.",
            metavar="RUN",
            show_default=False,
        ),
    ],
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one run: its progress, or what it did.

    For example: `recollect jobs show RUN`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.get_job_run(job_run_id_from(client, run_id))
        if as_json:
            return print_json(answer)
        job_views.show_run(answer["run"])
