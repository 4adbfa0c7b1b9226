"""The load of the soak: agents as processes, each of which notes what was acknowledged to it."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec

from recollect import MemoryClient, RecollectError

NAMESPACE = "project:soak"
KEYS = 50
PAUSE_S = 0.01
"""Between two calls of an agent: a fleet thinks more than it asks."""
TIMEOUT_S = 30.0
REST_TIMEOUT_S = 5.0
KEPT_MAX = 200_000
"""Memories that one agent may add."""


class Noted(msgspec.Struct):
    """What one agent did: calls by the part of the run, and what it was promised."""

    calls_us: dict[int, list[int]] = msgspec.field(default_factory=dict)
    failed: dict[int, int] = msgspec.field(default_factory=dict)
    reasons: dict[str, int] = msgspec.field(default_factory=dict)
    wrong: list[str] = msgspec.field(default_factory=list)
    acknowledged: int = 0
    """Writes that were answered."""
    added: dict[str, str] = msgspec.field(default_factory=dict)
    """Text of each memory whose addition was acknowledged."""
    put: dict[str, int] = msgspec.field(default_factory=dict)
    """The last acknowledged value of each key."""
    tried: dict[str, int] = msgspec.field(default_factory=dict)
    """The last value of each key that was sent, acknowledged or not."""


class Agent:
    """Writes, reads, searches and assembles contexts, over ZeroMQ and over REST."""

    def __init__(self, number: int, endpoint: str, data: Path, seed: int) -> None:
        self.noted = Noted()
        self._number = number
        self._data = data
        self._chance = random.Random(f"{seed}-{number}")
        self._client = MemoryClient(endpoint, timeout=TIMEOUT_S, agent_id=f"agent-{number}")
        self._http = httpx.Client(timeout=REST_TIMEOUT_S, trust_env=False)
        self._steps: list[Callable[[], object]] = [
            *(self._put, self._put, self._add, self._get, self._get, self._words, self._meaning),
            *(self._recall, self._context, self._event, self._list, self._over_rest),
        ]

    def run(self, until: float, part_of: Callable[[], int]) -> None:
        """Call after call, until a moment of the monotonic clock."""
        while time.monotonic() < until:
            part, began = part_of(), time.perf_counter_ns()
            try:
                self._chance.choice(self._steps)()
            except (RecollectError, httpx.HTTPError, OSError) as error:
                self.noted.failed[part] = self.noted.failed.get(part, 0) + 1
                name = getattr(error, "code", None) or type(error).__name__
                self.noted.reasons[name] = self.noted.reasons.get(name, 0) + 1
            else:
                took_us = (time.perf_counter_ns() - began) // 1000
                self.noted.calls_us.setdefault(part, []).append(took_us)
            time.sleep(PAUSE_S)

    def close(self) -> None:
        self._client.close()
        self._http.close()

    def _text(self) -> str:
        seen = self._chance.getrandbits(40)
        return f"Machine {self._chance.randrange(500)} of agent {self._number} was seen at {seen:x}"

    def _put(self) -> None:
        key = f"a{self._number}-{self._chance.randrange(KEYS)}"
        value = self.noted.tried.get(key, 0) + 1
        self.noted.tried[key] = value
        self._client.put(NAMESPACE, key, {"value": value})
        self.noted.put[key] = value
        self.noted.acknowledged += 1

    def _add(self) -> None:
        if len(self.noted.added) < KEPT_MAX:
            text = self._text()
            added = self._client.add_memory(text, namespace=NAMESPACE)
            self.noted.added[added["memory_id"]] = text
            self.noted.acknowledged += 1

    def _get(self) -> None:
        if not self.noted.added:
            return
        memory_id = self._chance.choice(list(self.noted.added)[-500:])
        found: Any = self._client.get_memory(memory_id)
        if found["memory"]["content"] != self.noted.added[memory_id]:
            self.noted.wrong.append(memory_id)

    def _words(self) -> object:
        return self._client.search_memory(f"machine {self._chance.randrange(500)}", limit=5)

    def _meaning(self) -> object:
        return self._client.semantic_search(self._text(), 5, namespace=NAMESPACE)

    def _recall(self) -> object:
        return self._client.recall(f"where was machine {self._chance.randrange(500)} seen?", k=5)

    def _context(self) -> object:
        return self._client.assemble_context(self._text(), 500)

    def _event(self) -> object:
        return self._client.push_event("soak", {"text": self._text()})

    def _list(self) -> object:
        return self._client.list_memories(namespace=NAMESPACE, limit=5)

    def _over_rest(self) -> object:
        """By the gateway, which may have come back elsewhere."""
        if not self.noted.added:
            return None
        said = json.loads((self._data / "gateway.json").read_text())
        memory_id = self._chance.choice(list(self.noted.added)[-500:])
        return self._http.get(f"{said['url']}/v1/memories/{memory_id}").raise_for_status()


class Fleet:
    """Some agents at work, in processes of their own."""

    def __init__(self, agents: int, endpoint: str, data: Path, folder: Path, seed: int) -> None:
        self._files = [folder / f"agent-{number}" for number in range(agents)]
        self._given = (endpoint, data, seed)
        self._processes: list[Any] = []

    def start(self, seconds: float, part_s: float) -> None:
        context = multiprocessing.get_context("fork")
        self._processes = [
            context.Process(
                target=_work, args=(number, *self._given, file, seconds, part_s), daemon=True
            )
            for number, file in enumerate(self._files)
        ]
        for process in self._processes:
            process.start()

    def ended(self) -> list[Noted]:
        """What each noted, once all have stopped."""
        for process in self._processes:
            process.join(3 * TIMEOUT_S)
        return [msgspec.msgpack.decode(file.read_bytes(), type=Noted) for file in self._files]


def _work(
    number: int, endpoint: str, data: Path, seed: int, file: Path, seconds: float, part_s: float
) -> None:
    agent = Agent(number, endpoint, data, seed)
    began = time.monotonic()
    agent.run(began + seconds, lambda: int((time.monotonic() - began) / part_s))
    agent.close()
    file.write_bytes(msgspec.msgpack.encode(agent.noted))


def lost(client: MemoryClient, noted: Noted) -> list[str]:
    """What was acknowledged and is not there, or is not what was acknowledged."""
    missing = list(noted.wrong)
    for memory_id, text in noted.added.items():
        try:
            found: Any = client.get_memory(memory_id)
            if found["memory"]["content"] != text:
                missing.append(f"{memory_id} differs")
        except RecollectError as error:
            missing.append(f"{memory_id}: {error.code}")
    for key, value in noted.put.items():
        try:
            held: Any = client.get(NAMESPACE, key)
        except RecollectError as error:
            missing.append(f"{key}: {error.code}")
            continue
        # What was sent later and not acknowledged may have been stored all the same.
        if not value <= held["memory"]["value"]["value"] <= noted.tried[key]:
            missing.append(f"{key} is {held['memory']['value']}, acknowledged was {value}")
    return missing
