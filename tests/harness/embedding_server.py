"""A real HTTP server that speaks OpenAI's protocol for embeddings, and fails as it is told.

Its vectors are deterministic: the hash of a text decides them, so that a test can compute them too.
Faults are given in advance, one for each request to come, and wear off by being used.
"""

from __future__ import annotations

import base64
import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import numpy as np

from recollect.orchestrator.embedding.interface import Vectors

PATIENCE_S = 20

Reply = dict[str, Any]


def vector_of(text: str, dimensions: int) -> Vectors:
    """What the server gives for a text; its length is not one."""
    seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).normal(size=dimensions).astype(np.float32)


def unit_vectors(texts: Sequence[str], dimensions: int) -> Vectors:
    """What an embedder should make of it."""
    vectors = np.stack([vector_of(text, dimensions) for text in texts])
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


@dataclass(frozen=True)
class Fault:
    """How one request goes wrong."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"error": {"message": "told to fail", "code": "told"}}'
    cut: bool = False
    """Close the connection in the middle of the answer."""
    hang: bool = False
    """Send nothing until the server is closed."""
    drip: bool = False
    """Send the answer byte by byte, and never the last one before the server is closed."""
    change: Callable[[Reply], object] | None = None
    """Change a good answer into another."""


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class EmbeddingServer:
    """Listens on loopback from `with` to its end."""

    path = "/v1/embeddings"

    def __init__(self, dimensions: int = 8, *, key: str | None = None) -> None:
        self.dimensions = dimensions
        self.received: list[Received] = []
        self._key = key
        self._faults: deque[Fault] = deque()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                server._serve(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.01,), name="embedding-server", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(PATIENCE_S)

    def fail(self, *faults: Fault) -> None:
        """Let the next requests go wrong, one fault each."""
        with self._lock:
            self._faults.extend(faults)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            self.received.append(Received(handler.path, headers, body))
            fault = self._faults.popleft() if self._faults else Fault()
        if fault.hang:
            self._closing.wait(PATIENCE_S)
            handler.close_connection = True
        elif fault.status is not None:
            self._send(handler, fault.status, fault.body, fault)
        elif self._key is not None and headers.get("authorization") != f"Bearer {self._key}":
            told = headers.get("authorization", "").removeprefix("Bearer ")
            words = {"error": {"message": f"Incorrect API key provided: {told}."}}
            self._send(handler, 401, json.dumps(words).encode(), fault)
        elif handler.path != self.path:
            self._send(handler, 404, b"<html>no such page</html>", fault)
        else:
            reply = self._reply(body)
            if fault.change is not None:
                fault.change(reply)
            self._send(handler, 200, json.dumps(reply).encode(), fault)

    def _reply(self, body: dict[str, Any]) -> Reply:
        texts: list[str] = body["input"]
        dimensions = body.get("dimensions", self.dimensions)
        data = [
            {"object": "embedding", "index": at, "embedding": vector_of(text, dimensions).tolist()}
            for at, text in enumerate(texts)
        ]
        tokens = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": data, "model": body["model"], "usage": usage}

    def _send(
        self, handler: BaseHTTPRequestHandler, status: int, body: bytes, fault: Fault
    ) -> None:
        handler.send_response(status)
        for name, value in fault.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        try:
            if fault.cut:
                handler.wfile.write(body[: len(body) // 2])
                handler.close_connection = True
            elif fault.drip:
                for at in range(len(body) - 1):
                    handler.wfile.write(body[at : at + 1])
                self._closing.wait(PATIENCE_S)
                handler.close_connection = True
            else:
                handler.wfile.write(body)
        except OSError:  # the client hung up, as it may
            handler.close_connection = True


def shuffled(reply: Reply) -> None:
    """The vectors in another order, each with its index."""
    reply["data"].reverse()


def in_base64(reply: Reply) -> None:
    """The vectors as base64 of little-endian floats."""
    for item in reply["data"]:
        packed = np.array(item["embedding"], "<f4").tobytes()
        item["embedding"] = base64.b64encode(packed).decode()


def without_indices(reply: Reply) -> None:
    for item in reply["data"]:
        del item["index"]


def one_short(reply: Reply) -> None:
    reply["data"].pop()


def same_index_twice(reply: Reply) -> None:
    for item in reply["data"]:
        item["index"] = 0


def shorter_vectors(reply: Reply) -> None:
    for item in reply["data"]:
        item["embedding"] = item["embedding"][:-1]


def uneven_vectors(reply: Reply) -> None:
    reply["data"][0]["embedding"] = reply["data"][0]["embedding"][:-1]


def empty_vectors(reply: Reply) -> None:
    for item in reply["data"]:
        item["embedding"] = []


def huge_numbers(reply: Reply) -> None:
    reply["data"][0]["embedding"][0] = 1e300


def broken_base64(reply: Reply) -> None:
    reply["data"][0]["embedding"] = "no base64!"
