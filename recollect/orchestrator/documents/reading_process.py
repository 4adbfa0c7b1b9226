"""A program that reads documents: one after the other from standard input, their chunks on standard
output.

A broken or hostile document can take any time and memory, and the libraries that read it hold the
interpreter meanwhile. Here that harms nobody: the process is ended when it takes too long, and its
memory is bounded.
"""

from __future__ import annotations

import contextlib
import math
import signal
import struct
import sys
from typing import IO

import msgspec

from recollect.config.sharing import DocumentsSettings
from recollect.orchestrator.documents.reading import Cut, cut
from recollect.protocol.errors import RecollectError, UnreadableDocument

MEMORY_BYTES_MAX = 2 << 30
LENGTH = struct.Struct(">I")


class Task(msgspec.Struct, frozen=True):
    """A document to read: the bytes of a file, or a text."""

    data: bytes | None
    text: str | None
    name: str
    document_type: str
    settings: DocumentsSettings


class Answer(msgspec.Struct, frozen=True):
    """What became of it: its chunks, or an error as it travels."""

    cut: Cut | None = None
    error: dict[str, object] | None = None


def send(stream: IO[bytes], message: Task | Answer) -> None:
    """Write one message."""
    body = msgspec.msgpack.encode(message)
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """The next message; None at the end of all."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = stream.read(length)
    return body if len(body) == length else None


def main() -> None:
    """Read documents until there are no more to come."""
    # Ctrl-C is meant for who started us; that one then lets go of us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while (body := receive(sys.stdin.buffer)) is not None:
        task = msgspec.msgpack.decode(body, type=Task)
        _bound(task.settings.read_s_max)
        send(sys.stdout.buffer, answer(task))


def answer(task: Task) -> Answer:
    """The chunks of one document."""
    try:
        content = task.text if task.data is None else task.data
        assert content is not None
        return Answer(cut(content, task.name, task.document_type, task.settings))
    except RecollectError as error:
        return Answer(error={**error.body()})
    except (MemoryError, RecursionError) as error:
        refused = UnreadableDocument(
            f"It takes too much to read it ({type(error).__name__}): divide it, or save it anew."
        )
        return Answer(error={**refused.body()})


def _bound(seconds: float) -> None:
    """Bound the memory, and the time as well: who waits for us may be gone."""
    try:
        import resource
    except ImportError:
        return  # not on this system
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    for limit, most in ((resource.RLIMIT_CPU, cpu_s), (resource.RLIMIT_AS, MEMORY_BYTES_MAX)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))


if __name__ == "__main__":
    main()
