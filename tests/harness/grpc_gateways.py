"""A real gateway that serves gRPC, and a channel to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from tests.harness.gateways import GatewayProcess
from tests.harness.grpc_calling import GrpcCaller
from tests.harness.processes import OrchestratorProcess

GRPC_ALONE = {"RECOLLECT_GATEWAY_MCP": "false", "RECOLLECT_GATEWAY_REST": "false"}


def gateway_of(orchestrator: OrchestratorProcess, **env: str) -> GatewayProcess:
    """The gateway of an orchestrator, yet to be started; settings as `timeout_s="1"`."""
    named = {f"RECOLLECT_GATEWAY_{name.upper()}": value for name, value in env.items()}
    return GatewayProcess(orchestrator.data, orchestrator.endpoint, {**GRPC_ALONE, **named})


def channel_to(gateway: GatewayProcess) -> grpc.Channel:
    """A channel of its own, that shares no connection with another and tries again at once."""
    options = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 200),
    ]
    return grpc.insecure_channel(str(gateway.said["grpc"]), options=options)


@contextmanager
def calling(gateway: GatewayProcess, bearer: str | None = None) -> Iterator[GrpcCaller]:
    """Somebody who calls the gateway, with or without a bearer key."""
    with channel_to(gateway) as channel:
        yield GrpcCaller(channel, bearer)
