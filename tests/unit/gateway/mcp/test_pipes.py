"""Messages over pipes: however the bytes are cut, and whatever becomes of the other end."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from recollect.event_loop import quickest_loop
from recollect.gateway.mcp import pipes
from recollect.gateway.mcp.pipes import Lines

WITHIN_S = 30.0
LOOPS = {"asyncio": None, "quickest": quickest_loop()}


class Ends:
    """The ends of the pipes that a client has."""

    def __init__(self) -> None:
        self.their_in, self.to_server = os.pipe()
        from_server, self.their_out = os.pipe()
        self.answers = os.fdopen(from_server, "rb")
        self._open = {self.their_in, self.to_server, self.their_out}

    def close(self, fd: int) -> None:
        self._open.remove(fd)
        os.close(fd)

    def close_all(self) -> None:
        self.answers.close()
        for fd in list(self._open):
            self.close(fd)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.close_all()


Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    def on_loop(work: Coroutine[Any, Any, None]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(WITHIN_S):
                await work

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(bounded())

    return on_loop


def request(number: int, text: str = "") -> bytes:
    asked = {"jsonrpc": "2.0", "id": number, "method": "ping", "params": {"text": text}}
    return json.dumps(asked, ensure_ascii=False).encode() + b"\n"


def answer(number: int, text: str = "") -> SessionMessage:
    return SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=number, result={"text": text}))


async def text_of(lines: Lines) -> str:
    item = await lines.receive()
    assert isinstance(item, SessionMessage), item
    assert isinstance(item.message, types.JSONRPCRequest)
    return str((item.message.params or {})["text"])


def test_a_message_is_whole_however_it_was_cut(ends: Ends, run: Run) -> None:
    async def work() -> None:
        async with pipes.served(ends.their_in, ends.their_out) as (lines, _answers):
            # Two bytes a letter and four a picture: some cut goes through each.
            sent = request(1, "Grüße 🐙") + request(2, "zwei")
            reading = asyncio.create_task(text_of(lines))
            for byte in sent:
                os.write(ends.to_server, bytes([byte]))
                await asyncio.sleep(0)
            assert await reading == "Grüße 🐙"
            assert await text_of(lines) == "zwei"
            # Several at once, the last one without an end of its line.
            os.write(ends.to_server, request(3, "drei") + request(4, "vier").rstrip())
            ends.close(ends.to_server)
            assert [await text_of(lines), await text_of(lines)] == ["drei", "vier"]
            with pytest.raises(anyio.EndOfStream):
                await lines.receive()

    run(work())


def test_what_is_no_message_spoils_none_behind_it(ends: Ends, run: Run) -> None:
    async def work() -> None:
        async with pipes.served(ends.their_in, ends.their_out) as (lines, _answers):
            os.write(ends.to_server, b"not JSON\n\n" + b'{"jsonrpc":"1.0"}\n' + b"\xff\xfe\n")
            for _ in range(4):
                assert isinstance(await lines.receive(), Exception)
            # A byte that is no UTF-8 costs its letter.
            os.write(ends.to_server, request(1, "a?b").replace(b"?", b"\xff"))
            assert await text_of(lines) == "a�b"

    run(work())


def test_a_line_that_never_ends_is_given_up(
    ends: Ends, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipes, "LINE_BYTES_MAX", 1000)

    async def work() -> None:
        async with pipes.served(ends.their_in, ends.their_out) as (lines, _answers):
            os.write(ends.to_server, b"x" * 5000 + b"\n")
            while isinstance(found := await lines.receive(), Exception):
                os.write(ends.to_server, request(1, "still there"))
            assert isinstance(found.message, types.JSONRPCRequest)

    run(work())


def test_large_messages_go_both_ways(ends: Ends, run: Run) -> None:
    large = "größer 🐙 " * 100_000

    async def work() -> None:
        async with pipes.served(ends.their_in, ends.their_out) as (lines, answers):
            writing = asyncio.create_task(asyncio.to_thread(_write_all, ends, request(1, large)))
            assert await text_of(lines) == large
            await writing
            reading = asyncio.create_task(asyncio.to_thread(ends.answers.readline))
            await answers.send(answer(1, large))
            assert json.loads(await reading)["result"]["text"] == large

    run(work())


def test_who_does_not_read_is_waited_for(ends: Ends, run: Run) -> None:
    async def work() -> None:
        async with pipes.served(ends.their_in, ends.their_out) as (_lines, answers):
            # More than a pipe and all buffers before it take.
            sending = [asyncio.create_task(answers.send(answer(n, "x" * 400_000))) for n in (1, 2)]
            for _ in range(100):
                await asyncio.sleep(0)
            assert not any(task.done() for task in sending)
            read = [
                json.loads(await asyncio.to_thread(ends.answers.readline))["id"] for _ in sending
            ]
            assert read == [1, 2]
            await asyncio.gather(*sending)

    run(work())


def test_a_client_that_is_gone_is_told_nothing_more(ends: Ends, run: Run) -> None:
    async def work() -> None:
        async with pipes.served(ends.their_in, ends.their_out) as (_lines, answers):
            ends.answers.close()
            with pytest.raises(anyio.BrokenResourceError):
                for number in range(1000):
                    await answers.send(answer(number))
                    await asyncio.sleep(0)
            await answers.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                await answers.send(answer(1))

    run(work())


def test_nothing_else_gets_onto_the_wire_and_it_is_given_back(ends: Ends, run: Run) -> None:
    async def work() -> None:
        async with pipes.served(ends.their_in, ends.their_out) as (_lines, answers):
            # What stands at the descriptor meanwhile: an empty file, and stderr.
            assert os.read(ends.their_in, 10) == b""
            assert os.fstat(ends.their_out).st_ino == os.fstat(pipes.STDERR).st_ino
            await answers.send(answer(1, "the last"))
        assert json.loads(ends.answers.readline())["result"]["text"] == "the last"
        assert os.get_blocking(ends.their_in) and os.get_blocking(ends.their_out)
        os.write(ends.their_out, b"again\n")
        assert ends.answers.readline() == b"again\n"

    run(work())


def _write_all(ends: Ends, data: bytes) -> None:
    while data:
        data = data[os.write(ends.to_server, data) :]
