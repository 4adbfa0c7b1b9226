"""The protocol as docs/protocol.md specifies it, spoken with nothing but pyzmq and msgpack."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
import zmq

from tests.harness.processes import OrchestratorProcess

ANSWER_WITHIN_MS = 10_000


class RawClient:
    def __init__(self, endpoint: str, kind: int = zmq.DEALER) -> None:
        self._context = zmq.Context()
        self.socket = self._context.socket(kind)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(endpoint)
        self._last_id = 0

    def receive(self) -> Any:
        assert self.socket.poll(ANSWER_WITHIN_MS), "no answer"
        reply = msgpack.unpackb(self.socket.recv())
        assert reply["v"] == 1
        assert abs(reply["now_ms"] - time.time() * 1000) < 60_000
        return reply["id"], msgpack.unpackb(reply["body"])

    def call(self, op: str, arguments: Any = None, **envelope: Any) -> Any:
        self._last_id += 1
        request = {"v": 1, "id": self._last_id, "op": op, **envelope}
        if arguments is not None:
            request["body"] = msgpack.packb(arguments)
        self.socket.send(msgpack.packb(request))
        answered, body = self.receive()
        assert answered == request["id"]
        return body

    def close(self) -> None:
        self.socket.close()
        self._context.term()


@pytest.fixture
def raw(orchestrator: OrchestratorProcess) -> Iterator[RawClient]:
    client = RawClient(orchestrator.endpoint)
    yield client
    client.close()


def code(body: Any) -> str:
    assert body["status"] == "error", body
    assert set(body["error"]) == {"code", "message", "retryable", "details"}
    return str(body["error"]["code"])


def test_a_memory_is_stored_and_read_back(raw: RawClient) -> None:
    added = raw.call("add_memory", {"content": "Anna prefers tea"}, agent="a1", session="s1")
    assert added["status"] == "success"
    memory = raw.call("get_memory", {"memory_id": added["memory_id"]})["memory"]
    assert memory["content"] == "Anna prefers tea"
    assert (memory["created_by"], memory["session_id"]) == ("a1", "s1")


def test_an_operation_without_arguments_needs_no_body(raw: RawClient) -> None:
    assert raw.call("ping")["ready"] is True


def test_a_request_socket_is_answered_too(orchestrator: OrchestratorProcess) -> None:
    client = RawClient(orchestrator.endpoint, zmq.REQ)
    try:
        assert client.call("ping")["status"] == "success"
    finally:
        client.close()


def test_ids_may_be_text_and_answers_carry_them(raw: RawClient) -> None:
    raw.socket.send(msgpack.packb({"v": 1, "id": "a-b-c", "op": "ping"}))
    assert raw.receive()[0] == "a-b-c"


def test_the_same_key_takes_effect_once(raw: RawClient) -> None:
    first = raw.call("add_memory", {"content": "x"}, key="k")
    assert raw.call("add_memory", {"content": "x"}, key="k") == first
    assert code(raw.call("add_memory", {"content": "y"}, key="k")) == "idempotency_conflict"
    assert raw.call("count")["count"] == 1


def test_a_passed_deadline_is_not_executed(raw: RawClient) -> None:
    late = raw.call("add_memory", {"content": "x"}, deadline_ms=int(time.time() * 1000) - 1000)
    assert code(late) == "deadline_exceeded"
    assert raw.call("count")["count"] == 0


def test_bad_requests_get_typed_answers_with_their_id_and_the_line_stays_good(
    raw: RawClient,
) -> None:
    assert code(raw.call("no_such_operation", {})) == "unknown_operation"
    assert code(raw.call("ping", v=99)) == "unsupported_version"
    assert code(raw.call("ping", {"surprise": 1})) == "invalid_argument"
    assert code(raw.call("add_memory", {})) == "invalid_argument"
    assert code(raw.call("add_memory", [1, 2])) == "invalid_argument"
    assert code(raw.call("ping", body=b"\xc1broken")) == "malformed_request"
    assert code(raw.call("ping", body="text")) == "malformed_request"
    assert code(raw.call("add_memory", {"content": "x", "timeout": 3})) == "invalid_argument"
    assert raw.call("ping")["status"] == "success"


@pytest.mark.parametrize(
    "frames",
    [
        [b""],
        [b"\xc1"],
        [b"not msgpack at all"],
        [msgpack.packb([1, 2, 3])],
        [msgpack.packb({"v": 1})],
        [msgpack.packb({"id": 1, "op": "ping"})],
        [b"one", b"two", b"three"],
        [b'{"v": 1, "id": 1, "op": "ping"}'],
    ],
)
def test_what_is_no_request_is_answered_without_an_id(raw: RawClient, frames: list[bytes]) -> None:
    raw.socket.send_multipart(frames)
    answered = raw.socket.recv_multipart() if raw.socket.poll(ANSWER_WITHIN_MS) else []
    assert answered, "no answer"
    reply = msgpack.unpackb(answered[-1])
    assert code(msgpack.unpackb(reply["body"])) == "malformed_request"
    assert raw.call("ping")["status"] == "success"
