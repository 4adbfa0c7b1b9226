"""Following the feed over gRPC: in order, each once, over whatever happens in between."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import islice
from typing import Any

import grpc
import pytest

from recollect import MemoryClient
from tests.harness.gateways import GatewayProcess
from tests.harness.grpc_calling import CALLED_WITHIN_S, error_of, generated
from tests.harness.grpc_gateways import channel_to, gateway_of
from tests.harness.keys import issue_bearer
from tests.harness.processes import OrchestratorProcess

messages: Any = generated().messages


@pytest.fixture
def gateway(orchestrator: OrchestratorProcess) -> Iterator[GatewayProcess]:
    with gateway_of(orchestrator, streams_max="2", share_max="1") as process:
        yield process


@pytest.fixture
def channel(gateway: GatewayProcess) -> Iterator[grpc.Channel]:
    with channel_to(gateway) as channel:
        yield channel


class Subscriber:
    """Reads one stream, and remembers where it is."""

    def __init__(self, channel: grpc.Channel, metadata: Any = (), **wanted: Any) -> None:
        stub = generated().stubs.RecollectStub(channel)
        request = messages.SubscribeRequest(**wanted)
        self.stream = stub.Subscribe(request, timeout=CALLED_WITHIN_S, metadata=metadata)
        first = next(self.stream)
        self._come = list(first.changes)
        self.next_seq = first.next_seq

    def changes(self) -> Iterator[Any]:
        while True:
            while self._come:
                yield self._come.pop(0)
            page = next(self.stream)
            self._come += page.changes
            self.next_seq = page.next_seq

    def subjects(self, count: int) -> list[str]:
        return [change.subject for change in islice(self.changes(), count)]


def added(client: MemoryClient, count: int, namespace: str = "user:feed") -> list[str]:
    return [
        client.add_memory(f"Note {at} of many", namespace=namespace)["memory_id"]
        for at in range(count)
    ]


def test_changes_come_in_order_and_each_once(
    orchestrator: OrchestratorProcess, channel: grpc.Channel
) -> None:
    with orchestrator.client() as client:
        before = added(client, 3)
        from_now = Subscriber(channel, namespace="user:feed")
        from_the_start = Subscriber(channel, from_seq=0, namespace="user:feed")
        added(client, 1, namespace="user:other")
        after = added(client, 3)
    assert from_now.subjects(3) == after
    assert from_the_start.subjects(6) == before + after


def test_a_stream_goes_on_over_a_killed_orchestrator(
    orchestrator: OrchestratorProcess, channel: grpc.Channel
) -> None:
    subscriber = Subscriber(channel, namespace="user:feed")
    with orchestrator.client() as client:
        before = added(client, 2)
    assert subscriber.subjects(2) == before
    orchestrator.kill()
    orchestrator.start()
    with orchestrator.client() as client:
        after = added(client, 2)
    assert subscriber.subjects(2) == after


def test_a_stream_that_broke_off_is_gone_on_with(
    orchestrator: OrchestratorProcess, gateway: GatewayProcess
) -> None:
    with channel_to(gateway) as channel, orchestrator.client() as client:
        subscriber = Subscriber(channel, from_seq=0, namespace="user:feed")
        wanted = added(client, 2)
        seen = subscriber.subjects(2)
        known = subscriber.next_seq
        gateway.signal(signal.SIGKILL)
        with pytest.raises(grpc.RpcError) as caught:
            subscriber.subjects(1)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        wanted += added(client, 2)
    gateway.wait_ended()
    gateway.start()
    with channel_to(gateway) as channel:
        seen += Subscriber(channel, from_seq=known, namespace="user:feed").subjects(2)
    assert seen == wanted


def test_a_gateway_that_stops_ends_its_streams_at_once(
    gateway: GatewayProcess, channel: grpc.Channel
) -> None:
    subscriber = Subscriber(channel)
    gateway.signal(signal.SIGTERM)
    with pytest.raises(grpc.RpcError) as caught:
        subscriber.subjects(1)
    assert error_of(caught.value).code == "shutting_down"
    assert gateway.wait_ended() == 0


def test_a_number_that_was_never_given_is_an_error(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        Subscriber(channel, from_seq=1 << 40)
    assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE
    assert error_of(caught.value).code == "changes_ahead"


def test_only_so_many_may_follow_at_once(channel: grpc.Channel) -> None:
    first, _second = Subscriber(channel), Subscriber(channel)
    with pytest.raises(grpc.RpcError) as caught:
        Subscriber(channel)
    assert error_of(caught.value).details["limit"] == "gateway.streams_max"
    first.stream.cancel()
    while True:  # bounded by the deadline of the test: the place becomes free again
        try:
            Subscriber(channel)
            return
        except grpc.RpcError:
            continue


def test_only_what_the_caller_may_read_is_told(
    orchestrator: OrchestratorProcess, channel: grpc.Channel
) -> None:
    with orchestrator.client() as client:
        key = issue_bearer(client, "follower", ("user:feed", "read"))
        subscriber = Subscriber(channel, metadata=(("authorization", f"Bearer {key}"),))
        added(client, 2, namespace="user:secret")
        wanted = added(client, 1)
        assert subscriber.subjects(1) == wanted
        client.revoke_access("follower")
    with pytest.raises(grpc.RpcError) as caught:
        subscriber.subjects(1)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
