"""Commands that ask how things are: ping, stats and version."""

from __future__ import annotations

import time
from typing import Any

import zmq
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from recollect._version import VERSION
from recollect.cli import options
from recollect.cli.calling import calling
from recollect.cli.output import counted, in_words, out, print_json, size
from recollect.protocol.records import Stats


def ping(endpoint: options.Endpoint = None, as_json: options.AsJson = False) -> None:
    """Ask whether the orchestrator is there, and how fast it answers."""
    with calling(endpoint, as_json=as_json) as client:
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


def stats(endpoint: options.Endpoint = None, as_json: options.AsJson = False) -> None:
    """Show counts, sizes, queues and rates."""
    with calling(endpoint, as_json=as_json) as client:
        answer = client.stats()
        if as_json:
            return print_json(answer)
        sections = [_section(name, facts) for name, facts in _facts(answer).items()]
        out.print(Panel(Group(*sections), title=client.endpoint, title_align="left", expand=False))


def _section(name: str, facts: dict[str, str]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", width=9)
    table.add_column(style="dim", width=18)
    table.add_column(overflow="fold")
    for row, (fact, value) in enumerate(facts.items()):
        table.add_row("" if row else name, fact, value)
    return table


def _facts(answer: Stats) -> dict[str, dict[str, str]]:
    """What is worth knowing at a glance; --json has the rest."""
    memories, storage, index = answer["memories"], answer["storage"], answer["index"]
    requests, cache = answer["requests"], answer["cache"]
    looked_up = cache["hits"] + cache["misses"]
    return {
        "memories": {
            "living": f"{memories['total']:,}",
            "by tier": _counts(memories["by_tier"]),
            "deleted": f"{memories['deleted']:,}",
            "changes so far": f"{answer['seq']:,}",
        },
        "storage": {
            "kind": f"{storage['kind']} {storage.get('engine', '')}".strip(),
            "size": size(storage["bytes"]) if "bytes" in storage else "unknown",
            "waiting writes": f"{storage.get('write_queue_length', 0):,}",
        },
        "index": {"vectors": f"{index['vectors']:,}", "model": index["model"]},
        "requests": {
            "under way": f"{requests['in_flight']:,} of at most {requests['in_flight_max']:,}",
            "served": _counts(requests["served"]),
            "failed": _counts(requests["failed"]),
        },
        "cache": {
            "entries": f"{cache['entries']:,}",
            "hits": f"{cache['hits'] / looked_up:.0%}" if looked_up else "none looked up yet",
        },
        "process": {"up for": in_words(answer["uptime_s"])},
    }


def _counts(counts: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def version(as_json: options.AsJson = False) -> None:
    """Show the version of Recollect and of what it stands on."""
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
