"""The command that looks for trouble: doctor."""

from __future__ import annotations

from functools import partial

import typer

from recollect.cli import options
from recollect.cli.failures import FAILED, reporting
from recollect.cli.output import err, note, out, print_json, show_failure


def doctor(
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Look for trouble, and say what to do about it. Changes nothing; works while all runs.

    For example: `recollect doctor --data ./memories`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        from recollect.cli.doctor import check_up
        from recollect.cli.findings import show_findings

        with err.status("Looking …"):
            findings = list(check_up(data, config, endpoint, key_file))
        failed = [finding for finding in findings if finding.state == "fail"]
        if as_json:
            print_json(
                {
                    "status": "success",
                    "healthy": not failed,
                    "checks": [finding._asdict() for finding in findings],
                }
            )
        else:
            show_findings(findings)
            warned = sum(finding.state == "warn" for finding in findings)
            out.print()
            if failed:
                note(f"{len(failed)} of {len(findings)} checks failed.", "bold red")
            elif warned:
                deserve = "deserves" if warned == 1 else "deserve"
                note(f"Nothing failed; {warned} of {len(findings)} {deserve} a look.", "yellow")
            else:
                note("All is well.", "green")
        if failed:
            raise typer.Exit(FAILED)
