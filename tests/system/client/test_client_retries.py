"""A retry never duplicates: replies are cut off on their way, and the call is sent again."""

from __future__ import annotations

import asyncio
from collections import Counter

from recollect.client import AsyncMemoryClient, MemoryClient, Retry
from tests.system.client.cutting_proxy import CuttingProxy
from tests.system.client.standin import WAIT_S, StandIn

PATIENT = Retry(attempts_max=30, backoff_ms=1, backoff_ms_max=10)


def executions(server: StandIn) -> tuple[Counter[str], int]:
    """How often each text was written by a server that honours keys, and how many requests came."""
    by_key: dict[str | None, str] = {}
    requests = [seen for seen in server.seen if seen.request.op == "add_memory"]
    for seen in requests:
        text = by_key.setdefault(seen.request.key, seen.body["content"])
        assert text == seen.body["content"], "a key came with another payload"
    return Counter(by_key.values()), len(requests)


def test_writes_whose_replies_are_cut_off_take_effect_once() -> None:
    with StandIn() as server, CuttingProxy(server.port, cut_share=0.4, seed=1) as proxy:
        with MemoryClient(proxy.endpoint, timeout=WAIT_S, retry=PATIENT) as client:
            for n in range(100):
                assert client.add_memory(str(n))["status"] == "success"
        written, requests = executions(server)
        assert written == Counter(str(n) for n in range(100))
        assert proxy.cut_count > 10
        # Every lost reply cost one more request, and nothing else was sent twice.
        assert requests == 100 + proxy.cut_count


def test_so_do_those_of_the_asyncio_client() -> None:
    async def run(endpoint: str) -> None:
        async with AsyncMemoryClient(endpoint, timeout=WAIT_S, retry=PATIENT) as client:
            for n in range(0, 100, 10):
                await asyncio.gather(*(client.add_memory(str(m)) for m in range(n, n + 10)))

    with StandIn() as server, CuttingProxy(server.port, cut_share=0.3, seed=2) as proxy:
        asyncio.run(run(proxy.endpoint))
        written, _ = executions(server)
        assert written == Counter(str(n) for n in range(100))
        assert proxy.cut_count > 0
