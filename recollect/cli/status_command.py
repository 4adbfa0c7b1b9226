"""`recollect status`: how everything is, from the health manager, or without it from the
orchestrator."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from recollect.cli import options
from recollect.cli.calling import client_of
from recollect.cli.failures import USAGE, Failure, reporting
from recollect.cli.local_key import data_folder, reachable
from recollect.cli.output import out, print_json, show_failure
from recollect.client.endpoints import split
from recollect.client.settings import ENDPOINT_VARIABLE
from recollect.protocol.errors import RecollectError

DEFAULT_URL = "http://127.0.0.1:7332"
TOKEN_VARIABLE = "RECOLLECT_HEALTH_TOKEN"
TIMEOUT_S = 3.0
WATCH_INTERVAL_S = 1.0
EXIT_CODES = {"healthy": 0, "degraded": 1, "down": 2}
UNWATCHED = (
    "It does not answer at {url}. `recollect up` starts it with the rest, `recollect health` alone."
)
ELSEWHERE = (
    "The one at {url} watches {watched}. --url says where that of this orchestrator is; "
    "`recollect health --endpoint` starts one."
)

Report = dict[str, Any]


def status(
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep showing it until Ctrl-C.", metavar="")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(
            help="Where the health manager is; else what the data folder says, else "
            f"{DEFAULT_URL}. Its token is read from {TOKEN_VARIABLE}.",
            show_default=False,
            metavar="URL",
        ),
    ] = None,
    data: options.Data = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show how everything is; exits with 0 if healthy, 1 if degraded, 2 if down.

    Without a health manager it asks the orchestrator alone, and that is never healthy: nobody
    watches. So it does for an --endpoint that the health manager does not watch.

    For example: `recollect status --watch`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        if url is not None and not url.startswith(("http://", "https://")):
            raise _no_address(url)
        ask = partial(_report, url, data, endpoint, key_file)
        if watch:
            return _keep_telling(ask) if as_json else _keep_showing(ask)
        report = ask()
        if as_json:
            print_json(report)
        else:
            from recollect.cli.health_view import status_view

            out.print(status_view(report))
        raise typer.Exit(EXIT_CODES[report["state"]])


def _keep_showing(ask: partial[Report]) -> None:
    from rich.live import Live

    from recollect.cli.health_view import status_view

    try:
        with Live(status_view(ask()), console=out, auto_refresh=False) as live:
            while True:
                time.sleep(WATCH_INTERVAL_S)
                live.update(status_view(ask()), refresh=True)
    except KeyboardInterrupt:
        return


def _keep_telling(ask: partial[Report]) -> None:
    """A report a line."""
    try:
        while True:
            print_json(ask())
            time.sleep(WATCH_INTERVAL_S)
    except KeyboardInterrupt:
        return


def _report(
    url: str | None, data: str | None, endpoint: str | None, key_file: str | None
) -> Report:
    """What the health manager says, or what can be said without it."""
    import httpx

    # Whoever names a folder or a manager means that one, whatever else they usually talk to.
    if url is None and data is None:
        endpoint = endpoint or os.environ.get(ENDPOINT_VARIABLE)
    if url is not None:
        found, token = url, os.environ.get(TOKEN_VARIABLE)
    else:
        found, token = _announced(Path(data) if data else data_folder())
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    address = f"{found.rstrip('/')}/status"
    try:
        answer = httpx.get(address, headers=headers, timeout=TIMEOUT_S, trust_env=False)
        if answer.status_code == 401:
            raise Failure(
                "unauthenticated",
                f"The health manager at {found} asks for its token.",
                f"Put what is in health/token of its data folder into {TOKEN_VARIABLE}.",
            )
        answer.raise_for_status()
        report = _checked(answer.json())
    except httpx.InvalidURL:
        raise _no_address(found) from None
    except (httpx.HTTPError, ValueError) as error:
        if url is not None and endpoint is None:
            raise Failure(
                "unreachable",
                f"No health manager answers at {found}: {str(error) or type(error).__name__}.",
                "Check --url; without it the health manager of the data folder is asked.",
            ) from error
        return _unwatched(UNWATCHED.format(url=found), endpoint, key_file)
    if endpoint is not None and not _places(endpoint) <= _places(report["endpoint"]):
        why = ELSEWHERE.format(url=found, watched=report["endpoint"])
        return _unwatched(why, endpoint, key_file)
    return {**report, "watched": True}


def _no_address(url: str) -> Failure:
    return Failure(
        "invalid_argument", f"{url} is no http address.", "It is --url.", exit_code=USAGE
    )


def _checked(told: object) -> Report:
    """A report, if it is one; raises ValueError where something else answers."""
    if not isinstance(told, dict) or told.get("state") not in EXIT_CODES or "endpoint" not in told:
        raise ValueError("what answers there is none")
    return told


def _places(endpoints: str) -> set[str]:
    """Where endpoints lead from here, however they are spelled."""
    here = (reachable(one) for one in split(endpoints))
    return {one.replace("//localhost:", "//127.0.0.1:") for one in here}


def _announced(folder: Path) -> tuple[str, str | None]:
    """Where the health manager of a data folder is, and its token, which is for that one only."""
    from recollect.orchestrator.running.data_folder import announcement

    announced = announcement(folder, "health")
    if announced is None or "url" not in announced:
        return DEFAULT_URL, os.environ.get(TOKEN_VARIABLE)
    try:
        return str(announced["url"]), (folder / "health" / "token").read_text().strip()
    except OSError:
        return str(announced["url"]), os.environ.get(TOKEN_VARIABLE)


def _unwatched(why: str, endpoint: str | None, key_file: str | None) -> Report:
    """A report like the health manager's, of the orchestrator alone."""
    from recollect.health.figures import Sample, figures_of
    from recollect.health.moments import iso

    now_s = time.time()
    now = iso(now_s)
    orchestrator: Report = {"name": "orchestrator", "since": None, "details": {}}
    report: Report = {
        "state": "degraded",
        "since": None,
        "at": now,
        "version": None,
        "figures": None,
        "history": [],
        "watched": False,
    }
    with client_of(endpoint, key_file) as client:
        report["endpoint"] = client.endpoint
        try:
            report["version"] = client.ping()["version"]
            orchestrator |= {"state": "healthy", "reasons": []}
            report["figures"] = figures_of(None, Sample(now_s, client.metrics()))
        except RecollectError as error:
            if report["version"] is None:
                report["state"] = "down"
                orchestrator |= {"state": "down", "reasons": [error.message]}
    manager: Report = {
        "name": "health",
        "state": "down",
        "since": None,
        "reasons": [why],
        "details": {},
    }
    return {**report, "components": [orchestrator, manager]}
