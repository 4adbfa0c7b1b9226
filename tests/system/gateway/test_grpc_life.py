"""How gRPC is while the orchestrator goes and comes, and to whom it shows a certificate."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from recollect.gateway.process import DRAIN_S_MAX
from recollect.protocol import errors
from tests.harness.gateways import GatewayProcess
from tests.harness.grpc_calling import CALLED_WITHIN_S, GrpcCaller
from tests.harness.grpc_gateways import calling, channel_to, gateway_of
from tests.harness.processes import OrchestratorProcess
from tests.system.gateway.test_grpc_open_streams import kept_open

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICE = "recollect.v1.Recollect"


@pytest.fixture
def gateway(orchestrator: OrchestratorProcess) -> Iterator[GatewayProcess]:
    with gateway_of(orchestrator) as process:
        yield process


def test_it_serves_for_as_long_as_the_orchestrator_answers(
    orchestrator: OrchestratorProcess, gateway: GatewayProcess
) -> None:
    with channel_to(gateway) as channel, calling(gateway) as client:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watched = stub.Watch(
            health_pb2.HealthCheckRequest(service=SERVICE), timeout=CALLED_WITHIN_S
        )
        assert next(watched).status == SERVING
        orchestrator.kill()
        assert next(watched).status == NOT_SERVING
        assert stub.Check(health_pb2.HealthCheckRequest()).status == NOT_SERVING
        with pytest.raises(errors.RecollectError) as caught:
            client.ping(timeout=5.0)
        assert caught.value.retryable
        orchestrator.start()
        assert next(watched).status == SERVING
        assert client.ping()["ready"] is True


def test_what_is_under_way_is_answered_before_the_end(
    orchestrator: OrchestratorProcess, gateway: GatewayProcess
) -> None:
    with calling(gateway) as client, orchestrator.client() as other:
        answers: list[object] = []
        known = other.add_memory("Something before")["seq"]
        call = lambda: answers.append(client.read_changes(known, wait_s=5.0))  # noqa: E731
        waiting = threading.Thread(target=call)
        waiting.start()
        until_s = time.monotonic() + CALLED_WITHIN_S
        while "read_changes" not in client.called or not other.metrics()["requests"]["in_flight"]:
            assert time.monotonic() < until_s
        gateway.signal(signal.SIGTERM)
        memory_id = other.add_memory("What it waits for")["memory_id"]
        waiting.join(CALLED_WITHIN_S)
        assert [a["changes"][0]["subject"] for a in answers] == [memory_id]  # type: ignore[index]
    assert gateway.wait_ended() == 0


def test_who_watches_or_asks_what_there_is_does_not_hold_up_its_end(
    gateway: GatewayProcess,
) -> None:
    with channel_to(gateway) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watched = health.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
        assert next(watched).status == SERVING
        reflection: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        over = threading.Event()
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        answers = reflection.ServerReflectionInfo(kept_open(asked, over))
        next(answers)
        begun_s = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - begun_s < DRAIN_S_MAX / 2
        assert [told.status for told in watched] == [NOT_SERVING]
        with pytest.raises(grpc.RpcError) as caught:
            next(answers)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        over.set()


@pytest.fixture
def certified(
    orchestrator: OrchestratorProcess, tmp_path: Path
) -> Iterator[tuple[GatewayProcess, bytes]]:
    """A gateway with a certificate, and who vouches for it."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(chain)
    issued.private_key_pem.write_to_path(key)
    with gateway_of(orchestrator, tls_certificate=str(chain), tls_key=str(key)) as process:
        yield process, authority.cert_pem.bytes()


def test_it_shows_its_certificate(certified: tuple[GatewayProcess, bytes]) -> None:
    gateway, authority = certified
    address = str(gateway.said["grpc"])
    trusting = grpc.ssl_channel_credentials(authority)
    with grpc.secure_channel(address, trusting) as channel:
        assert GrpcCaller(channel).ping()["ready"] is True
    other = grpc.ssl_channel_credentials(trustme.CA().cert_pem.bytes())
    for channel in (grpc.secure_channel(address, other), grpc.insecure_channel(address)):
        with channel, pytest.raises(grpc.RpcError) as caught:
            GrpcCaller(channel).ping(timeout=5.0)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"host": "0.0.0.0"}, "travel in the clear"),
        ({"tls_certificate": "chain.pem"}, "set both, or neither"),
        ({"tls_certificate": "absent.pem", "tls_key": "absent.pem"}, "cannot be read"),
    ],
)
def test_without_a_certificate_that_is_needed_it_does_not_start(
    tmp_path: Path, settings: dict[str, str], told: str
) -> None:
    (tmp_path / "data").mkdir()
    nobody = OrchestratorProcess(tmp_path / "data")
    gateway = gateway_of(nobody, **settings)
    with pytest.raises(AssertionError, match="it ended"):
        gateway.start()
    assert gateway.wait_ended() == 2
    assert told in " ".join(gateway.log().split())


def test_a_port_that_is_taken_is_named(gateway: GatewayProcess, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    port = str(gateway.said["grpc"]).rpartition(":")[2]
    second = gateway_of(OrchestratorProcess(tmp_path / "other"), grpc_port=port)
    with pytest.raises(AssertionError, match="it ended"):
        second.start()
    assert port in second.log()
    assert "Traceback" not in second.log()
