"""A pushed event beside an echo of the same bytes."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.load import latencies_us
from benchmarks.raw import EchoClient, echo_server
from benchmarks.service import Service, serving
from benchmarks.table import Row, at_most, medians, p50, show
from recollect import MemoryClient

CALLS = 3_000
ROUNDS = 3
DATA = {"service": "ingest", "step": "deploy", "ok": True, "took_ms": 1250, "by": "ci-runner-7"}


def pushing(service: Service) -> list[Row]:
    """push_event beside an echo."""
    with MemoryClient(service.endpoint) as client:
        request = {"category": "deploy", "data": DATA, "critical": False}
        answer: Any = client.push_event("deploy", DATA)
        numbers = itertools.count()

        def push() -> None:
            client.push_event("deploy", {**DATA, "took_ms": next(numbers)})

        def measure() -> dict[str, float]:
            with echo_server(answer) as endpoint:
                echo_us = p50(latencies_us(EchoClient(endpoint, request).call, CALLS))
            return {"echo": echo_us, "push": p50(latencies_us(push, CALLS))}

        found = medians(measure, ROUNDS)
    return [at_most("push_event, p50", found["push"], found["echo"], 2.0, "µs", "raw echo")]


def main(arguments: Sequence[str] = ()) -> bool:
    """Measure and print one table."""
    with serving() as service:
        rows = pushing(service)
    return show("Operational memory beside the raw limits of this machine", rows)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
