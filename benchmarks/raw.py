"""The raw limits: an echo by pyzmq and msgspec, and SQLite with nothing in the way."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import zmq

from recollect.orchestrator.memories import rows
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.search.lexical import LEARN
from recollect.orchestrator.serving import idempotency
from recollect.orchestrator.storage import journal, migrations
from recollect.orchestrator.storage.inserting import insert_sql
from recollect.orchestrator.storage.interface import Change
from recollect.orchestrator.storage.sqlite.schema import apply_migrations
from recollect.orchestrator.storage.sqlite.session import SqliteSession
from recollect.orchestrator.vectors import memory_vectors

WRITTEN_DIMENSIONS = 256


def _echo(
    bind: multiprocessing.connection.Connection, answer: dict[str, Any], writes_to: Path | None
) -> None:
    raw = None if writes_to is None else RawStore(writes_to, WRITTEN_DIMENSIONS)
    socket = zmq.Context().socket(zmq.ROUTER)
    socket.bind("tcp://127.0.0.1:*")
    bind.send(socket.getsockopt_string(zmq.LAST_ENDPOINT))
    decode = msgspec.msgpack.Decoder().decode
    encode = msgspec.msgpack.Encoder().encode
    while True:
        peer, frame = socket.recv_multipart()
        request = decode(frame)
        body = decode(request["body"])
        if raw is not None:
            raw.commit([body["content"]])
        reply = {"v": 1, "id": request["id"], "now_ms": 0, "body": encode(answer)}
        socket.send_multipart([peer, encode(reply)])


@contextmanager
def echo_server(answer: dict[str, Any], writes_to: Path | None = None) -> Iterator[str]:
    """A process that decodes each request and encodes the same answer to it; with a folder to write
    to, it first commits what an add of the request's content would write, by hand."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=_echo, args=(theirs, answer, writes_to), daemon=True
    )
    process.start()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()


class EchoClient:
    """Encodes a request, sends it, waits for its answer and decodes that."""

    def __init__(self, endpoint: str, request: dict[str, Any]) -> None:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.connect(endpoint)
        self._request = request
        self._id = 0
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder().decode

    def call(self) -> None:
        self._id += 1
        request = {"v": 1, "id": self._id, "op": "echo", "body": self._encode(self._request)}
        self._socket.send(self._encode(request))
        self._decode(self._decode(self._socket.recv())["body"])


class RawStore:
    """The same tables, written by hand in the fastest way the schema allows."""

    def __init__(self, folder: Path, dimensions: int) -> None:
        folder.mkdir(parents=True)
        self._session = SqliteSession(folder / "raw.db", page_cache_mb=64, readonly=False)
        apply_migrations(self._session, migrations.FOLDER / "sqlite")
        self._vector = os.urandom(4 * dimensions)
        self._seq = 0

    def commit(self, contents: list[str], writes: int = 1) -> None:
        """Write memories with all that belongs to them in one durable transaction.

        Each of so many writes has its answer kept: those of a batch have one together, single ones
        that fall into the same commit have one each.
        """
        session = self._session
        first = self._seq + 1
        self._seq += len(contents)
        nums = range(first, self._seq + 1)
        memories = [raw_row(num, content) for num, content in zip(nums, contents, strict=True)]
        session.begin()
        session.connection.executemany(insert_sql(rows.INSERT, 1), memories)
        session.connection.executemany(
            insert_sql(memory_vectors.INSERT_VECTOR, 1),
            [(num, "raw", self._vector, num, None) for num in nums],
        )
        session.connection.executemany(
            insert_sql(journal.APPEND, 1), [raw_change(num, "add_memory") for num in nums]
        )
        session.connection.executemany(
            insert_sql(idempotency.KEEP, 1),
            [raw_answer("add_memory", first + number) for number in range(writes)],
        )
        session.connection.executemany(insert_sql(LEARN, 1), list(zip(nums, contents, strict=True)))
        session.execute(journal.CLOSE_LEDGER, (self._seq, b"h" * 32))
        session.commit()

    def close(self) -> None:
        self._session.connection.close()


def raw_row(num: int, content: str) -> tuple[Any, ...]:
    """A row like those that the service writes."""
    now_us = time.time_ns() // 1000
    row = MemoryRow(
        num=num,
        id=f"{num:08x}-0000-7000-8000-{num:012x}",
        seq=num,
        namespace="app:default",
        key=None,
        version=1,
        collection="memories",
        memory_type="general",
        tier="short",
        content=content,
        value=None,
        metadata='{"n":1}',
        tags='["bench"]',
        importance=0.5,
        stability_s=1e6,
        access_count=0,
        last_access_us=now_us,
        fades_us=now_us + 10**12,
        parent_id=None,
        session_id=None,
        created_by="local",
        updated_by="local",
        source=None,
        trust=1.0,
        valid_from_us=None,
        valid_to_us=None,
        created_us=now_us,
        updated_us=now_us,
        expires_us=None,
        archived_us=None,
        deleted_us=None,
        operation="add_memory",
    )
    return msgspec.structs.astuple(row)


def raw_change(num: int, operation: str) -> tuple[Any, ...]:
    """A journal row like those that the service writes."""
    change = Change(
        seq=num,
        at_us=time.time_ns() // 1000,
        identity="local",
        agent=None,
        operation=operation,
        subject=f"{num:08x}-0000-7000-8000-{num:012x}",
        namespace="app:default",
        version_before=None,
        version_after=1,
        session_id=None,
        trace=None,
        request_key=f"{num:032x}",
    )
    return (*msgspec.structs.astuple(change), b"h" * 32)


def raw_answer(operation: str, number: int) -> tuple[Any, ...]:
    """A kept answer like those of the service."""
    key = f"{time.time_ns():x}{number}"
    now_us = time.time_ns() // 1000
    return ("local", key, operation, b"x" * 16, b"y" * 120, now_us, "app:default")
