"""HTTP whose heads and trailers are bounded in size and in time, which uvicorn's quick parser
leaves open; whose answers leave in one piece, and are not kept for who does not take them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX = 64 * 1024
HEAD_S_MAX = 5.0
# Who takes nothing of an answer for so long gets the rest of it no more.
STUCK_S_MAX = 30.0
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class OneWrite:
    """A transport that sends all that is written within one turn of the event loop at once.

    uvicorn writes head and body apart, and each would be a call of the system of its own.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        if self._parts:
            data, self._parts = b"".join(self._parts), []
            self._transport.write(data)

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class BoundedHttp(HttpToolsProtocol):
    """Ends a connection whose request line and headers are too long, or too long in coming; one
    that is answered and brings no other request; and one whose answer is not taken."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._in_head = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._goes_on = False
        # Runs while there is no request in work; it is None then only where a head is coming.
        self._idle_timer: asyncio.TimerHandle | None = None
        self._stuck_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if not type(transport).__module__.startswith("uvloop"):
            # uvloop itself keeps what is written until the end of a turn.
            transport = cast(asyncio.Transport, OneWrite(transport, self.loop))
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_S_MAX, self._give_up, TOO_SLOW)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_idling()
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._goes_on = False
        super().data_received(data)
        if self._goes_on:
            self._head_bytes = 0
        else:
            # Behind a head, what holds nothing of the body is the frame of its chunks or the fields
            # behind them: the parser collects those too, however long they get.
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._give_up(TOO_LARGE)
                return
        if self._in_head and self._head_timer is None:
            # Most heads come in one piece, and cost no timer.
            self._head_timer = self.loop.call_later(HEAD_S_MAX, self._give_up, TOO_SLOW)

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        self._stop_idling()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._goes_on = True
        self._stop_timer()
        super().on_headers_complete()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Fields behind the body come through here too. They say nothing of who asks for what:
        # whatever looked at the head on the way here has not seen them.
        if self._in_head:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._goes_on = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._idle_timer is not None:
            # It was answered before it was all here. Now the connection is free for another.
            self._idle()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # uvicorn waits until anything comes: with one byte, of the rest of a body say, a connection
        # would be held for ever. Here only a new request ends the waiting.
        waits = self.timeout_keep_alive_task is not None
        self._unset_keepalive_if_required()
        if waits and not self._in_head:
            self._idle()

    def _idle(self) -> None:
        self._stop_idling()
        self._idle_timer = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _stop_idling(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        self._stop_waiting()
        super().resume_writing()

    def _wait_for_reader(self) -> None:
        left_bytes = self.transport.get_write_buffer_size()
        self._stop_waiting()
        self._stuck_timer = self.loop.call_later(STUCK_S_MAX, self._look_at_reader, left_bytes)

    def _look_at_reader(self, before_bytes: int) -> None:
        """Closing alone would wait for the reader for ever, with all that it has not taken."""
        if self.transport.get_write_buffer_size() >= before_bytes:
            self.transport.abort()
        else:
            self._wait_for_reader()

    def _stop_waiting(self) -> None:
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
            self._stuck_timer = None

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self, answer: bytes) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()
