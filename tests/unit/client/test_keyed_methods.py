"""By id or by namespace and key: which operation is meant, and what type checkers see of it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, assert_type

import msgspec
import pytest

from recollect.client import AsyncMemoryClient, MemoryClient
from recollect.client.encoding import Speaker
from recollect.protocol import operations as ops
from recollect.protocol import records
from recollect.protocol.operation import Operation

R = TypeVar("R")


class Recorder(MemoryClient):
    """Keeps the operations instead of sending them."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Operation[Any]] = []

    def call(self, operation: Operation[R], /) -> R:
        self.made.append(operation)
        answer: Any = {"status": "success"}
        return answer  # type: ignore[no-any-return]


class AsyncRecorder(AsyncMemoryClient):
    """The same for asyncio."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Operation[Any]] = []

    async def call(self, operation: Operation[R], /, *, speaker: Speaker | None = None) -> R:
        self.made.append(operation)
        answer: Any = {"status": "success"}
        return answer  # type: ignore[no-any-return]


HOME = ("user:alice", "editor")
EXPECTED: list[Operation[Any]] = [
    ops.Put(*HOME, "vim", "semantic", {"a": 1}, tags=["t"], expected_version=0),
    ops.GetMemory("0199"),
    ops.GetByKey(*HOME),
    ops.GetByKey(*HOME, 2),
    ops.GetByKey(*HOME, as_of="2026-01-01"),
    ops.UpdateMemory("0199", {"content": "x"}),
    ops.UpdateByKey(*HOME, "emacs", metadata={"b": 2}, expected_version=3),
    ops.DeleteMemory("0199", False),
    ops.DeleteByKey(*HOME, expected_version=4),
    ops.History("0199", 5),
    ops.HistoryByKey(*HOME, 5),
    ops.Restore("0199", 1),
    ops.RestoreByKey(*HOME, 1),
    ops.Diff(*HOME, 1, 2),
]


def test_a_blocking_client_reaches_both_under_one_name() -> None:
    with Recorder() as client:
        assert_type(
            client.put(*HOME, "vim", "semantic", {"a": 1}, tags=["t"], expected_version=0),
            records.MemoryPut,
        )
        assert_type(client.get("0199"), records.MemoryFetched)
        assert_type(client.get("user:alice", "editor"), records.MemoryFetched)
        assert_type(client.get("user:alice", "editor", 2), records.MemoryFetched)
        client.get(namespace="user:alice", key="editor", as_of="2026-01-01")
        assert_type(client.update("0199", {"content": "x"}), records.MemoryChanged)
        assert_type(
            client.update("user:alice", "editor", "emacs", metadata={"b": 2}, expected_version=3),
            records.MemoryChanged,
        )
        assert_type(client.delete("0199", False), records.MemoryDeleted)
        client.delete("user:alice", "editor", expected_version=4)
        assert_type(client.history("0199", 5), records.MemoryHistory)
        client.history("user:alice", "editor", 5)
        assert_type(client.restore("0199", 1), records.MemoryChanged)
        client.restore("user:alice", "editor", 1)
        assert_type(client.diff("user:alice", "editor", 1, 2), records.MemoryDiff)
    assert client.made == EXPECTED


def test_an_asyncio_client_reaches_both_under_one_name() -> None:
    async def scenario() -> list[Operation[Any]]:
        async with AsyncRecorder() as client:
            assert_type(
                await client.put(
                    *HOME, "vim", "semantic", {"a": 1}, tags=["t"], expected_version=0
                ),
                records.MemoryPut,
            )
            assert_type(await client.get("0199"), records.MemoryFetched)
            assert_type(await client.get("user:alice", "editor"), records.MemoryFetched)
            await client.get("user:alice", "editor", 2)
            await client.get(namespace="user:alice", key="editor", as_of="2026-01-01")
            assert_type(await client.update("0199", {"content": "x"}), records.MemoryChanged)
            await client.update(
                "user:alice", "editor", "emacs", metadata={"b": 2}, expected_version=3
            )
            assert_type(await client.delete("0199", False), records.MemoryDeleted)
            await client.delete("user:alice", "editor", expected_version=4)
            assert_type(await client.history("0199", 5), records.MemoryHistory)
            await client.history("user:alice", "editor", 5)
            assert_type(await client.restore("0199", 1), records.MemoryChanged)
            await client.restore("user:alice", "editor", 1)
            assert_type(await client.diff("user:alice", "editor", 1, 2), records.MemoryDiff)
            return client.made

    assert asyncio.run(scenario()) == EXPECTED


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.get(),
        lambda client: client.get("user:alice"),
        lambda client: client.get("0199", "editor", 2, 3, 4),
        lambda client: client.update("user:alice", "editor", colour="red"),
        lambda client: client.history(namespace="user:alice"),
        lambda client: client.put("user:alice", "editor"),
    ],
)
def test_what_fits_neither_is_a_type_error(call: Callable[[Any], Any]) -> None:
    with Recorder() as client, pytest.raises(TypeError):
        call(client)
    assert client.made == []


@pytest.mark.parametrize("name", ["get", "update", "delete", "history", "restore"])
def test_such_a_method_documents_both_ways(name: str) -> None:
    method = getattr(MemoryClient, name)
    doc = inspect.getdoc(method)
    assert method.__name__ == name
    assert doc is not None
    assert "Or by key:" in doc


def test_what_is_left_out_of_a_put_does_not_travel() -> None:
    with Recorder() as client:
        client.put("user:alice", "editor", None)
    [made] = client.made
    body = msgspec.msgpack.decode(msgspec.msgpack.encode(made))
    assert body == {"namespace": "user:alice", "key": "editor", "value": None}
