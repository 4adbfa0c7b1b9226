"""Commands for sessions: list, show, events and end."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.calling import calling
from recollect.cli.output import note, out, print_json
from recollect.cli.session_views import show_events, show_session, show_sessions
from recollect.protocol.records import SessionChanged

sessions = typer.Typer(
    name="sessions",
    help="Look at sessions, their events and their state, and end them.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

SessionId = Annotated[
    str, typer.Argument(help="Id of the session.", metavar="ID", show_default=False)
]


def _only(what: str, metavar: str, *names: str) -> Any:
    return typer.Option(*names, help=f"Only {what}.", metavar=metavar, show_default=False)


@sessions.command("list")
def list_(
    user: Annotated[str | None, _only("of this user", "USER", "--user", "-u")] = None,
    status: Annotated[
        str | None,
        _only("in this status: created, active, paused, terminated, archived", "STATUS"),
    ] = None,
    app: Annotated[str | None, _only("of this app", "APP")] = None,
    active: Annotated[
        bool, typer.Option("--active", help="Only those that have not ended.", metavar="")
    ] = False,
    limit: options.Limit = 20,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """List sessions, the newest first.

    For example: `recollect sessions list --user alice --status active`
    """
    if active and (status or app):
        raise typer.BadParameter("--active goes with --user alone.")
    with calling(endpoint, key_file, as_json=as_json) as client:
        if active:
            answer = client.list_active_sessions(user, limit=limit)
        else:
            # Whether there is such a status, the orchestrator says.
            answer = client.list_sessions(
                user, cast(Literal["active"] | None, status), app=app, limit=limit
            )
        if as_json:
            return print_json(answer)
        if not answer["sessions"]:
            return note("No session fits that you may see.", "")
        show_sessions(answer["sessions"])
        if answer["cursor"] is not None:
            note("There are older sessions; --limit shows more.")


@sessions.command("show")
def show(
    session_id: SessionId,
    events: Annotated[
        int, typer.Option(min=0, help="How many of its last events.", metavar="N")
    ] = 20,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show a session with its state and its last events.

    For example: `recollect sessions show ID`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.get_session(session_id, events=events)
        if as_json:
            return print_json(answer)
        show_session(answer["session"], answer["state"])
        show_events(answer["events"])


@sessions.command("events")
def events(
    session_id: SessionId,
    limit: options.Limit = 100,
    after: Annotated[
        int, typer.Option(min=0, help="Only events behind this position.", metavar="N")
    ] = 0,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the events of a session in their order.

    For example: `recollect sessions events ID --after 100`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.list_events(session_id, limit, after)
        if as_json:
            return print_json(answer)
        if not answer["events"]:
            return note("There are no events." if not after else "There are no more events.", "")
        show_events(answer["events"])
        if answer["cursor"] is not None:
            note(f"There are more events: --after {answer['events'][-1]['position']} shows them.")


@sessions.command("end")
def end(
    session_id: SessionId,
    archive: Annotated[
        bool, typer.Option("--archive", help="Put it away as well.", metavar="")
    ] = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """End a session: it takes no more events, and its temporary state is gone.

    For example: `recollect sessions end ID`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer: SessionChanged
        if archive and client.get_session(session_id, events=0)["session"]["session_status"] in (
            "terminated",
            "archived",
        ):
            answer = client.archive_session(session_id)
        else:
            answer = client.terminate_session(session_id)
            if archive:
                answer = client.archive_session(session_id)
        if as_json:
            return print_json(answer)
        done = "Archived " if archive else "Ended "
        out.print(Text.assemble((done, "green"), (answer["session_id"], "cyan")))
