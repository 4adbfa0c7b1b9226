"""What one connection may bring and leave lying, tried on a server of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from recollect.web import bounded_http
from recollect.web.bounded_http import HEAD_BYTES_MAX, BoundedHttp
from recollect.web.listening import Server, listen

HOST = "127.0.0.1"
WITHIN_S = 10.0
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
# More than the buffers of the system take for one connection.
ANSWER_BYTES = 64 * 1024 * 1024

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo:
    """Answers with the headers that it was given, or with much more than anybody reads at once; at
    once, or when all of the body is here."""

    def __init__(self) -> None:
        self.received_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/at-once":
            while (message := await receive()).get("more_body"):
                self.received_bytes += len(message["body"])
            self.received_bytes += len(message.get("body", b""))
        much = scope["path"] == "/much"
        body = bytes(ANSWER_BYTES) if much else repr(scope["headers"]).encode()
        length = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": body})


def serving(use: Callable[[Line, Server, Echo], Awaitable[None]], idle_s: int = 5) -> None:
    """Serve while a connection is used."""

    async def main() -> None:
        echo = Echo()
        config = uvicorn.Config(
            echo,
            http=BoundedHttp,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=idle_s,
        )
        server = Server(config)
        with listen(HOST, 0, section="test") as listening:
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            line = await asyncio.open_connection(HOST, listening.getsockname()[1])
            try:
                async with asyncio.timeout(WITHIN_S):
                    await use(line, server, echo)
            finally:
                line[1].close()
                server.should_exit = server.force_exit = True
                await serving

    asyncio.run(main())


@contextmanager
def impatient(monkeypatch: pytest.MonkeyPatch, stuck_s: float) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(bounded_http, "STUCK_S_MAX", stuck_s)
        yield


def test_fields_behind_a_body_are_no_headers() -> None:
    async def use(line: Line, server: Server, echo: Echo) -> None:
        reader, writer = line
        writer.write(CHUNKED + b"2\r\nhi\r\n0\r\nAuthorization: Bearer other\r\n\r\n")
        answer = await reader.readuntil(b"]")
        assert answer.startswith(b"HTTP/1.1 200") and b"host" in answer
        assert b"uthorization" not in answer
        assert echo.received_bytes == 2

    serving(use)


@pytest.mark.parametrize(
    "endless", [b"0\r\nX: ", b"2;", b"0\r\n"], ids=["field", "frame", "fields"]
)
def test_what_goes_on_and_on_behind_a_head_is_cut_off(endless: bytes) -> None:
    async def use(line: Line, server: Server, echo: Echo) -> None:
        _, writer = line
        part = b"a: b\r\n" * 2000 if endless == b"0\r\n" else b"x" * 12_000
        writer.write(CHUNKED + endless)
        with pytest.raises(ConnectionError):
            for _ in range(100 * HEAD_BYTES_MAX // len(part)):
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            raise AssertionError("it takes all of it")

    serving(use)


def test_a_body_may_be_longer_than_a_head_in_chunks_of_any_size() -> None:
    async def use(line: Line, server: Server, echo: Echo) -> None:
        reader, writer = line
        writer.write(CHUNKED)
        for _ in range(40):
            writer.write(b"1\r\nx\r\n" * 1000 + b"2710\r\n" + b"y" * 10_000 + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        assert (await reader.readuntil(b"]")).startswith(b"HTTP/1.1 200")
        assert echo.received_bytes == 40 * 11_000

    serving(use)


def test_many_requests_at_once_are_no_long_head() -> None:
    async def use(line: Line, server: Server, echo: Echo) -> None:
        reader, writer = line
        one = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 1000 + b"\r\n\r\n"
        writer.write(one * 100 + b"GET / HTTP/1.1\r\n")
        for _ in range(100):
            assert (await reader.readuntil(b"]")).startswith(b"HTTP/1.1 200")

    serving(use)


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        (CHUNKED.replace(b" / ", b" /at-once "), b"1"),
        (b"POST /at-once HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", b"x"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n"),
    ],
    ids=["rest of chunks", "rest of a body", "empty line"],
)
def test_what_comes_behind_an_answer_and_is_no_request_holds_no_connection(
    asked: bytes, more: bytes
) -> None:
    async def use(line: Line, server: Server, echo: Echo) -> None:
        reader, writer = line
        writer.write(asked)
        assert (await reader.readuntil(b"]")).startswith(b"HTTP/1.1 200")
        writer.write(more)
        assert await reader.read() == b""
        await until(lambda: not server.server_state.connections)

    serving(use, idle_s=1)


def test_who_is_answered_before_all_of_the_body_is_sent_may_ask_again() -> None:
    async def use(line: Line, server: Server, echo: Echo) -> None:
        reader, writer = line
        for _ in range(2):
            writer.write(CHUNKED.replace(b" / ", b" /at-once ") + b"2\r\nhi\r\n")
            assert (await reader.readuntil(b"]")).startswith(b"HTTP/1.1 200")
            writer.write(b"0\r\n\r\n")

    serving(use)


def test_an_answer_that_is_not_taken_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(line: Line, server: Server, echo: Echo) -> None:
        _, writer = line
        reader_transport: Any = writer.transport
        reader_transport.pause_reading()
        writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await until(lambda: bool(server.server_state.connections))
        await until(lambda: not server.server_state.connections)

    with impatient(monkeypatch, 0.2):
        serving(use)


def test_an_answer_that_is_taken_slowly_is_sent_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(line: Line, server: Server, echo: Echo) -> None:
        reader, writer = line
        writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        taken_bytes, parts = 0, 0
        while part := await reader.read(1024 * 1024):
            taken_bytes += len(part)
            parts += 1
            if parts % 50 == 0:
                await asyncio.sleep(0.005)
        assert taken_bytes > ANSWER_BYTES

    with impatient(monkeypatch, 0.2):
        serving(use)


async def until(happened: Callable[[], bool]) -> None:
    while not happened():
        await asyncio.sleep(0.01)
