"""Conversations of OpenAI's Agents SDK, kept by Recollect."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, Session, SQLiteSession, function_tool
from agents.memory import SessionSettings
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import AsyncMemoryClient, MemoryClient
from recollect.integrations.openai_agents import RecollectSession
from recollect.protocol.errors import InvalidArgument, LimitExceeded

QUIET = RunConfig(tracing_disabled=True)


def message(text: str) -> Any:
    return {"role": "user", "content": text}


def fresh_name() -> str:
    return f"talk {uuid.uuid4().hex}"


def said(items: list[Any]) -> list[str]:
    return [item["content"] for item in items]


def test_a_runner_goes_on_where_the_conversation_was(endpoint: str) -> None:
    @function_tool
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"Rain in {city}"

    name = fresh_name()

    async def turn(question: str, *steps: Any) -> tuple[str, int, list[Any]]:
        """One process after another: each has its own model, session and loop."""
        session = RecollectSession(name, endpoint=endpoint)
        assert isinstance(session, Session)
        model = ScriptedModel(list(steps))
        agent = Agent(name="Guide", model=model, tools=[weather])
        result = await Runner.run(agent, question, session=session, run_config=QUIET)
        first = model.first_call
        assert first is not None
        items = await session.get_items()
        await session.aclose()
        return result.final_output, len(first.input), items

    output, seen, items = asyncio.run(
        turn(
            "Do I need an umbrella in Bergen?",
            [function_call("weather", {"city": "Bergen"}, call_id="call-1")],
            [assistant_message("Yes, it rains.")],
        )
    )
    assert (output, seen) == ("Yes, it rains.", 1)
    kinds = [item.get("type", "message") for item in items]
    assert kinds == ["message", "function_call", "function_call_output", "message"]
    output, seen, items = asyncio.run(turn("And now?", [assistant_message("Still.")]))
    assert (output, seen, len(items)) == ("Still.", 5, 6)


def test_a_client_whose_writes_may_wait_is_refused_at_once(endpoint: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncMemoryClient(endpoint, outbox=tmp_path / "outbox") as memory:
            with pytest.raises(InvalidArgument, match="outbox"):
                RecollectSession(fresh_name(), memory=memory)

    asyncio.run(run())


def test_the_sdks_own_session_and_ours_end_with_the_same_items(endpoint: str) -> None:
    """The same run with both: what the runner leaves is the same to the letter."""

    async def run(session: Any) -> list[Any]:
        model = ScriptedModel([[assistant_message("Hello.")], [assistant_message("Again.")]])
        agent = Agent(name="Guide", model=model)
        for question in ("Hi", "Hi again"):
            await Runner.run(agent, question, session=session, run_config=QUIET)
        items: list[Any] = await session.get_items()
        return items

    async def both() -> None:
        session = RecollectSession(fresh_name(), endpoint=endpoint)
        assert await run(session) == await run(SQLiteSession("reference"))
        await session.aclose()

    asyncio.run(both())


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=8))
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
items_given = st.lists(
    st.builds(
        lambda rest, text: {**rest, "content": text},
        st.dictionaries(st.text(), json_values),
        st.text(),
    ),
    max_size=3,
)
actions = st.one_of(
    st.tuples(st.just("add"), items_given),
    st.tuples(st.just("pop"), st.none()),
    st.tuples(st.just("get"), st.sampled_from((None, 0, 1, 2, 5))),
    st.tuples(st.just("clear"), st.none()),
)


@settings(max_examples=25, deadline=None)
@given(history=st.lists(actions, max_size=12))
def test_a_history_has_the_same_answers_as_with_the_sdks_own_session(
    endpoint: str, history: list[tuple[str, Any]]
) -> None:
    async def do(session: Any, action: str, argument: Any) -> Any:
        match action:
            case "add":
                return await session.add_items(argument)
            case "pop":
                return await session.pop_item()
            case "get":
                return await session.get_items(argument)
        return await session.clear_session()

    async def live() -> None:
        ours, theirs = RecollectSession(fresh_name(), endpoint=endpoint), SQLiteSession("reference")
        for action, argument in (*history, ("get", None)):
            assert await do(ours, action, argument) == await do(theirs, action, argument)
        await ours.aclose()

    asyncio.run(live())


def test_items_come_back_exactly_as_they_were(endpoint: str) -> None:
    deep: Any = "bottom"
    for _ in range(40):
        deep = [{"down": deep}]
    items: list[Any] = [
        {"role": "user", "content": "a NUL \x00 in it"},
        {"type": "function_call_output", "call_id": "1", "output": deep},
        {"recollect:json": "not ours", "content": "{}"},
        {"role": "user", "content": [{"type": "input_text", "text": "Ü☃\u2028"}], "n": 1.0},
    ]

    async def talk() -> None:
        session = RecollectSession(fresh_name(), endpoint=endpoint)
        for item in items:
            await session.add_items([item])
        assert await session.get_items() == items
        assert [await session.pop_item() for _ in items] == items[::-1]
        await session.aclose()

    asyncio.run(talk())


def test_those_who_add_at_once_lose_nothing_and_each_stays_together(endpoint: str) -> None:
    name = fresh_name()

    async def add(writer: int) -> None:
        session = RecollectSession(name, endpoint=endpoint)
        for turn in range(5):
            await session.add_items([message(f"{writer}-{turn}-{part}") for part in range(3)])
        await session.aclose()

    async def talk() -> list[str]:
        await asyncio.gather(*(add(writer) for writer in range(8)))
        session = RecollectSession(name, endpoint=endpoint)
        items = await session.get_items()
        await session.aclose()
        return said(items)

    texts = asyncio.run(talk())
    assert len(texts) == len(set(texts)) == 8 * 5 * 3
    for start in range(0, len(texts), 3):
        stem = texts[start][:-1]
        assert texts[start : start + 3] == [f"{stem}{part}" for part in range(3)]
    for writer in range(8):
        mine = [text for text in texts if text.startswith(f"{writer}-")]
        assert mine == sorted(mine)
    with MemoryClient(endpoint) as client:
        owned = client.list_sessions("openai-agents", limit=1000)["sessions"]
    assert len([one for one in owned if one["metadata"]["name"] == name]) == 1


def test_no_two_get_the_same_item_when_they_pop_at_once(endpoint: str) -> None:
    async def talk() -> list[Any]:
        async with AsyncMemoryClient(endpoint) as memory:
            name = fresh_name()
            sessions = [RecollectSession(name, memory=memory) for _ in range(6)]
            await sessions[0].add_items([message(str(n)) for n in range(6)])
            popped = await asyncio.gather(*(session.pop_item() for session in sessions))
            assert await sessions[0].get_items() == []
            assert await sessions[0].pop_item() is None
            return list(popped)

    assert sorted(said(asyncio.run(talk()))) == [str(n) for n in range(6)]


def test_the_last_items_of_a_long_conversation_are_got(endpoint: str) -> None:
    async def talk() -> None:
        name = fresh_name()
        session = RecollectSession(
            name, endpoint=endpoint, session_settings=SessionSettings(limit=2)
        )
        for number in range(130):
            await session.add_items([message(str(number))])
        assert said(await session.get_items()) == ["128", "129"]
        assert said(await session.get_items(120)) == [str(n) for n in range(10, 130)]
        for number in range(129, 19, -1):
            assert await session.pop_item() == message(str(number))
        assert said(await session.get_items(3)) == ["17", "18", "19"]
        everything = await RecollectSession(name, endpoint=endpoint).get_items()
        assert said(everything) == [str(n) for n in range(20)]
        await session.aclose()

    asyncio.run(talk())


def test_what_is_cleared_is_gone_from_the_store_and_the_name_is_free(endpoint: str) -> None:
    async def talk() -> None:
        name = fresh_name()
        one = RecollectSession(name, endpoint=endpoint)
        other = RecollectSession(name, endpoint=endpoint)
        await one.add_items([message("secret plan")])
        assert said(await other.get_items()) == ["secret plan"]
        await one.clear_session()
        await one.clear_session()
        assert await other.get_items() == []
        assert await other.pop_item() is None
        await other.add_items([message("new")])
        assert said(await one.get_items()) == ["new"]
        await one.aclose()
        await other.aclose()

    asyncio.run(talk())


def test_a_conversation_whose_session_was_deleted_by_its_id_begins_anew(endpoint: str) -> None:
    user = fresh_name()

    async def delete_all() -> None:
        async with AsyncMemoryClient(endpoint) as client:
            for session in (await client.list_sessions(user))["sessions"]:
                await client.delete_session(session["id"])

    async def talk() -> None:
        talk = RecollectSession(fresh_name(), endpoint=endpoint, user_id=user)
        await talk.add_items([message("old")])
        await delete_all()
        assert await talk.get_items() == []
        assert await talk.pop_item() is None
        await talk.add_items([message("new")])
        await delete_all()
        await talk.add_items([message("newest")])
        assert said(await talk.get_items()) == ["newest"]
        await talk.aclose()

    asyncio.run(talk())


def test_users_have_conversations_of_their_own(endpoint: str) -> None:
    async def talk() -> None:
        name = fresh_name()
        ann = RecollectSession(name, endpoint=endpoint, user_id="ann")
        bob = RecollectSession(name, endpoint=endpoint, user_id="b:ob")
        await ann.add_items([message("I am Ann")])
        assert await bob.get_items() == []
        await ann.aclose()
        await bob.aclose()

    asyncio.run(talk())


def test_an_item_too_large_for_an_event_names_the_limit(endpoint: str) -> None:
    async def talk() -> None:
        session = RecollectSession(fresh_name(), endpoint=endpoint)
        many = [message(str(n) * 50_000) for n in range(10)]
        await session.add_items(many)
        assert await session.get_items() == many
        with pytest.raises(LimitExceeded, match="event_bytes_max"):
            await session.add_items([message("x" * 300_000)])
        await session.aclose()

    asyncio.run(talk())
