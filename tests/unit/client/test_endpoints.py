"""Which endpoints a client was given."""

from __future__ import annotations

import random
from typing import Any

import pytest

from recollect.client import AsyncMemoryClient, MemoryClient
from recollect.client.endpoints import Named, named
from recollect.client.fleet.names import LOOK_AWAY_S, LOOK_INTERVAL_S, Names
from recollect.protocol.errors import InvalidArgument

A, B = "tcp://10.0.0.1:7331", "tcp://10.0.0.2:7331"
CLIENTS = [MemoryClient, AsyncMemoryClient]
Client = type[MemoryClient] | type[AsyncMemoryClient]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "given",
    [
        {"endpoints": [A, B]},
        {"endpoints": (A, B, A)},
        {"endpoints": f"{A},{B}"},
        {"endpoint": f"{A}, {B}"},
    ],
)
def test_several_endpoints_are_given_as_a_list_or_with_commas(
    client: Client, given: dict[str, Any]
) -> None:
    made = client(**given)
    assert made.endpoints == (A, B)
    assert made.endpoint == f"{A},{B}"
    told = made.get_circuit_breaker_status()["endpoints"]
    assert [(one["endpoint"], one["healthy"]) for one in told] == [(A, True), (B, True)]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_environment_may_name_several(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_ENDPOINT", f"{A},{B}")
    assert client().endpoints == (A, B)
    assert client(A).endpoints == (A,)


@pytest.mark.parametrize("client", CLIENTS)
def test_one_endpoint_has_one_breaker_and_its_status_as_ever(client: Client) -> None:
    made = client(endpoints=[A])
    assert made.endpoint == A
    status = made.get_circuit_breaker_status()
    assert (status["state"], status["failures"]) == ("closed", 0)
    (only,) = status["endpoints"]
    assert (only["endpoint"], only["healthy"], only["state"]) == (A, True, "closed")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "given", [[], ["nowhere"], [A, 5], [f"tcp://10.0.0.1:{n}" for n in range(65)]]
)
def test_what_are_no_endpoints_is_refused(client: Client, given: Any) -> None:
    with pytest.raises(InvalidArgument, match="endpoint"):
        client(endpoints=given)


def test_both_ways_at_once_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="not both"):
        MemoryClient(A, endpoints=[B])


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        ("tcp://memory.internal:7331", Named("memory.internal", 7331)),
        ("tcp://10.0.0.1:7331", None),
        ("tcp://[::1]:7331", None),
        ("tcp://localhost:7331", None),
        ("tcp://10.0.0.9;memory.internal:7331", None),
        ("tcp://memory.internal:port", None),
        ("ipc:///run/memory.sock", None),
    ],
)
def test_a_name_is_told_from_an_address(endpoint: str, name: Named | None) -> None:
    assert named(endpoint) == name


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_name_is_looked_up_before_the_first_call_and_from_time_to_time() -> None:
    clock = Clock()
    names = Names(["tcp://memory:1", A], clock=clock, randomness=random.Random(3))
    assert names.is_due()
    (memory,) = names.begin()
    assert not names.is_due()
    assert names.learn({memory: ["10.0.0.8", "fe80::1", "10.0.0.7", "10.0.0.7"]}) == [
        "tcp://10.0.0.7:1",
        "tcp://10.0.0.8:1",
        "tcp://[fe80::1]:1",
        A,
    ]
    clock.now_s += LOOK_AWAY_S
    assert names.is_due(somebody_away=True)
    assert not names.is_due()
    clock.now_s += LOOK_INTERVAL_S
    assert names.is_due()
    names.begin()
    assert names.learn({memory: []})[:2] == ["tcp://10.0.0.7:1", "tcp://10.0.0.8:1"]


def test_a_name_with_one_address_or_none_stands_for_itself() -> None:
    names = Names(["tcp://memory:1"], clock=Clock(), randomness=random.Random(3))
    (memory,) = names.begin()
    assert names.learn({}) == ["tcp://memory:1"]
    assert names.learn({memory: ["10.0.0.7"]}) == ["tcp://memory:1"]


def test_addresses_are_never_looked_up() -> None:
    names = Names([A, B], clock=Clock(), randomness=random.Random(3))
    assert not names.is_due()
    assert not names.is_due(somebody_away=True)
