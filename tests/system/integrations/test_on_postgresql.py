"""The adapters on PostgreSQL."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.sessions import Session
from google.genai import types

from recollect.integrations.google_adk import RecollectMemoryService
from recollect.integrations.langgraph import RecollectStore
from tests.harness.postgres import new_database
from tests.harness.processes import OrchestratorProcess


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("postgresql") / "data"
    storage = {"RECOLLECT_STORAGE_URL": new_database()}
    with OrchestratorProcess(data, env=storage) as process:
        yield process.endpoint


def test_a_store_filters_all_the_same(endpoint: str) -> None:
    with RecollectStore(endpoint, root=f"app:t{uuid.uuid4().hex}") as store:
        for number in range(8):
            value = {"text": "green tea", "number": number, "even": number % 2 == 0}
            store.put(("tea",), f"k{number}", value)

        def kept(wanted: dict[str, Any], query: str | None = None) -> list[str]:
            found = store.search((), filter=wanted, query=query, limit=3)
            return sorted(item.key for item in found)

        for query in (None, "green tea"):
            assert kept({"even": True, "number": {"$gte": 4}}, query) == ["k4", "k6"]
            assert kept({"number": {"$lt": 2}}, query) == ["k0", "k1"]
            assert kept({"absent": 1}, query) == []


def test_memories_of_adk_follow_their_session_all_the_same(endpoint: str) -> None:
    def event(name: str) -> Event:
        said = types.Content(role="user", parts=[types.Part(text=f"{name} is said")])
        return Event(id=name, author="user", content=said)

    async def live() -> None:
        app = uuid.uuid4().hex
        one = Session(id="1", app_name=app, user_id="ann", events=[event("a"), event("b")])
        other = Session(id="2", app_name=app, user_id="ann", events=[event("c")])
        async with RecollectMemoryService(endpoint) as service:
            for session in (one, other, one):
                await service.add_session_to_memory(session)
            one.events = one.events[:1]
            await service.add_session_to_memory(one)
            found = await service.search_memory(app_name=app, user_id="ann", query="said")
            assert {entry.id for entry in found.memories} == {"a", "c"}

    asyncio.run(live())
