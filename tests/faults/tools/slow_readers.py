"""Clients that do not take what they asked for. Run as a program, this is one of them: it says
`ready` when there is something for it to take, and waits to be stopped."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import zmq

from tests.faults import wire

WAYS = {"answers": 0, "subscription": 1, "many subscriptions": 200}
"""Ways not to take what one asked for, with how many wait in each."""
REQUESTS = 5_000
"""Of which most find the queue of their answers full."""
PAGE = 100
PATIENCE_S = 60.0


def say_ready() -> None:
    print("ready", flush=True)
    time.sleep(PATIENCE_S)


def ask_and_take_nothing(endpoint: str) -> None:
    """Ask for more large answers than a queue holds, and take none of them."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    dealer.rcvhwm = 1
    dealer.sndhwm = 0
    dealer.connect(endpoint)
    for number in range(REQUESTS):
        dealer.send(wire.request(number, "read_changes", {"after_seq": 0, "limit": PAGE}))
    say_ready()


def subscribe(endpoint: str) -> None:
    from recollect import MemoryClient

    client = MemoryClient(endpoint)
    subscription = client.subscribe()
    threading.Thread(target=lambda: list(subscription), daemon=True).start()
    say_ready()


def subscribe_often(endpoint: str) -> None:
    from recollect import AsyncMemoryClient

    async def follow() -> None:
        client = AsyncMemoryClient(endpoint)

        async def one() -> None:
            async for _ in client.subscribe():
                pass

        tasks = [asyncio.create_task(one()) for _ in range(WAYS["many subscriptions"])]
        await client.ping()
        await asyncio.to_thread(say_ready)
        await asyncio.gather(*tasks)

    asyncio.run(follow())


if __name__ == "__main__":
    {
        "answers": ask_and_take_nothing,
        "subscription": subscribe,
        "many subscriptions": subscribe_often,
    }[sys.argv[1]](sys.argv[2])
