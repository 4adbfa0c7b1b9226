"""The processes that read documents, and what waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import structlog

from recollect.config.sharing import DocumentsSettings
from recollect.orchestrator.documents import reading_process
from recollect.orchestrator.documents.chunking import CUT_BY
from recollect.orchestrator.documents.reading import Cut
from recollect.orchestrator.documents.reading_process import Answer, Task, receive, send
from recollect.protocol.errors import (
    RecollectError,
    ShuttingDown,
    UnreadableDocument,
    from_body,
)

log = structlog.get_logger()

READERS_MAX = 2
"""Processes at work at once; they are started when they are first needed."""
ENDED_WITHIN_S = 5.0


class Readers:
    """Reads and cuts documents, off the event loop and out of this process."""

    def __init__(self, settings: DocumentsSettings) -> None:
        self._settings = settings
        # Each thread of the pool talks to a process of its own.
        self._threads = ThreadPoolExecutor(READERS_MAX, thread_name_prefix="documents")
        self._own = threading.local()
        self._lock = threading.Lock()
        # All that run, so that they can be ended. Changed under the lock.
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    @property
    def cut_by(self) -> str:
        """The rules by which they cut: under the same, a text gives the same chunks."""
        return f"{CUT_BY}/{self._settings.chunk_chars}"

    async def cut(self, content: bytes | str, name: str, document_type: str) -> Cut:
        """The chunks of a document, or why it cannot be read."""
        data, text = (content, None) if isinstance(content, bytes) else (None, content)
        task = Task(data, text, name, document_type, self._settings)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._ask, task)

    def close(self) -> None:
        """End the processes; what they were reading is given up."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in running:
            self._end(process)

    def _ask(self, task: Task) -> Cut:
        process: subprocess.Popen[bytes] | None = getattr(self._own, "process", None)
        if process is None or process.poll() is not None:
            process = self._own.process = self._start()
        assert process.stdin is not None and process.stdout is not None
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self._settings.read_s_max, give_up)
        timer.start()
        try:
            send(process.stdin, task)
            body = receive(process.stdout)
        except OSError:
            body = None
        finally:
            timer.cancel()
        if body is None:
            self._end(process)
            raise self._failure(process, late=late.is_set())
        answer = msgspec.msgpack.decode(body, type=Answer)
        if answer.cut is None:
            raise from_body(answer.error)  # type: ignore[arg-type]
        return answer.cut

    def _start(self) -> subprocess.Popen[bytes]:
        # It imports what we import, and nothing from the folder that we happen to be in.
        path = os.pathsep.join(entry for entry in sys.path if entry)
        with self._lock:
            if self._closed:
                raise ShuttingDown("The orchestrator is shutting down; try again shortly.")
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", reading_process.__name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
            self._running.add(process)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self._own.process = None
        process.kill()
        process.wait(ENDED_WITHIN_S)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                # What it was still to be told is of no use now.
                with contextlib.suppress(OSError):
                    stream.close()
        with self._lock:
            self._running.discard(process)

    def _failure(self, process: subprocess.Popen[bytes], *, late: bool) -> RecollectError:
        if self._closed:
            return ShuttingDown("The orchestrator is shutting down; try again shortly.")
        if late:
            return UnreadableDocument(
                f"It could not be read within {self._settings.read_s_max:g} s, the limit "
                "documents.read_s_max: divide it, save it anew, or raise the limit.",
                limit="documents.read_s_max",
            )
        log.warning(
            "A process that read a document ended.", action="read", exit_code=process.returncode
        )
        return UnreadableDocument(
            f"Reading it brought its reader down (exit code {process.returncode}): save it anew."
        )
