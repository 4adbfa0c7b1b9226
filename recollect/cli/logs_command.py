"""`recollect logs`: what the processes of this machine have to say."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli import options
from recollect.cli.failures import Failure, reporting
from recollect.cli.output import out, show_failure

if TYPE_CHECKING:
    from recollect.cli.up.log_reading import Line

LOOK_S = 0.2


def logs(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only these: orchestrator, scheduler, gateway, health, up.", metavar="NAME"
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="How many of the last lines.", metavar="N")
    ] = 40,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes.", metavar="")
    ] = False,
    raw: Annotated[
        bool, typer.Option("--json", help="The lines as they were written.", metavar="")
    ] = False,
    data: options.Data = None,
    config: options.Config = None,
) -> None:
    """Show what the processes wrote into their logs, in order of time.

    For example: `recollect logs --follow`
    """
    with reporting(show_failure):
        from recollect.cli.up.log_reading import in_order, log_files

        folder = Path(options.settings_from(config, data).storage.data)
        found = log_files(folder, names or ())
        if not found and not (follow and not names):
            known = ", ".join(log.path.stem for log in log_files(folder))
            advice = f"There are: {known}." if known else "`recollect up` writes them."
            raise Failure(
                "no_log",
                f"There is no {'such log' if known else 'log yet'} in {folder / 'logs'}.",
                f"{advice} --data names another folder.",
            )
        last = in_order(line for log in found for line in log.last(count))
        _print(last[-count:] if count else [], raw=raw)
        while follow:
            time.sleep(LOOK_S)
            known_paths = {log.path for log in found}
            found += [log for log in log_files(folder, names or ()) if log.path not in known_paths]
            _print(in_order(line for log in found for line in log.new()), raw=raw)


def _print(lines: list[Line], *, raw: bool) -> None:
    from recollect.cli.up.log_reading import shown

    for line in lines:
        if raw:
            sys.stdout.write(f"{line.text}\n")
        else:
            out.print(shown(line), soft_wrap=True)
    sys.stdout.flush()
