"""Streams that need no key keep nobody out who has one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from recollect.gateway.grpc.server import OTHER_STREAMS_MAX
from tests.harness.grpc_gateways import calling, channel_to, gateway_of
from tests.harness.processes import OrchestratorProcess

WITHIN_S = 30.0
BUSY = grpc.StatusCode.UNAVAILABLE


def test_watching_and_reflection_take_no_place_of_the_operations(tmp_path: Path) -> None:
    with (
        OrchestratorProcess(tmp_path / "data") as process,
        gateway_of(process, requests_max="1", streams_max="1") as gateway,
        contextlib.ExitStack() as channels,
    ):
        # Each connection has a bound of its own, so there are several.
        watchers: list[Any] = []
        over = threading.Event()
        refused = []
        for at in range(3 * OTHER_STREAMS_MAX):
            if at % 2 == 0:
                channel = channels.enter_context(channel_to(gateway))
                stub: Any = health_pb2_grpc.HealthStub(channel)
                stream = stub.Watch(health_pb2.HealthCheckRequest(), timeout=WITHIN_S)
            else:
                asked = reflection_pb2.ServerReflectionRequest(list_services="")
                stub = reflection_pb2_grpc.ServerReflectionStub(channel)
                stream = stub.ServerReflectionInfo(kept_open(asked, over), timeout=WITHIN_S)
            try:
                next(stream)
                watchers.append(stream)
            except grpc.RpcError as error:
                refused.append(error.code())
        assert len(watchers) == OTHER_STREAMS_MAX
        assert set(refused) == {BUSY}
        with calling(gateway) as client:
            assert client.ping()["ready"] is True
        over.set()
        for stream in watchers:
            stream.cancel()


def kept_open(first: Any, over: threading.Event) -> Iterator[Any]:
    """What is asked, and then nothing more while the stream is open."""
    yield first
    over.wait(WITHIN_S)
