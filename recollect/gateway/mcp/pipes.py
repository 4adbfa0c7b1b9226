"""Stdin and stdout as the streams of an MCP connection, read and written by the event loop itself.

The SDK's own transport has a thread for each line, and each of its trips there and back takes the
interpreter from the loop. Pipes and sockets, which is what clients start a server with, need none.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Final, Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from recollect.client.encoding import PAYLOAD_BYTES_MAX

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
LINE_BYTES_MAX: Final = PAYLOAD_BYTES_MAX
# So long the last answers may take to leave; nobody may be there to read them.
FLUSHED_WITHIN_S: Final = 5.0


def can_be_served() -> bool:
    """Whether stdin and stdout are such that an event loop can wait for them: no files."""
    return sys.platform != "win32" and all(_is_pipe(fd) for fd in (STDIN, STDOUT))


class Lines:
    """What a client sends: a message a line. Lives on the event loop."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def receive(self) -> SessionMessage | Exception:
        """The next message, or what is wrong with its line; raises EndOfStream at the end."""
        try:
            line = await self._reader.readline()
        except ValueError as error:
            # Longer than any message: what was read of it is gone, the rest is no message either.
            return error
        except OSError:
            line = b""
        if not line:
            raise anyio.EndOfStream
        try:
            # A byte that is no UTF-8 spoils its character, not the message around it.
            text = line.decode("utf-8", "replace")
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
        except Exception as error:
            return error

    async def aclose(self) -> None:
        """Nothing is left open: whoever opened the pipe closes it."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


class Outlet(asyncio.BaseProtocol):
    """How it stands with the pipe to a client. Lives on the event loop."""

    def __init__(self) -> None:
        self.has_room = asyncio.Event()
        self.has_room.set()
        self.closed = asyncio.Event()

    def pause_writing(self) -> None:
        self.has_room.clear()

    def resume_writing(self) -> None:
        self.has_room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        self.has_room.set()


class Answers:
    """What a client is sent: a message a line, each whole. Lives on the event loop."""

    def __init__(self, transport: asyncio.WriteTransport, outlet: Outlet) -> None:
        self._transport = transport
        self._outlet = outlet
        self._closed = False

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message; waits while the client does not read. Raises BrokenResourceError."""
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        await self.send_line(text.encode() + b"\n")

    async def send_line(self, line: bytes) -> None:
        """Send a message that is written already."""
        if self._closed:
            raise anyio.ClosedResourceError
        outlet = self._outlet
        if not outlet.closed.is_set():
            self._transport.write(line)
            if not outlet.has_room.is_set():
                await outlet.has_room.wait()
        if outlet.closed.is_set():
            raise anyio.BrokenResourceError

    async def aclose(self) -> None:
        """Send no more."""
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


@asynccontextmanager
async def served(
    stdin_fd: int = STDIN, stdout_fd: int = STDOUT
) -> AsyncIterator[tuple[Lines, Answers]]:
    """The streams over stdin and stdout. Meanwhile whatever else reads there finds the end, and
    what is printed by mistake goes to stderr, where it spoils no message."""
    loop = asyncio.get_running_loop()
    with (
        _taken(stdin_fd, os.open(os.devnull, os.O_RDONLY)) as stdin,
        _taken(stdout_fd, os.dup(STDERR)) as stdout,
    ):
        reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(stdin, "rb", 0)
        )
        sending, outlet = await loop.connect_write_pipe(Outlet, os.fdopen(stdout, "wb", 0))
        try:
            yield Lines(reader), Answers(sending, outlet)
        finally:
            reading.close()
            sending.close()
            try:
                async with asyncio.timeout(FLUSHED_WITHIN_S):
                    await outlet.closed.wait()
            except TimeoutError:
                sending.abort()


@contextmanager
def _taken(fd: int, instead: int) -> Iterator[int]:
    """Another descriptor of what stands at a standard one, which is `instead` until the end."""
    kept = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)
    ours = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)
    # The loop changes it for all who share the pipe, also for those after us.
    blocks = os.get_blocking(fd)
    os.dup2(instead, fd)
    os.close(instead)
    try:
        yield ours
    finally:
        os.set_blocking(kept, blocks)
        os.dup2(kept, fd)
        os.close(kept)


def _is_pipe(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
