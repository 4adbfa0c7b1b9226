"""What a call of an MCP tool adds to its operation: over stdio, and over HTTP through the gateway.

Both ends speak the official SDK, so what its client takes is part of it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mcp import Client, StdioServerParameters

from benchmarks.service import Service, running_gateway
from benchmarks.table import Row, at_most, p50, show
from recollect import MemoryClient

CALLS = 300
WARMUP = 30
ADDED_MS_MAX = 3.0
WITHOUT_GRPC = {"PORT": "0", "GRPC": "false"}


class Asked(NamedTuple):
    """A tool with what it is given, and the operation that does the same."""

    tool: str
    given: dict[str, Any]
    operation: Callable[[], object]


def tool_calls(service: Service, mcp_url: str | None = None) -> list[Row]:
    """The tools `get_memory` and `recall` beside their operations; over HTTP too, where a gateway
    of the same service is at `mcp_url`."""
    with MemoryClient(service.endpoint) as client:
        for n in range(20):
            memory_id = client.add_memory(f"On day {n} the ship sailed from port {n}.")["memory_id"]
        asked = (
            Asked("get_memory", {"memory_id": memory_id}, lambda: client.get_memory(memory_id)),
            Asked("recall", {"query": "port", "k": 5}, lambda: client.recall("port", k=5)),
        )
        stdio = StdioServerParameters(
            command=sys.executable,
            args=["-m", "recollect", "mcp", "--endpoint", service.endpoint],
            env=service.environment,
        )
        return [
            at_most(
                f"{tool} over MCP, {way}, added to the operation, p50",
                (tool_us - operation_us) / 1000,
                ADDED_MS_MAX,
                1.0,
                "ms",
                "at most",
            )
            for way, server in (("stdio", stdio), ("HTTP", mcp_url))
            if server is not None
            for tool, tool_us, operation_us in asyncio.run(_measured(server, asked))
        ]


async def _measured(
    server: StdioServerParameters | str, asked: tuple[Asked, ...]
) -> list[tuple[str, float, float]]:
    """Each tool with the median of its calls, and that of its operation."""
    async with Client(server, cache=None) as client:
        return [
            (one.tool, *await _latencies_us(partial(client.call_tool, one.tool, one.given), one))
            for one in asked
        ]


async def _latencies_us(call: Callable[[], Awaitable[object]], asked: Asked) -> tuple[float, float]:
    """Both in turns. An operation that is asked for without pause, by a program that does nothing
    else, finds all of its caches warm; the one within a tool call never does."""
    tool_us, operation_us = [], []
    for n in range(WARMUP + CALLS):
        started = time.perf_counter_ns()
        await call()
        between = time.perf_counter_ns()
        asked.operation()
        ended = time.perf_counter_ns()
        if n >= WARMUP:
            tool_us.append((between - started) / 1000)
            operation_us.append((ended - between) / 1000)
    return p50(tool_us), p50(operation_us)


def main() -> bool:
    """Measure over stdio and HTTP and print one table."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        service = Service(Path(name) / "data")
        service.start()
        try:
            with running_gateway(service, **WITHOUT_GRPC) as said:
                rows = tool_calls(service, said["mcp_url"])
        finally:
            service.stop()
    return show("MCP beside the operations", rows)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
