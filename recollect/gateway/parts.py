"""MCP and gRPC beside REST: each where it is wanted and its package is installed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any, Protocol

import structlog
from starlette.types import Receive, Scope, Send

from recollect.config.gateway import GatewaySettings
from recollect.gateway.admission import Admission
from recollect.gateway.asking import Backend
from recollect.gateway.callers import Doorman

log = structlog.get_logger()


class Mcp(Protocol):
    """MCP over streamable HTTP, as an ASGI application that runs within a context."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...
    def running(self) -> AbstractAsyncContextManager[object]: ...


class Grpc(Protocol):
    """The gRPC server."""

    async def start(self) -> int:
        """Listen; the port."""
        ...

    async def stop(self, grace_s: float) -> None: ...


def mcp_endpoint(
    backend: Backend, doorman: Doorman, admission: Admission, settings: GatewaySettings
) -> Mcp | None:
    """What serves MCP; None where it is not wanted or not installed."""
    if not settings.mcp:
        return None
    make: Callable[[Backend, Doorman, Admission, GatewaySettings], Mcp] | None
    make = _found("recollect.gateway.mcp.http", "make_endpoint", "MCP", "gateway")
    return make(backend, doorman, admission, settings) if make else None


def grpc_server(backend: Backend, doorman: Doorman, settings: GatewaySettings) -> Grpc | None:
    """What serves gRPC; None where it is not wanted or not installed."""
    if not settings.grpc:
        return None
    make: Callable[[Backend, Doorman, GatewaySettings], Grpc] | None
    make = _found("recollect.gateway.grpc.server", "GrpcServer", "gRPC", "grpc")
    return make(backend, doorman, settings) if make else None


def _found(module: str, name: str, called: str, extra: str) -> Any:
    """What makes a part; None, and one line in the log, where its package is missing."""
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("recollect"):
            raise
        log.info(
            f"There is no {called}: pip install 'recollect[{extra}]' brings it.",
            action="gateway",
            missing=missing.name,
        )
        return None
