"""Many sessions at once over a real orchestrator: no lost event, no gap, no lost update."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from recollect import AsyncMemoryClient, MemoryClient
from recollect.client import Retry, Timeouts
from recollect.protocol import errors
from tests.harness.ports import free_port
from tests.harness.processes import OrchestratorProcess

SESSIONS = 50
WRITERS = 3
EVENTS = 8
ATTEMPTS_MAX = 200
ENDS_WITHIN_S = 120.0


def bounded(work: Any) -> Any:
    async def run() -> Any:
        async with asyncio.timeout(ENDS_WITHIN_S):
            return await work

    return asyncio.run(run())


async def all_events(client: AsyncMemoryClient, session_id: str) -> list[Any]:
    events: list[Any] = []
    cursor = None
    while True:
        page = await client.list_events(session_id, 7, cursor=cursor)
        events += page["events"]
        cursor = page["cursor"]
        if cursor is None:
            return events


def check_order(events: list[Any]) -> None:
    """Positions without a gap, and the events of each writer in the order in which it sent them."""
    assert [event["position"] for event in events] == list(range(1, len(events) + 1))
    for writer in range(WRITERS):
        sent = [event["event"]["n"] for event in events if event["event"]["writer"] == writer]
        assert sent == list(range(len(sent)))


async def write_events(client: AsyncMemoryClient, session_id: str, writer: int) -> list[int]:
    positions = []
    for n in range(EVENTS):
        answer = await client.append_event(
            session_id, {"writer": writer, "n": n}, {f"writer-{writer}": n, "temp:last": writer}
        )
        positions.append(answer["position"])
    return positions


async def read_events(client: AsyncMemoryClient, session_id: str) -> None:
    """Read while others write, until all is there: what is seen is always whole up to its end."""
    seen = 0
    for _ in range(ATTEMPTS_MAX):
        events = await all_events(client, session_id)
        check_order(events)
        assert len(events) >= seen
        seen = len(events)
        whole = await client.get_session(session_id, events=5)
        positions = [event["position"] for event in whole["events"]]
        count = whole["session"]["events"]
        assert positions == list(range(max(1, count - 4), count + 1))
        for writer in range(WRITERS):
            last = [e["event"]["n"] for e in events if e["event"]["writer"] == writer]
            assert whole["state"].get(f"writer-{writer}", -1) >= (last[-1] if last else -1)
        if seen == WRITERS * EVENTS:
            return
    raise AssertionError(f"after {ATTEMPTS_MAX} looks there were {seen} events")


def test_fifty_sessions_written_and_read_at_once_lose_no_event(
    orchestrator: OrchestratorProcess,
) -> None:
    async def scenario() -> None:
        async with AsyncMemoryClient(orchestrator.endpoint) as client:
            created = await asyncio.gather(
                *(client.create_session(f"user{n}") for n in range(SESSIONS))
            )
            ids = [session["session_id"] for session in created]
            assert len(set(ids)) == SESSIONS
            writing = [write_events(client, i, w) for i in ids for w in range(WRITERS)]
            reading = [read_events(client, session_id) for session_id in ids]
            positions, _ = await asyncio.gather(asyncio.gather(*writing), asyncio.gather(*reading))
            for at, session_id in enumerate(ids):
                told = [p for one in positions[at * WRITERS : (at + 1) * WRITERS] for p in one]
                assert sorted(told) == list(range(1, WRITERS * EVENTS + 1))
                whole = await client.get_session(session_id, events=WRITERS * EVENTS)
                check_order(whole["events"])
                assert whole["session"]["version"] == 1 + WRITERS * EVENTS
                assert whole["state"].pop("temp:last") in range(WRITERS)
                assert whole["state"] == {f"writer-{w}": EVENTS - 1 for w in range(WRITERS)}
            pages: list[str] = []
            cursor = None
            while True:
                page = await client.list_active_sessions(limit=20, cursor=cursor)
                pages += [session["id"] for session in page["sessions"]]
                cursor = page["cursor"]
                if cursor is None:
                    break
            assert sorted(pages) == sorted(ids)

    bounded(scenario())


async def count_up(client: AsyncMemoryClient, session_id: str, times: int) -> int:
    """Read, add one, write if nobody else did; returns how often somebody did."""
    conflicts = 0
    for _ in range(times):
        for _ in range(ATTEMPTS_MAX):
            seen = await client.get_state(session_id)
            count = seen["state"]["count"] + 1
            try:
                await client.append_event(
                    session_id, count, {"count": count}, expected_version=seen["version"]
                )
                break
            except errors.VersionConflict:
                conflicts += 1
        else:
            raise AssertionError("it never came to its turn")
    return conflicts


def test_updates_that_expect_a_version_are_never_lost(orchestrator: OrchestratorProcess) -> None:
    async def scenario() -> None:
        async with AsyncMemoryClient(orchestrator.endpoint) as client:
            ids = [
                (await client.create_session("alice", state={"count": 0}))["session_id"]
                for _ in range(10)
            ]
            conflicts = await asyncio.gather(
                *(count_up(client, session_id, 5) for session_id in ids for _ in range(4))
            )
            assert sum(conflicts) > 0, "nobody met: nothing was tried"
            for session_id in ids:
                events = await all_events(client, session_id)
                assert [(e["position"], e["event"]) for e in events] == [
                    (n, n) for n in range(1, 21)
                ]
                assert (await client.get_state(session_id))["state"] == {"count": 20}

    bounded(scenario())


def test_the_same_for_keys_with_put(orchestrator: OrchestratorProcess) -> None:
    async def add(client: AsyncMemoryClient, times: int) -> int:
        conflicts = 0
        for _ in range(times):
            for _ in range(ATTEMPTS_MAX):
                try:
                    seen = (await client.get("app:counter", "total"))["memory"]
                    value, version = seen["value"], seen["version"]
                except errors.NotFound:
                    value, version = 0, 0
                try:
                    await client.put("app:counter", "total", value + 1, expected_version=version)
                    break
                except (errors.VersionConflict, errors.AlreadyExists):
                    conflicts += 1
            else:
                raise AssertionError("it never came to its turn")
        return conflicts

    async def scenario() -> None:
        async with AsyncMemoryClient(orchestrator.endpoint) as client:
            conflicts = await asyncio.gather(*(add(client, 5) for _ in range(6)))
            assert sum(conflicts) > 0
            memory = (await client.get("app:counter", "total"))["memory"]
            assert (memory["value"], memory["version"]) == (30, 30)
            versions = (await client.history("app:counter", "total"))["versions"]
            assert [v["memory"]["value"] for v in versions] == list(range(30, 0, -1))

    bounded(scenario())


def test_memories_belong_to_the_session_that_is_set(orchestrator: OrchestratorProcess) -> None:
    with orchestrator.client(agent_id="planner") as client:
        session_id = client.create_session("alice")["session_id"]
        assert client.set_session_id(session_id)["session_id"] == session_id
        inside = client.put("user:alice", "editor", "vim")["memory_id"]
        client.set_session_id(None)
        outside = client.add_memory("said in passing")["memory_id"]
        found = [client.get(i)["memory"]["session_id"] for i in (inside, outside)]
        assert found == [session_id, None]
        listed = client.list_memories(filters={"session_id": session_id})["memories"]
        assert [memory["id"] for memory in listed] == [inside]


def test_temporary_state_does_not_wait_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    with MemoryClient(
        f"tcp://127.0.0.1:{free_port()}",
        outbox=path,
        retry=Retry(attempts_max=1),
        timeouts=Timeouts(connect_s=0.2),
    ) as client:
        answer: Any = client.append_event("s", "plain event", {"a": 1})
        assert answer["status"] == "queued"
        for call in (
            lambda: client.append_event("s", "x", {"temp:a": "whispered"}),
            lambda: client.set_state("s", {"temp:a": "whispered"}),
            lambda: client.create_session("alice", state={"temp:a": "whispered"}),
        ):
            with pytest.raises(errors.TransportError):
                call()
    files = b"".join(file.read_bytes() for file in tmp_path.glob("outbox.db*"))
    assert b"plain event" in files
    assert b"whispered" not in files
