"""The gRPC server: every operation, the feed, reflection and health, at one address."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2
from grpc_reflection.v1alpha.reflection import aio as aio_reflection

from recollect.client.encoding import PAYLOAD_BYTES_MAX
from recollect.config.gateway import GatewaySettings
from recollect.gateway.admission import Admission
from recollect.gateway.asking import Backend
from recollect.gateway.callers import Doorman
from recollect.gateway.grpc.calls import Calls
from recollect.gateway.grpc.credentials import credentials_of
from recollect.gateway.grpc.descriptors import Messages
from recollect.gateway.grpc.feed import Following
from recollect.gateway.grpc.health import Health
from recollect.gateway.grpc.proto_file import PACKAGE, SERVICE, kept
from recollect.gateway.grpc.receiving import Receiving
from recollect.gateway.grpc.subscribing import Subscribing
from recollect.gateway.grpc.watching import BoundedReflection, OpenStreams
from recollect.gateway.shares import Shares
from recollect.protocol.operations import REGISTRY
from recollect.web.listening import AddressTaken

SERVICE_NAME = f"{PACKAGE}.{SERVICE}"
SECTION = "gateway"
HEALTH = "grpc.health.v1.Health"
REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"

# A client may ask whether the line is there, but not all the time; who is not there is forgotten.
PING_INTERVAL_MS_MIN = 10_000
PING_STRIKES_MAX = 2
KEEPALIVE_EVERY_MS = 60_000
KEEPALIVE_ANSWERED_MS = 20_000
METADATA_BYTES_MAX = 16 * 1024
# Beside the operations and streams there are health checks and reflection, which need no key.
OTHER_CALLS_MAX = 128
OTHER_STREAMS_MAX = 64


class GrpcServer:
    """Serves gRPC until it is stopped. Lives on the event loop."""

    def __init__(self, backend: Backend, doorman: Doorman, settings: GatewaySettings) -> None:
        self._settings = settings
        self._credentials = credentials_of(settings)
        self._stopping = asyncio.Event()
        self._open_streams = OpenStreams(OTHER_STREAMS_MAX)
        self._health = Health(backend, self._open_streams)
        messages = Messages(
            kept(),
            beside=(health_pb2.DESCRIPTOR.serialized_pb, reflection_pb2.DESCRIPTOR.serialized_pb),
        )
        self._server = grpc.aio.server(
            options=options_of(settings),
            maximum_concurrent_rpcs=settings.requests_max + settings.streams_max + OTHER_CALLS_MAX,
        )
        admission = Admission(settings.requests_max, settings.requests_per_s)
        calls = Calls(backend, doorman, admission, messages, timeout_s=settings.timeout_s)
        following = Following(backend, outage_s_max=settings.timeout_s, stopping=self._stopping)
        streams = Shares(
            settings.streams_max,
            settings.share_max,
            what="readers of the feed",
            limit="gateway.streams_max",
        )
        subscribing = Subscribing(backend, following, doorman, admission, messages, streams=streams)
        owing = Shares(
            settings.requests_max + settings.streams_max,
            settings.share_max,
            what="calls without their message",
            limit="gateway.requests_max",
        )
        self._receiving = Receiving(owing, settings.read_s)
        self._add_operations(calls, subscribing, messages)
        self._add_health()
        self._add_reflection(messages)

    def _add_operations(self, calls: Calls, subscribing: Subscribing, messages: Messages) -> None:
        operations = {cls.__name__: cls for cls in REGISTRY.values()}
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        for rpc in messages.file.rpcs:
            if rpc.streams:
                stream = self._receiving.before(subscribing.stream)
                handlers[rpc.name] = grpc.stream_stream_rpc_method_handler(stream)
            elif rpc.name in operations:
                answer = self._receiving.before(calls.answering(rpc, operations[rpc.name]))
                handlers[rpc.name] = grpc.stream_unary_rpc_method_handler(answer)
        generic = grpc.method_handlers_generic_handler(SERVICE_NAME, handlers)
        self._server.add_generic_rpc_handlers((generic,))

    def _add_health(self) -> None:
        servicer = self._health.servicer
        turning = (
            health_pb2.HealthCheckRequest.FromString,
            health_pb2.HealthCheckResponse.SerializeToString,
        )
        check, watch = map(self._receiving.before, (servicer.Check, servicer.Watch))
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Check": grpc.stream_unary_rpc_method_handler(check, *turning),
            "Watch": grpc.stream_stream_rpc_method_handler(watch, *turning),
        }
        generic = grpc.method_handlers_generic_handler(HEALTH, handlers)
        self._server.add_generic_rpc_handlers((generic,))

    def _add_reflection(self, messages: Messages) -> None:
        """Under its two names: the messages of both are the same."""
        names = (SERVICE_NAME, HEALTH, reflection.SERVICE_NAME)
        servicer = aio_reflection.ReflectionServicer(names, pool=messages.pool)
        handler = grpc.stream_stream_rpc_method_handler(
            BoundedReflection(servicer, self._open_streams).answer,
            reflection_pb2.ServerReflectionRequest.FromString,
            reflection_pb2.ServerReflectionResponse.SerializeToString,
        )
        handlers = {"ServerReflectionInfo": handler}
        for name in (reflection.SERVICE_NAME, REFLECTION_V1):
            generic = grpc.method_handlers_generic_handler(name, handlers)
            self._server.add_generic_rpc_handlers((generic,))

    async def start(self) -> int:
        """Serve; the port that it is bound to. Raises AddressTaken."""
        host, port = self._settings.host, self._settings.grpc_port
        name = host.strip("[]")
        address = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        try:
            if self._credentials is None:
                bound = self._server.add_insecure_port(address)
            else:
                bound = self._server.add_secure_port(address, self._credentials)
        except RuntimeError as error:
            why = "another process has it, or it is no address of this machine"
            message = f"gRPC cannot listen at {address} (gateway.grpc_port): {why}."
            raise AddressTaken(message, SECTION) from error
        await self._health.start()
        await self._server.start()
        return bound

    async def stop(self, grace_s: float) -> None:
        """Let what is under way be answered, no longer than this; streams end at once."""
        self._stopping.set()
        await self._health.stop()
        await self._server.stop(grace_s)


def options_of(settings: GatewaySettings) -> list[tuple[str, int]]:
    """The bounds that gRPC itself sees to."""
    return [
        ("grpc.max_receive_message_length", settings.body_bytes_max),
        ("grpc.max_send_message_length", PAYLOAD_BYTES_MAX),
        ("grpc.max_metadata_size", METADATA_BYTES_MAX),
        ("grpc.max_concurrent_streams", settings.requests_max + settings.streams_max),
        ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_MS_MIN),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", PING_INTERVAL_MS_MIN),
        ("grpc.http2.max_ping_strikes", PING_STRIKES_MAX),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.keepalive_time_ms", KEEPALIVE_EVERY_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_ANSWERED_MS),
        # Two servers at one port would each get half of the callers.
        ("grpc.so_reuseport", 0),
    ]
