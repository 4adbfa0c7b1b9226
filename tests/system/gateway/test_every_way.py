"""One store asked over ZeroMQ, REST and gRPC: every operation answers the same by each of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect import MemoryClient
from recollect.protocol.errors import RecollectError
from recollect.protocol.operation import Operation, result_of
from recollect.protocol.operations import REGISTRY
from tests.harness.every_call import documents_of, use_everything
from tests.harness.grpc_gateways import calling, gateway_of
from tests.harness.processes import OrchestratorProcess
from tests.harness.rest_calling import RestCaller

Call = Callable[[Operation[Any]], dict[str, Any]]

# What is of the moment at which it is asked, or made anew each time.
OF_THE_MOMENT = frozenset(
    {
        *("access_count", "last_accessed_at", "stability_s", "fades_at", "strength"),
        *("score", "explanation", "reuse_count", "receipt_id", "context"),
    }
)
# Figures of the process: they grow by being asked for.
FIGURES = frozenset({"stats", "metrics", "ping", "analytics", "system_snapshot", "who_am_i"})


class EveryWay:
    """A caller that reads everything over each way, and writes over one after the other."""

    def __init__(self, ways: dict[str, Any]) -> None:
        self._ways = ways
        self._turns = itertools.cycle(ways)
        self.read: set[str] = set()
        self.differing: list[str] = []
        """Where an answer was another one over another way."""
        self.written: dict[str, set[str]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in REGISTRY:
            return lambda *args, **kwargs: self.call(REGISTRY[name](*args, **kwargs))
        return lambda *args: [getattr(way, name)(*args) for way in self._ways.values()]

    def call(self, operation: Operation[Any]) -> dict[str, Any]:
        name = operation.spec.name
        if operation.spec.access in ("read", "open") and operation.spec.replay:
            self.read.add(name)
            return self._read(operation)
        way = next(self._turns)
        self.written.setdefault(name, set()).add(way)
        answer: dict[str, Any] = self._ways[way].call(operation)
        self._check_shape(operation, answer, way)
        return answer

    def _read(self, operation: Operation[Any]) -> dict[str, Any]:
        name = operation.spec.name
        answers = {way: _outcome(client.call, operation) for way, client in self._ways.items()}
        first = answers["zmq"]
        for way, answer in answers.items():
            assert type(answer) is type(first), (name, way, answer, first)
            if isinstance(answer, RecollectError) and isinstance(first, RecollectError):
                assert answer.body() == first.body(), (name, way)
            elif isinstance(answer, dict):
                self._check_shape(operation, answer, way)
                if name not in FIGURES:
                    self.differing += [f"{name}/{way}{place}" for place in _places(answer, first)]
        if isinstance(first, RecollectError):
            raise first
        return first

    def _check_shape(self, operation: Operation[Any], answer: Any, way: str) -> None:
        """An answer is of the declared type, whichever way it came."""
        try:
            msgspec.convert(answer, result_of(type(operation)))
        except msgspec.ValidationError as error:
            pytest.fail(f"{operation.spec.name} over {way}: {error}")


def _outcome(call: Call, operation: Operation[Any]) -> dict[str, Any] | RecollectError:
    try:
        return call(operation)
    except RecollectError as error:
        return error


def _places(value: Any, other: Any, place: str = "") -> list[str]:
    """Where two answers differ, but for what is of the moment."""
    if isinstance(value, dict) and isinstance(other, dict) and value.keys() == other.keys():
        named = [(f"{place}.{name}", value[name], other[name]) for name in value]
        return [
            found
            for path, one, another in named
            if path.rpartition(".")[2] not in OF_THE_MOMENT
            for found in _places(one, another, path)
        ]
    if isinstance(value, list) and isinstance(other, list) and len(value) == len(other):
        pairs = zip(value, other, strict=True)
        return [found for one, another in pairs for found in _places(one, another, f"{place}[]")]
    return [] if value == other else [f"{place}: {value!r:.200} != {other!r:.200}"]


def test_every_operation_answers_the_same_over_every_way(tmp_path: Path) -> None:
    env = {"RECOLLECT_DOCUMENTS_ROOTS": str(documents_of(tmp_path))}
    with (
        OrchestratorProcess(tmp_path / "data", env=env) as process,
        MemoryClient(process.endpoint) as zmq,
        gateway_of(process, rest="true") as gateway,
        gateway.client() as http,
        calling(gateway) as grpc,
    ):
        caller = EveryWay({"zmq": zmq, "rest": RestCaller(http), "grpc": grpc})
        use_everything(caller, tmp_path)
        assert caller.differing == [], "\n".join(caller.differing)
        assert caller.read | caller.written.keys() == set(REGISTRY)
        by_way = [way for ways in caller.written.values() for way in ways]
        assert all(by_way.count(way) > 20 for way in ("zmq", "rest", "grpc"))
