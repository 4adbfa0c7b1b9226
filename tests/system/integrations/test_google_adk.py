"""ADK's services on Recollect, beside those that ADK keeps in memory."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory import BaseMemoryService, InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import AsyncMemoryClient, MemoryClient
from recollect.integrations.google_adk import RecollectMemoryService, RecollectSessionService


def fresh(name: str) -> str:
    return f"{name} {uuid.uuid4().hex}"


def content(text: str, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def event(number: int, text: str = "", delta: dict[str, Any] | None = None, **fields: Any) -> Event:
    return Event(
        id=f"event-{number}",
        invocation_id="inv",
        author="user",
        timestamp=1_800_000_000.0 + number,
        content=content(text) if text else None,
        actions=EventActions(state_delta=delta or {}),
        **fields,
    )


def shown(session: Session | None) -> Any:
    """What can be compared of a session: the time of its creation differs."""
    if session is None:
        return None
    used_at = session.last_update_time if session.events else None
    told = [kept.model_dump(mode="json") for kept in session.events]
    return session.id, session.app_name, session.user_id, session.state, told, used_at


class Echo(BaseLlm):
    """A model that says how many messages it was shown."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=content(f"seen {len(llm_request.contents)}", "model"))


def test_a_runner_goes_on_where_the_session_was(endpoint: str) -> None:
    app = f"app_{uuid.uuid4().hex}"

    async def turn(text: str) -> str:
        """One process after another: each has its own service, runner and loop."""
        async with RecollectSessionService(endpoint) as service:
            agent = LlmAgent(name="guide", model=Echo(model="echo"), output_key="last")
            runner = Runner(
                agent=agent, app_name=app, session_service=service, auto_create_session=True
            )
            answers = [
                step.content.parts[0].text
                async for step in runner.run_async(
                    user_id="ann", session_id="s", new_message=content(text)
                )
                if step.content and step.content.parts
            ]
            session = await service.get_session(app_name=app, user_id="ann", session_id="s")
            assert session is not None
            assert session.state["last"] == answers[-1]
            return str(answers[-1])

    assert asyncio.run(turn("Hello")) == "seen 1"
    assert asyncio.run(turn("Hello again")) == "seen 3"


def test_state_goes_where_its_prefix_says(endpoint: str) -> None:
    async def live() -> None:
        one, other = fresh("one"), fresh("other")
        ann, bob = fresh("ann"), fresh("b:ob")
        async with RecollectSessionService(endpoint) as service:
            first = await service.create_session(
                app_name=one, user_id=ann, session_id="s", state={"own": 1, "app:a": 1, "temp:t": 1}
            )
            delta = {"own": None, "user:u": {"x": [1]}, "app:a": 2, "temp:t": 2, "session:s": 3}
            await service.append_event(first, event(1, "hi", delta))
            assert first.state["temp:t"] == 2, "for the rest of the invocation"
            again = await service.get_session(app_name=one, user_id=ann, session_id="s")
            assert again is not None
            mine = {"own": None, "session:s": 3, "user:u": {"x": [1]}, "app:a": 2}
            assert again.state == mine
            assert again.events[0].actions.state_delta == {
                key: value for key, value in delta.items() if not key.startswith("temp:")
            }
            for app, user, right in (
                (one, ann, {"user:u": {"x": [1]}, "app:a": 2}),
                (one, bob, {"app:a": 2}),
                (other, ann, {}),
            ):
                created = await service.create_session(app_name=app, user_id=user)
                assert created.state == right
            assert await service.get_user_state(app_name=one, user_id=ann) == {"u": {"x": [1]}}
            assert await service.get_user_state(app_name=other, user_id=ann) == {}
            assert await service.get_user_state(app_name=one, user_id=fresh("nobody")) == {}
            # The user's state outlives their sessions.
            for session in (await service.list_sessions(app_name=one, user_id=ann)).sessions:
                await service.delete_session(app_name=one, user_id=ann, session_id=session.id)
            assert await service.get_user_state(app_name=one, user_id=ann) == {"u": {"x": [1]}}

    asyncio.run(live())


keys = st.sampled_from(("k", "", "app:k", "user:k", "temp:k", "session:k", "x:y", "%", "user:"))
values = st.one_of(
    st.none(), st.integers(-9, 9), st.text(max_size=5), st.lists(st.booleans(), max_size=2)
)
deltas = st.dictionaries(keys, values, max_size=4)
users = st.sampled_from(("ann", "bob"))
names = st.sampled_from(("s", "t:1", "%"))
numbers = st.integers(1, 50)
configs = st.one_of(
    st.none(),
    st.builds(
        lambda recent, after: GetSessionConfig(num_recent_events=recent, after_timestamp=after),
        st.one_of(st.none(), st.integers(0, 3)),
        st.one_of(st.none(), numbers.map(lambda number: 1_800_000_000.0 + number)),
    ),
)
actions = st.one_of(
    st.tuples(st.just("create"), users, names, st.one_of(st.none(), deltas)),
    st.tuples(st.just("get"), users, names, configs),
    st.tuples(st.just("append"), users, names, st.tuples(numbers, deltas)),
    st.tuples(st.just("append"), users, names, st.tuples(numbers, deltas)),
    st.tuples(st.just("list"), st.one_of(st.none(), users), names, st.none()),
    st.tuples(st.just("delete"), users, names, st.none()),
    st.tuples(st.just("user state"), users, names, st.none()),
)


async def outcome(service: BaseSessionService, app: str, action: tuple[Any, ...]) -> Any:
    """What an action comes to, so that it can be compared."""
    kind, user, name, argument = action
    match kind:
        case "create":
            try:
                session = await service.create_session(
                    app_name=app, user_id=user, session_id=name, state=argument
                )
            except AlreadyExistsError:
                return "taken"
            return shown(session)
        case "get":
            return shown(
                await service.get_session(
                    app_name=app, user_id=user, session_id=name, config=argument
                )
            )
        case "append":
            number, delta = argument
            held = await service.get_session(app_name=app, user_id=user, session_id=name)
            if held is None:
                return None
            await service.append_event(held, event(number, f"said {number}", dict(delta)))
            return shown(held)
        case "list":
            found = await service.list_sessions(app_name=app, user_id=user)
            return sorted(
                (kept.user_id, kept.id, repr(sorted(kept.state.items())), kept.events)
                for kept in found.sessions
            )
        case "delete":
            return await service.delete_session(app_name=app, user_id=user, session_id=name)
    return await service.get_user_state(app_name=app, user_id=user)


@settings(max_examples=25, deadline=None)
@given(history=st.lists(actions, min_size=3, max_size=14))
def test_a_history_has_the_same_answers_as_in_memory(
    endpoint: str, history: list[tuple[Any, ...]]
) -> None:
    last = [
        (kind, user, name, None)
        for kind in ("get", "list", "user state")
        for user in ("ann", "bob")
        for name in ("s", "t:1", "%")
    ]

    async def live() -> None:
        app, theirs = fresh("app"), InMemorySessionService()
        async with RecollectSessionService(endpoint) as ours:
            for action in (*history, *last):
                assert await outcome(ours, app, action) == await outcome(theirs, app, action)

    asyncio.run(live())


def test_sessions_are_listed_with_the_one_used_last_at_the_end(endpoint: str) -> None:
    async def live() -> None:
        app = fresh("app")
        async with RecollectSessionService(endpoint) as service:
            for number, name in ((3, "c"), (1, "a"), (2, "b")):
                made = await service.create_session(app_name=app, user_id="ann", session_id=name)
                await service.append_event(made, event(number, "hi"))
            found = (await service.list_sessions(app_name=app)).sessions
            assert [session.id for session in found] == ["a", "b", "c"]

    asyncio.run(live())


def test_an_event_comes_back_exactly_as_it_was(endpoint: str) -> None:
    async def live() -> None:
        rich = Event(
            author="model",
            content=types.Content(
                role="model",
                parts=[
                    types.Part(text="a NUL \x00 in it", thought=True),
                    types.Part(inline_data=types.Blob(data=b"\x00\xff", mime_type="image/png")),
                    types.Part(function_call=types.FunctionCall(id="1", name="f", args={"x": [1]})),
                ],
            ),
            long_running_tool_ids={"1"},
            branch="a.b",
            actions=EventActions(transfer_to_agent="other", artifact_delta={"file": 1}),
        )
        async with RecollectSessionService(endpoint) as service:
            session = await service.create_session(app_name=fresh("app"), user_id="ann")
            await service.append_event(session, rich)
            again = await service.get_session(
                app_name=session.app_name, user_id="ann", session_id=session.id
            )
            assert again is not None and again.events == [rich] == session.events

    asyncio.run(live())


def test_an_event_that_is_delivered_again_is_there_once(endpoint: str) -> None:
    async def live() -> None:
        app = fresh("app")
        async with RecollectSessionService(endpoint) as service:
            session = await service.create_session(app_name=app, user_id="ann", session_id="s")
            for copy in (session, session, session.model_copy(deep=True)):
                await service.append_event(copy, event(1, "hi", {"k": 1}))
            await service.append_event(session, event(1, "another with the same id"))
            partial = event(2, "not yet whole", partial=True)
            assert await service.append_event(session, partial) is partial
            again = await service.get_session(app_name=app, user_id="ann", session_id="s")
            assert again is not None
            assert len(again.events) == len(session.events) == 2

    asyncio.run(live())


def test_the_name_of_a_session_that_was_deleted_by_its_id_can_be_taken_again(endpoint: str) -> None:
    async def live() -> None:
        app = fresh("app")
        named: Any = {"app_name": app, "user_id": "ann", "session_id": "s"}
        async with RecollectSessionService(endpoint) as service:
            await service.create_session(**named, state={"mood": "old"})
            async with AsyncMemoryClient(endpoint) as client:
                [session] = (await client.list_sessions("ann", app=app))["sessions"]
                await client.delete_session(session["id"])
            assert await service.get_session(**named) is None
            made = await service.create_session(**named, state={"mood": "new"})
            assert made.state == {"mood": "new"}
            with pytest.raises(AlreadyExistsError):
                await service.create_session(**named)
            again = await service.get_session(**named)
            assert again is not None and again.state == {"mood": "new"}

    asyncio.run(live())


def test_those_who_append_at_once_lose_nothing(endpoint: str) -> None:
    async def live() -> None:
        app = fresh("app")
        async with RecollectSessionService(endpoint) as service:
            session = await service.create_session(app_name=app, user_id="ann", session_id="s")
            copies = [session.model_copy(deep=True) for _ in range(30)]
            await asyncio.gather(
                *(
                    service.append_event(copy, event(number, "hi", {f"k{number}": number}))
                    for number, copy in enumerate(copies)
                )
            )
            again = await service.get_session(app_name=app, user_id="ann", session_id="s")
            assert again is not None
            assert {kept.id for kept in again.events} == {f"event-{n}" for n in range(30)}
            assert again.state == {f"k{number}": number for number in range(30)}
            # Of those who take a name at once, one gets it.
            made = await asyncio.gather(
                *(
                    service.create_session(app_name=app, user_id="ann", session_id="mine")
                    for _ in range(8)
                ),
                return_exceptions=True,
            )
            assert sum(isinstance(one, Session) for one in made) == 1
            assert sum(isinstance(one, AlreadyExistsError) for one in made) == 7
            assert len((await service.list_sessions(app_name=app)).sessions) == 2

    asyncio.run(live())


def test_a_long_session_is_read_whole_or_from_its_end(endpoint: str) -> None:
    async def live() -> None:
        app = fresh("app")
        async with RecollectSessionService(endpoint) as service:
            session = await service.create_session(app_name=app, user_id="ann", session_id="s")
            for number in range(230):
                await service.append_event(session, event(number, "hi"))

            async def ids(**config: Any) -> list[str]:
                found = await service.get_session(
                    app_name=app, user_id="ann", session_id="s", config=GetSessionConfig(**config)
                )
                assert found is not None and found.last_update_time == 1_800_000_229.0
                return [kept.id for kept in found.events]

            everything = [f"event-{number}" for number in range(230)]
            assert await ids() == everything
            assert await ids(num_recent_events=150) == everything[-150:]
            assert await ids(num_recent_events=0) == []
            assert await ids(after_timestamp=1_800_000_005.0) == everything[5:]

    asyncio.run(live())


def test_what_is_not_there_is_said_as_adk_says_it(endpoint: str) -> None:
    async def live() -> None:
        app = fresh("app")
        async with RecollectSessionService(endpoint) as service:
            session = await service.create_session(app_name=app, user_id="ann", session_id=" s ")
            assert session.id == "s"
            await service.delete_session(app_name=app, user_id="ann", session_id="s")
            await service.delete_session(app_name=app, user_id="ann", session_id="s")
            assert await service.get_session(app_name=app, user_id="ann", session_id="s") is None
            with pytest.raises(SessionNotFoundError):
                await service.append_event(session, event(1, "hi"))

    asyncio.run(live())


TALK = [
    event(1, "My favourite tea is sencha"),
    event(2, "The train to Bergen leaves at seven"),
    event(3),
    event(4, "Ann plays football on Sundays"),
]


def test_what_was_said_is_remembered_and_found_as_in_memory(endpoint: str) -> None:
    async def found(service: BaseMemoryService, app: str, user: str, query: str) -> list[Any]:
        answer = await service.search_memory(app_name=app, user_id=user, query=query)
        return [entry.model_dump(mode="json") for entry in answer.memories]

    async def live() -> None:
        app, theirs = fresh("app"), InMemoryMemoryService()
        session = Session(id="s", app_name=app, user_id="ann", events=TALK)
        async with RecollectMemoryService(endpoint) as ours:
            for service in (ours, theirs):
                await service.add_session_to_memory(session)
                await service.add_session_to_memory(session)
            for query in ("sencha tea", "train to Bergen", "football"):
                right = await found(theirs, app, "ann", query)
                assert (await found(ours, app, "ann", query))[0] == right[0]
            # By meaning there is always something that is nearest, but only of the user's own.
            assert len(await found(ours, app, "ann", "sencha tea")) == 3
            for service in (ours, theirs):
                assert await found(service, app, "bob", "sencha") == []
                assert await found(service, fresh("app"), "ann", "sencha") == []
                assert await found(service, app, "ann", " ") == []

    asyncio.run(live())


def test_memories_follow_their_session_and_what_is_deleted_stays_deleted(endpoint: str) -> None:
    async def live() -> None:
        app = fresh("app")
        async with RecollectMemoryService(endpoint) as service:

            async def ids() -> set[str | None]:
                answer = await service.search_memory(app_name=app, user_id="ann", query="the")
                return {entry.id for entry in answer.memories}

            session = Session(id="s", app_name=app, user_id="ann", events=TALK)
            await service.add_session_to_memory(session)
            await service.add_events_to_memory(
                app_name=app, user_id="ann", events=[event(5, "The end"), TALK[0]], session_id="t"
            )
            assert await ids() == {"event-1", "event-2", "event-4", "event-5"}
            await service.delete_memory(app_name=app, user_id="ann", memory_id="event-2")
            await service.delete_memory(app_name=app, user_id="ann", memory_id="event-2")
            await service.delete_memory(app_name=app, user_id="ann", memory_id="never was")
            await service.delete_memory(app_name=app, user_id="ann")
            await service.add_session_to_memory(session)
            await service.add_events_to_memory(app_name=app, user_id="ann", events=TALK)
            assert await ids() == {"event-1", "event-4", "event-5"}
            # A session that was taken back by some events no longer says them.
            session.events = TALK[:1]
            await service.add_session_to_memory(session)
            assert await ids() == {"event-1", "event-5"}

    asyncio.run(live())


def test_entries_are_remembered_as_they_are_and_other_agents_find_them(endpoint: str) -> None:
    async def live() -> None:
        app, user = "guide", f"ann{uuid.uuid4().hex}"
        picture = types.Part(inline_data=types.Blob(data=b"x" * 400_000, mime_type="image/png"))
        large = types.Content(role="user", parts=[types.Part(text="A map of Oslo"), picture])
        async with RecollectMemoryService(endpoint) as service:
            entries = [
                MemoryEntry(
                    content=content("Ann likes sencha"), author="a", custom_metadata={"n": {"x": 1}}
                ),
                MemoryEntry(id="map", content=large),
                MemoryEntry(id="nothing", content=types.Content(role="user", parts=[])),
            ]
            await service.add_memory(
                app_name=app, user_id=user, memories=entries, custom_metadata={"from": "test"}
            )
            answer = await service.search_memory(app_name=app, user_id=user, query="sencha")
            first = answer.memories[0]
            assert first.content == content("Ann likes sencha")
            assert (first.author, first.custom_metadata) == ("a", {"n": {"x": 1}, "from": "test"})
            answer = await service.search_memory(app_name=app, user_id=user, query="map of Oslo")
            assert answer.memories[0].id == "map"
            assert len(answer.memories) == 2
        with MemoryClient(endpoint) as client:
            found = client.recall("sencha", 1, namespace=f"user:{user}")["results"]
            assert found[0]["content"] == "Ann likes sencha"

    asyncio.run(live())
