"""Commands that ask the orchestrator itself how it is: ping, stats, whoami and version."""

from __future__ import annotations

import time

import zmq
from rich.text import Text

from recollect._version import VERSION
from recollect.cli import options
from recollect.cli.calling import calling
from recollect.cli.output import clean, counted, in_words, out, print_json
from recollect.cli.stats_view import show_stats


def ping(
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Ask whether the orchestrator is there, and how fast it answers.

    For example: `recollect ping --endpoint tcp://127.0.0.1:7341`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.ping()
        if as_json:
            return print_json(answer)
        # The first one also made the connection.
        began_s = time.perf_counter()
        client.ping()
        took_ms = (time.perf_counter() - began_s) * 1000
        out.print(
            Text.assemble(
                ("Recollect ", "green"),
                (answer["version"], "green"),
                f" answers at {client.endpoint} in {took_ms:.1f} ms",
                (
                    f"\nup for {in_words(answer['uptime_s'])}, "
                    f"{counted(answer['seq'], 'change')} so far, protocol {answer['protocol']}",
                    "dim",
                ),
            ),
            soft_wrap=True,
        )


def stats(
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show counts, sizes, queues and rates.

    For example: `recollect stats --json`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.stats()
        if as_json:
            return print_json(answer)
        show_stats(answer, client.endpoint)


def whoami(
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show who you are to the orchestrator, and what you may do.

    For example: `recollect whoami --key-file planner.key`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.who_am_i()
        if as_json:
            return print_json(answer)
        text = Text.assemble((answer["identity"], "bold green"), f" at {client.endpoint}")
        for grant in answer["grants"]:
            text.append(f"\n  {grant['access']:<6} {clean(grant['pattern'])}")
        if not answer["grants"]:
            text.append("\n  may do nothing yet: `recollect keys grant` changes that", "yellow")
        out.print(text, soft_wrap=True)


def version(as_json: options.AsJson = False) -> None:
    """Show the version of Recollect and of what it stands on.

    For example: `recollect version --json`
    """
    parts = {"recollect": VERSION, "zeromq": zmq.zmq_version()}
    try:
        import apsw

        parts["sqlite"] = apsw.sqlite_lib_version()
    except ImportError:
        pass
    if as_json:
        return print_json({"status": "success", **parts})
    out.print(f"recollect {VERSION}")
    out.print(
        ", ".join(f"{name} {number}" for name, number in parts.items() if name != "recollect"),
        style="dim",
    )
