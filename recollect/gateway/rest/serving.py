"""REST requests: found, read, asked and answered, the shortest way that there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import structlog
from msgspec.structs import force_setattr
from starlette.types import Receive, Scope, Send

from recollect.client.encoding import WRITING
from recollect.config.gateway import GatewaySettings
from recollect.gateway.admission import Admission
from recollect.gateway.asking import Backend
from recollect.gateway.callers import Doorman
from recollect.gateway.rest import saying, streaming
from recollect.gateway.rest.answers import send_answer, send_problem
from recollect.gateway.rest.binding import Binding
from recollect.gateway.rest.describing import Description
from recollect.gateway.rest.problems import Header, Refusal, status_of
from recollect.gateway.rest.reading import CLOSE, Bodies, CallerGone, has_body
from recollect.gateway.rest.routing import Router, names_of
from recollect.gateway.rest.streaming import ChangeStreams
from recollect.gateway.shares import caller_of
from recollect.protocol.errors import (
    InternalError,
    InvalidArgument,
    RecollectError,
    UnknownOperation,
)
from recollect.protocol.operation import Operation
from recollect.protocol.operations import REGISTRY, ReadChanges

log = structlog.get_logger()

ACCEPT_ENCODING = b"accept-encoding"
encode = msgspec.json.Encoder().encode


class Route(msgspec.Struct, frozen=True):
    """One operation as REST offers it."""

    operation: type[Operation[Any]]
    binding: Binding
    description: Description
    writes: bool
    streams: bool


class Asked(msgspec.Struct, frozen=True):
    """A request, as far as its line and headers go."""

    method: str
    raw_path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]
    request_id: bytes
    caller: str
    """Who asks, for counting: its key, or its address where it has none."""


def make_router() -> Router[Route]:
    """The routes of all declared operations."""
    router: Router[Route] = Router()
    for operation in REGISTRY.values():
        method, template = operation.spec.http
        route = Route(
            operation,
            Binding(operation, names_of(template)),
            Description(operation),
            operation.spec.access in WRITING,
            operation is ReadChanges,
        )
        router.add(method, template, route)
    return router


class Rest:
    """Everything under `/v1`, as an ASGI application behind the guard."""

    def __init__(
        self,
        backend: Backend,
        doorman: Doorman,
        admission: Admission,
        settings: GatewaySettings,
    ) -> None:
        self._backend = backend
        self._doorman = doorman
        self._admission = admission
        self._router = make_router()
        self._bodies = Bodies(settings.body_bytes_max, settings.read_s)
        self._timeout_s = settings.timeout_s
        self.streams = ChangeStreams(backend, settings.streams_max, settings.share_max)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        request_id = saying.request_id_of(headers)
        told: list[Header] = [(saying.REQUEST_ID, request_id)]
        accepted = headers.get(ACCEPT_ENCODING)
        try:
            client = scope.get("client")
            asked = Asked(
                scope["method"],
                scope["raw_path"],
                scope["query_string"],
                headers,
                request_id,
                client[0] if client else "",
            )
            await self._serve(asked, told, receive, send)
        except Refusal as refused:
            told.extend(refused.headers)
            await send_problem(send, refused.error, told, status=refused.status, accepted=accepted)
        except RecollectError as error:
            status = status_of(error, conditional=saying.is_conditional(headers))
            await send_problem(send, error, told, status=status, accepted=accepted)
        except CallerGone:
            return
        except Exception:
            log.exception("A request failed.", action="request", trace=request_id.decode())
            defect = InternalError("A defect of the gateway; its log has the details.")
            await send_problem(send, defect, told, accepted=accepted)

    async def _serve(self, asked: Asked, told: list[Header], receive: Receive, send: Send) -> None:
        speaker = saying.speaker_of(asked.headers, self._doorman, asked.request_id)
        caller = speaker.bearer or asked.caller
        found = self._router.find(asked.raw_path)
        if found is None:
            raise UnknownOperation(
                "There is nothing at this path; /openapi.json lists what there is."
            )
        route = found.targets.get("GET" if asked.method == "HEAD" else asked.method)
        if route is None:
            await _wrong_method(asked, found.targets, told, send)
            return
        # A HEAD has no body, and a stream would never come to its end.
        may_stream = route.streams and asked.method == "GET"
        if may_stream and streaming.is_wanted(asked.headers.get(b"accept")):
            self._admission.count(caller)
            wanted = self._bind_stream(route, asked, found.values)
            reader = await caller_of(self._backend, speaker, asked.caller)
            await self.streams.serve(reader, wanted, speaker, receive, send, told)
            return
        self._admission.check_room()
        self._admission.count(caller)
        # Only what is there as a whole takes a place: who is slow to send it keeps nobody out.
        body = b""
        if route.binding.takes_body:
            body = await self._bodies.read_json(asked.headers, receive)
        elif has_body(asked.headers):
            error = InvalidArgument(f"{asked.method} takes no body: send its fields in the query.")
            raise Refusal(error, 400, CLOSE)
        self._admission.begin()
        try:
            operation = self._bind(route, asked, found.values, body)
            answer: Any = await self._backend.ask(operation, speaker)
        finally:
            self._admission.leave()
        told += route.description.headers(answer, asked.raw_path, asked.query)
        await send_answer(
            send, 200, encode(answer), told, accepted=asked.headers.get(ACCEPT_ENCODING)
        )

    def _bind(
        self, route: Route, asked: Asked, values: tuple[str, ...], body: bytes
    ) -> Operation[Any]:
        operation = route.binding.bind(values, asked.query, body)
        self._set_options(operation, route, asked.headers)
        return operation

    def _set_options(
        self, operation: Operation[Any], route: Route, headers: Mapping[bytes, bytes]
    ) -> None:
        """Take over what the headers say. The operation was made just now and is nobody else's, so
        it is changed in place."""
        timeout_s = saying.timeout_s_of(headers, self._timeout_s)
        if timeout_s is None and route.binding.has_wait:
            # Waiting for something to happen is asked for, and comes on top.
            timeout_s = self._timeout_s + getattr(operation, "wait_s", 0.0)
        if timeout_s is not None:
            force_setattr(operation, "timeout", timeout_s)
        if route.writes and (key := saying.idempotency_key_of(headers)) is not None:
            force_setattr(operation, "idempotency_key", key)
        version = saying.version_of(headers)
        if version is not None:
            if not route.binding.has_version:
                raise InvalidArgument(
                    f"{operation.spec.name} has no version to compare: send it without If-Match "
                    "and If-None-Match."
                )
            force_setattr(operation, "expected_version", version)

    def _bind_stream(self, route: Route, asked: Asked, values: tuple[str, ...]) -> ReadChanges:
        wanted = route.binding.bind(values, asked.query, b"")
        assert isinstance(wanted, ReadChanges)
        seen = saying.last_event_of(asked.headers)
        return wanted if seen is None else msgspec.structs.replace(wanted, after_seq=seen)


async def _wrong_method(
    asked: Asked, targets: Mapping[str, Route], told: list[Header], send: Send
) -> None:
    """What may be asked there instead; who only wanted to know that is answered."""
    methods = sorted({*targets, "OPTIONS", *(("HEAD",) if "GET" in targets else ())})
    told.append((b"allow", ", ".join(methods).encode()))
    if asked.method == "OPTIONS":
        await send({"type": "http.response.start", "status": 204, "headers": told})
        await send({"type": "http.response.body", "body": b""})
        return
    error = UnknownOperation(f"{asked.method} means nothing here; {', '.join(methods)} do.")
    raise Refusal(error, 405)
