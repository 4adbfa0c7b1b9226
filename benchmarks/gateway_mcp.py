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
from typing import Any

from mcp import Client, StdioServerParameters

from benchmarks.core import Service
from benchmarks.load import latencies_us
from benchmarks.table import Row, at_most, p50, show
from recollect import MemoryClient

CALLS = 300
WARMUP = 30
ADDED_MS_MAX = 3.0

Arguments = dict[str, dict[str, Any]]


def tool_calls(service: Service, mcp_url: str | None = None) -> list[Row]:
    """The tools `get_memory` and `recall` beside their operations; over HTTP too, where a gateway
    of the same service is at `mcp_url`."""
    with MemoryClient(service.endpoint) as client:
        for n in range(20):
            memory_id = client.add_memory(f"On day {n} the ship sailed from port {n}.")["memory_id"]

        def get() -> None:
            client.get_memory(memory_id)

        def recall() -> None:
            client.recall("port", k=5)

        beside = {
            "get_memory": p50(latencies_us(get, CALLS, WARMUP)),
            "recall": p50(latencies_us(recall, CALLS, WARMUP)),
        }
    stdio = StdioServerParameters(
        command=sys.executable,
        args=["-m", "recollect", "mcp", "--endpoint", service.endpoint],
        env=service.environment,
    )
    arguments: Arguments = {
        "get_memory": {"memory_id": memory_id},
        "recall": {"query": "port", "k": 5},
    }
    rows = []
    for way, server in (("stdio", stdio), ("HTTP", mcp_url)):
        if server is None:
            continue
        for tool, took_us in asyncio.run(_measured(server, arguments)).items():
            added_ms = (took_us - beside[tool]) / 1000
            name = f"{tool} over MCP, {way}, added to the operation, p50"
            rows.append(at_most(name, added_ms, ADDED_MS_MAX, 1.0, "ms", "at most"))
    return rows


async def _measured(server: StdioServerParameters | str, arguments: Arguments) -> dict[str, float]:
    async with Client(server, cache=None) as client:
        return {
            tool: p50(await _latencies_us(partial(client.call_tool, tool, given)))
            for tool, given in arguments.items()
        }


async def _latencies_us(call: Callable[[], Awaitable[object]]) -> list[float]:
    for _ in range(WARMUP):
        await call()
    samples = []
    for _ in range(CALLS):
        started = time.perf_counter_ns()
        await call()
        samples.append((time.perf_counter_ns() - started) / 1000)
    return samples


def main() -> bool:
    """Measure over stdio and print one table."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        service = Service(Path(name) / "data")
        service.start()
        try:
            rows = tool_calls(service)
        finally:
            service.stop()
    return show("MCP beside the operations", rows)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
