"""gRPC beside a bare grpc.aio echo of the same bytes: `python -m benchmarks.gateway_grpc`.

Both servers are processes of their own, asked in turn by the same client with the same bytes, so
that what differs is what Recollect does: the way to the orchestrator and back, and both messages.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from benchmarks.service import CONTENT, Service, running_gateway
from benchmarks.table import Row, at_least, medians, show
from recollect import MemoryClient
from recollect.gateway.grpc.descriptors import Messages
from recollect.gateway.grpc.proto_file import PACKAGE, SERVICE, kept

METHOD = f"/{PACKAGE}.{SERVICE}/GetMemory"
SHARE_MIN = 0.5
ROUNDS = 5
ROUND_S = 1.0
CALLERS = 32
WARMUP = 300
STARTED_WITHIN_S = 30.0
GRPC_ALONE = {"GRPC_PORT": "0", "PORT": "0", "REST": "false", "MCP": "false"}


def rows(service: Service) -> list[Row]:
    """A memory read over gRPC beside the echo, of one caller and of many at once."""
    with MemoryClient(service.endpoint) as client:
        memory_id = client.add_memory(CONTENT.format(0))["memory_id"]
    request = Messages(kept())["GetMemoryRequest"](memory_id=memory_id).SerializeToString()
    with ExitStack() as stack:
        served = str(stack.enter_context(running_gateway(service, **GRPC_ALONE))["grpc"])
        echo = stack.enter_context(_echo(_answer_of(served, request)))

        def measure() -> dict[str, float]:
            return {
                f"{name} {callers}": asyncio.run(_calls_per_s(address, request, callers))
                for callers in (1, CALLERS)
                for name, address in (("echo", echo), ("gRPC", served))
            }

        found = medians(measure, ROUNDS)
    return [
        at_least(
            f"gRPC GetMemory, callers: {callers}",
            found[f"gRPC {callers}"],
            found[f"echo {callers}"],
            SHARE_MIN,
            "calls/s",
            "grpc.aio echo",
        )
        for callers in (1, CALLERS)
    ]


def _answer_of(address: str, request: bytes) -> bytes:
    with grpc.insecure_channel(address) as channel:
        ask: Any = channel.unary_unary(METHOD)
        answer: bytes = ask(request, timeout=STARTED_WITHIN_S)
        return answer


async def _calls_per_s(address: str, request: bytes, callers: int) -> float:
    """How many calls a second are answered to so many who each wait for theirs."""
    async with grpc.aio.insecure_channel(address) as channel:
        ask: Any = channel.unary_unary(METHOD)
        for _ in range(WARMUP):
            await ask(request)
        until_s = time.perf_counter() + ROUND_S

        async def call() -> int:
            done = 0
            while time.perf_counter() < until_s:
                await ask(request)
                done += 1
            return done

        began_s = time.perf_counter()
        done = sum(await asyncio.gather(*(call() for _ in range(callers))))
        return done / (time.perf_counter() - began_s)


@contextmanager
def _echo(answer: bytes) -> Iterator[str]:
    """A bare server in a process of its own that gives this answer to whatever it is asked."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.gateway_grpc", "--echo", answer.hex()],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(STARTED_WITHIN_S)


async def _serve_echo(answer: bytes) -> None:
    async def give(request: bytes, context: object) -> bytes:
        return answer

    server = grpc.aio.server()
    handlers: dict[str, Any] = {
        METHOD.rpartition("/")[2]: grpc.unary_unary_rpc_method_handler(give)
    }
    generic = grpc.method_handlers_generic_handler(f"{PACKAGE}.{SERVICE}", handlers)
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


def main() -> bool:
    """Measure and show; whether every bound is met."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data")
        service.start()
        try:
            return show("gRPC", rows(service))
        finally:
            service.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--echo"]:
        asyncio.run(_serve_echo(bytes.fromhex(sys.argv[2])))
    else:
        sys.exit(0 if main() else 1)
