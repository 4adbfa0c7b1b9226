"""MCP over streamable HTTP: an ASGI endpoint that the gateway serves at `/mcp`."""

from __future__ import annotations

import hashlib
import time
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from recollect.config.gateway import GatewaySettings
from recollect.gateway.admission import Admission
from recollect.gateway.asking import Backend
from recollect.gateway.callers import Doorman
from recollect.gateway.mcp.calling import Calling
from recollect.gateway.mcp.plain_calls import PlainCalls
from recollect.gateway.mcp.server import make_server
from recollect.gateway.mcp.sessions import GONE, SESSION_ID, Heard, Sessions
from recollect.gateway.mcp.speaking import SPEAKER_IN_SCOPE
from recollect.gateway.mcp.tools import offered
from recollect.gateway.rest import saying
from recollect.gateway.rest.problems import Refusal, headers_of, status_of
from recollect.gateway.rest.reading import Bodies, CallerGone
from recollect.gateway.shares import Shares, caller_of
from recollect.protocol.errors import RecollectError, UnknownOperation

# A stream on which nothing ever comes would take a connection of each client all the time, and the
# end of the gateway would wait for all of them.
NOTHING_TOLD: Final = "Nothing is told here but answers: there is no stream to GET, only POST."


class Endpoint:
    """Answers MCP for whoever holds a key, or for this machine where none is needed.

    What a client may do is checked at each request by its key, not by its session; and a session
    answers only to the key that opened it.
    """

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
        self._bodies = Bodies(settings.body_bytes_max, settings.read_s)
        places = Shares(
            settings.mcp_sessions_max,
            settings.share_max,
            what="sessions of MCP",
            limit="gateway.mcp_sessions_max",
        )
        self._sessions = Sessions(places, settings.mcp_idle_s, time.monotonic)
        tools = offered()
        calling = Calling(backend.ask, settings.mcp_tokens_max)
        server = make_server(backend.ask, calling, tools)
        self._plain = PlainCalls(server, calling, tools)
        self._manager = StreamableHTTPSessionManager(
            app=server,
            # Nothing is told before the answer, so one body is enough for it.
            json_response=True,
            # The guard of the gateway has looked at names and origins, and knows more of them than
            # can be listed.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            session_idle_timeout=settings.mcp_idle_s,
            max_request_body_size=settings.body_bytes_max,
            max_sessions=settings.mcp_sessions_max,
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """Answers while this is entered; once."""
        return self._manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        sent = dict(scope["headers"])
        try:
            speaker = saying.speaker_of(sent, self._doorman, saying.request_id_of(sent))
            if scope["method"] == "GET":
                raise Refusal(UnknownOperation(NOTHING_TOLD), 405, (b"allow", b"POST, DELETE"))
            self._admission.check_room()
            caller = None
            if opens_session(Headers(scope=scope)):
                # A session takes room: nobody gets one for a key that is none.
                client = scope.get("client")
                with self._admission.one_more():
                    caller = await caller_of(self._backend, speaker, client[0] if client else "")
            if scope["method"] == "POST":
                # Nothing is begun, and no session opened, before all of it is there.
                body = await self._bodies.read(sent, receive)
                if (asked := self._plain.read(scope["headers"], body)) is not None:
                    if self._plain.knows(asked):
                        with self._admission.one_more():
                            answer = await self._plain.answer(asked, speaker)
                        await send_plain(send, answer)
                        return
                    send = self._plain.learning(asked, send)
                receive = again(body, receive)
            # Only what is there as a whole takes a place: who is slow to send it keeps nobody out.
            self._admission.begin()
        except RecollectError as error:
            await refused(error)(scope, receive, send)
            return
        except Refusal as refusal:
            response = refused(refusal.error, refusal.status)
            response.raw_headers.extend(refusal.headers)
            await response(scope, receive, send)
            return
        except CallerGone:
            return
        heard: dict[str, Any] = {**scope, SPEAKER_IN_SCOPE: speaker}
        if speaker.bearer is not None:
            heard["user"] = holder_of(speaker.bearer)
        try:
            await self._in_session(caller, sent.get(SESSION_ID), heard, receive, Heard(send))
        finally:
            self._admission.leave()

    async def _in_session(
        self,
        caller: str | None,
        session_id: bytes | None,
        scope: dict[str, Any],
        receive: Receive,
        heard: Heard,
    ) -> None:
        """Answer within a session, or in one that is opened for a caller."""
        if caller is not None:
            try:
                self._sessions.begin(caller)
            except RecollectError as error:
                await refused(error)(scope, receive, heard.send)
                return
        try:
            await self._manager.handle_request(scope, receive, heard.send)
        finally:
            if caller is not None:
                opened = heard.session_id if heard.status < 400 else None
                self._sessions.settle(caller, opened)
            elif session_id is not None and (
                heard.status == GONE or (scope["method"] == "DELETE" and heard.status < 400)
            ):
                self._sessions.end(session_id)
            elif session_id is not None:
                self._sessions.use(session_id)


def make_endpoint(
    backend: Backend, doorman: Doorman, admission: Admission, settings: GatewaySettings
) -> Endpoint:
    """The endpoint; `running()` must be entered around the time that it is asked."""
    return Endpoint(backend, doorman, admission, settings)


def opens_session(headers: Headers) -> bool:
    """Whether a request begins a session: it has none yet, and its version knows sessions."""
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    return MCP_SESSION_ID_HEADER not in headers and (
        version is None or version in HANDSHAKE_PROTOCOL_VERSIONS
    )


def holder_of(bearer: str) -> AuthenticatedUser:
    """Somebody by their key, as the transport tells the holders of sessions apart."""
    digest = hashlib.sha256(bearer.encode()).hexdigest()
    return AuthenticatedUser(AccessToken(token=digest, client_id=digest, scopes=[]))


async def send_plain(send: Send, answer: bytes) -> None:
    """Send an answer with the headers that the transport gives its own."""
    headers = [
        (b"content-length", str(len(answer)).encode()),
        (b"content-type", b"application/json"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def again(body: bytes, receive: Receive) -> Receive:
    """What is received once more by whoever reads a body that was read already."""
    whole: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def receive_again() -> Message:
        nonlocal whole
        if whole is None:
            return await receive()
        message, whole = whole, None
        return message

    return receive_again


def refused(error: RecollectError, status: int | None = None) -> Response:
    """An error that came before any MCP, as HTTP shows it."""
    status = status_of(error) if status is None else status
    response = Response(msgspec.json.encode(error.reply()), status, media_type="application/json")
    response.raw_headers.extend(headers_of(error, status))
    return response
