"""The acknowledgement log: what clients were told is stored, and whether it is."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Any

import msgspec

from recollect import AsyncMemoryClient, MemoryClient
from recollect.protocol.errors import NotFound
from tests.faults.polling import wait_for

IN_FLIGHT = 64


class Acknowledged(msgspec.Struct, frozen=True):
    """One version of one memory, as a client was told it is stored."""

    memory_id: str
    version: int
    content: str
    deleted: bool = False


class AcknowledgementLog:
    """Everything acknowledged so far. Any thread may add."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Acknowledged] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, *entries: Acknowledged) -> None:
        with self._lock:
            self._entries.extend(entries)

    def entries(self) -> list[Acknowledged]:
        with self._lock:
            return list(self._entries)

    def wait_for_more(self, count: int, within_s: float = 30.0) -> None:
        """Return when so many more writes were acknowledged."""
        enough = len(self) + count
        wait_for(lambda: len(self) >= enough, within_s=within_s, what=f"{count} acknowledgements")

    def check(self, endpoint: str, *, latest: bool = True, search: bool = True) -> list[str]:
        """What is missing or different at an orchestrator.

        With `latest`, the last acknowledged version must be the present one: right once all
        writers have ended. Each content begins with a word of its own, by which it must be found.
        """
        return asyncio.run(_check(endpoint, self.entries(), latest, search))

    def check_found(self, client: MemoryClient, count: int, chance: random.Random) -> list[str]:
        """What of a sample is not found by its text, or found though deleted.

        Writers may go on meanwhile: a version that is superseded by now is passed over.
        """
        complaints = []
        for entry in chance.sample(self.entries(), min(count, len(self))):
            answer = client.semantic_search(entry.content, 3)
            found = entry.memory_id in {result["id"] for result in answer["results"]}
            memory = client.get_memory(entry.memory_id, include_deleted=True)["memory"]
            if memory["version"] == entry.version and found == entry.deleted:
                complaints.append(f"{'still' if found else 'not'} found by its text: {entry}")
        return complaints


async def _check(
    endpoint: str, entries: list[Acknowledged], latest: bool, search: bool
) -> list[str]:
    last: dict[str, Acknowledged] = {}
    for entry in entries:
        if entry.memory_id not in last or last[entry.memory_id].version < entry.version:
            last[entry.memory_id] = entry
    found: list[str] = []
    room = asyncio.Semaphore(IN_FLIGHT)
    async with AsyncMemoryClient(endpoint, timeout=30.0) as client:

        async def one(checking: Any) -> None:
            async with room:
                complaint = await checking
            if complaint is not None:
                found.append(complaint)

        work = [one(_version(client, entry)) for entry in entries]
        if latest:
            work += [one(_present(client, entry)) for entry in last.values()]
        if latest and search:
            work += [one(_searchable(client, entry)) for entry in last.values()]
        await asyncio.gather(*work)
    return found


async def _version(client: AsyncMemoryClient, entry: Acknowledged) -> str | None:
    """An acknowledged version is in the history with its content."""
    try:
        fetched = await client.get_memory(entry.memory_id, version=entry.version)
    except NotFound:
        return f"lost: {entry}"
    memory = fetched["memory"]
    if memory["content"] != entry.content or (memory["deleted_at"] is not None) != entry.deleted:
        return f"changed: {entry} became {memory['content']!r}"
    return None


async def _present(client: AsyncMemoryClient, entry: Acknowledged) -> str | None:
    """The last acknowledged version is the present one."""
    try:
        fetched = await client.get_memory(entry.memory_id, include_deleted=True)
    except NotFound:
        return f"gone: {entry}"
    memory = fetched["memory"]
    present = Acknowledged(
        memory["id"], memory["version"], memory["content"], memory["deleted_at"] is not None
    )
    return None if present == entry else f"not the present version: {entry}, but {present}"


async def _searchable(client: AsyncMemoryClient, entry: Acknowledged) -> str | None:
    """A living memory is found by its own word and by its text; a deleted one is not."""
    by_word = await client.search_memory(entry.content.split()[0], limit=10)
    by_text = await client.semantic_search(entry.content, 3)
    for way, answer in (("word", by_word), ("text", by_text)):
        found = entry.memory_id in {memory["id"] for memory in answer["results"]}
        if found == entry.deleted:
            return f"{'still' if found else 'not'} found by its {way}: {entry}"
    return None
