"""The gateway beside bare servers that give the same answers: `python -m benchmarks.gateway`.

REST is asked for one memory beside a bare Starlette route on the same uvicorn that returns the same
bytes, in turns, by the same client. What differs is what Recollect does: the guard, the way to the
orchestrator and back, the record as JSON. MCP and gRPC have programs of their own, run here too.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from benchmarks import gateway_grpc, gateway_mcp
from benchmarks.gateway_mcp import WITHOUT_GRPC
from benchmarks.service import CONTENT, Service, running_gateway
from benchmarks.table import Row, at_least, at_most, medians, p50, show
from recollect import AsyncMemoryClient, MemoryClient

SHARE_MIN = 0.5
ALONE_MAX = 1.2
CALLS = 1_000
ROUNDS = 5
ROUND_S = 1.0
CALLERS = 32
WARMUP = 300
STARTED_WITHIN_S = 30.0


def rest_rows(service: Service, url: str, rounds: int = ROUNDS) -> list[Row]:
    """A memory read over REST beside the bare route, of one caller and of many at once."""
    with MemoryClient(service.endpoint) as client:
        memory_id = client.add_memory(CONTENT.format(0))["memory_id"]
    path = f"/v1/memories/{memory_id}"
    answer = httpx.get(url + path, trust_env=False).raise_for_status().content
    with bare(path, answer) as bare_url:

        def measure() -> dict[str, float]:
            rates = {
                f"{name} {callers}": asyncio.run(_requests_per_s(where, path, callers))
                for callers in (1, CALLERS)
                for name, where in (("bare", bare_url), ("REST", url))
            }
            operation_us = asyncio.run(_operation_us(service.endpoint, memory_id))
            return {**rates, "operation": operation_us}

        found = medians(measure, rounds)
    alone_us = {name: 1e6 / found[f"{name} 1"] for name in ("bare", "REST")}
    return [
        at_least(
            f"REST GET of a memory, callers: {CALLERS}",
            found[f"REST {CALLERS}"],
            found[f"bare {CALLERS}"],
            SHARE_MIN,
            "requests/s",
            "bare Starlette",
        ),
        at_most(
            "REST GET of a memory, one caller",
            alone_us["REST"],
            alone_us["bare"] + found["operation"],
            ALONE_MAX,
            "µs",
            "bare Starlette + the operation by the asyncio client",
        ),
    ]


async def _operation_us(endpoint: str, memory_id: str) -> float:
    """How long the same takes by the client that the gateway has."""
    samples = []
    async with AsyncMemoryClient(endpoint) as client:
        for _ in range(CALLS):
            began_s = time.perf_counter()
            await client.get_memory(memory_id)
            samples.append(1e6 * (time.perf_counter() - began_s))
    return p50(samples)


async def _requests_per_s(url: str, path: str, callers: int) -> float:
    """How many requests a second are answered to so many who each wait for theirs.

    The client is as plain as can be: it shares the machine with what it measures.
    """
    place = urlsplit(url)
    request = f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
    lines = [await asyncio.open_connection(place.hostname, place.port) for _ in range(callers)]
    for _ in range(WARMUP // callers):
        for line in lines:
            await _exchange(*line, request)
    until_s = time.perf_counter() + ROUND_S

    async def call(line: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> int:
        done = 0
        while time.perf_counter() < until_s:
            await _exchange(*line, request)
            done += 1
        return done

    began_s = time.perf_counter()
    done = sum(await asyncio.gather(*(call(line) for line in lines)))
    rate = done / (time.perf_counter() - began_s)
    for _, writer in lines:
        writer.close()
    return rate


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> None:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    at = head.index(b"content-length: ") + 16
    await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))


@contextmanager
def bare(path: str, answer: bytes) -> Iterator[str]:
    """A bare Starlette route in a process of its own that gives this answer; its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.gateway", "--bare", path, answer.hex()],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(STARTED_WITHIN_S)


def _serve_bare(path: str, answer: bytes) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from recollect.event_loop import quickest_loop
    from recollect.web.listening import listen

    async def give(request: Request) -> Response:
        return Response(answer, media_type="application/json")

    with listen("127.0.0.1", 0, section="bare") as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        app = Starlette(routes=[Route(path, give)])
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
        with asyncio.Runner(loop_factory=quickest_loop()) as runner:
            runner.run(uvicorn.Server(config).serve(sockets=[listening]))


def main(arguments: Sequence[str] = ()) -> bool:
    """Measure all ways in and show them; whether every bound is met."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        service = Service(data)
        service.start()
        try:
            with running_gateway(service, **WITHOUT_GRPC) as said:
                found = rest_rows(service, said["url"])
                found += gateway_mcp.tool_calls(service, said.get("mcp_url"))
            found += gateway_grpc.rows(service)
        finally:
            service.stop()
    return show("The gateway beside bare servers", found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        _serve_bare(sys.argv[2], bytes.fromhex(sys.argv[3]))
    else:
        sys.exit(0 if main() else 1)
