"""Sessions: their events in order, their state by scope, their statuses and their versions."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import apsw
import pytest

from recollect.config.settings import EmbeddingSettings, SessionsSettings, Settings
from recollect.orchestrator.sessions.statuses import LEADS_TO
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol import errors
from recollect.protocol.operations import (
    AddMemory,
    AppendEvent,
    ArchiveSession,
    CreateSession,
    DeleteSession,
    GetMemory,
    GetSession,
    GetState,
    ListActiveSessions,
    ListEvents,
    ListSessions,
    Restore,
    SetState,
    TerminateSession,
    UpdateMemory,
    UpdateStatus,
)
from tests.harness import postgres
from tests.harness.somebody import somebody
from tests.harness.worlds import World

STATUSES = tuple(LEADS_TO)
WAY_TO = {
    "created": (),
    "active": ("active",),
    "paused": ("active", "paused"),
    "terminated": ("terminated",),
    "archived": ("terminated", "archived"),
}


def begin(world: World, user_id: str = "alice", **options: Any) -> str:
    session_id: str = world(CreateSession(user_id, **options))["session_id"]
    return session_id


def state(world: World, session_id: str, *who: Any) -> dict[str, Any]:
    found: dict[str, Any] = world(GetState(session_id), *who)["state"]
    return found


def in_status(world: World, status: str) -> str:
    session_id = begin(world)
    for step in WAY_TO[status]:
        world(UpdateStatus(session_id, step))  # type: ignore[arg-type]
    return session_id


def read(world: World, function: Any) -> Any:
    async def reading() -> Any:
        return await world.storage.read(function)

    return world.run(reading())


def write(world: World, function: Any) -> Any:
    async def writing() -> Any:
        return await world.storage.write(function)

    return world.run(writing())


def test_a_session_comes_back_as_it_was_begun(world: World) -> None:
    created = world(
        CreateSession("alice", "research", {"channel": "cli"}, app="bench", state={"step": 1}),
        agent="planner",
    )
    assert (created["session_status"], created["version"]) == ("created", 1)
    whole = world(GetSession(created["session_id"]))
    session = whole["session"]
    assert (session["user_id"], session["app"], session["session_type"]) == (
        "alice",
        "bench",
        "research",
    )
    assert session["metadata"] == {"channel": "cli"}
    assert (session["events"], session["created_by"]) == (0, "planner")
    assert (whole["state"], whole["events"]) == ({"step": 1}, [])
    assert world(GetSession(created["session_id"], min_seq=created["seq"]))["status"] == "success"


def test_events_are_kept_in_order_without_a_gap(world: World) -> None:
    session_id = begin(world)
    for n in range(1, 8):
        answer = world(AppendEvent(session_id, {"n": n}), agent="planner")
        assert (answer["position"], answer["version"]) == (n, n + 1)
    session = world(GetSession(session_id, events=3))
    assert session["session"]["session_status"] == "active"
    assert [e["position"] for e in session["events"]] == [5, 6, 7]
    assert session["events"][0]["author"] == "planner"
    assert world(GetSession(session_id, events=0))["events"] == []
    assert len(world(GetSession(session_id, events=500))["events"]) == 7

    seen: list[Any] = []
    cursor = None
    while True:
        page = world(ListEvents(session_id, 3, cursor=cursor))
        seen += [(e["position"], e["event"]["n"]) for e in page["events"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == [(n, n) for n in range(1, 8)]
    behind = world(ListEvents(session_id, after=5))
    assert [e["position"] for e in behind["events"]] == [6, 7]
    assert world(ListEvents(session_id, after=(1 << 63) - 1))["events"] == []


@pytest.mark.parametrize("event", [None, True, 0, 1.5, "text", [], {}, {"a": [None, {"b": "ü"}]}])
def test_an_event_is_any_json(world: World, event: Any) -> None:
    session_id = begin(world)
    world(AppendEvent(session_id, event))
    [kept] = world(ListEvents(session_id))["events"]
    assert kept["event"] == event


def test_an_event_that_is_refused_leaves_no_gap_and_no_trace(world: World) -> None:
    session_id = begin(world)
    world(AppendEvent(session_id, 1, {"a": 1}))
    for operation, error in (
        (AppendEvent(session_id, 2, {"a": 2}, expected_version=1), errors.VersionConflict),
        (AppendEvent(session_id, 2, {"a": 2, "session:a": 3}), errors.InvalidArgument),
        (AppendEvent(session_id, "x" * 300_000, {"a": 2}), errors.LimitExceeded),
        (AppendEvent(session_id, 2, {"a": "x" * 70_000}), errors.LimitExceeded),
        (AppendEvent(session_id, 2, {f"k{n}": n for n in range(1_000)}), errors.LimitExceeded),
    ):
        with pytest.raises(error):
            world(operation)
    whole = world(GetSession(session_id))
    assert (whole["session"]["version"], whole["state"]) == (2, {"a": 1})
    assert world(AppendEvent(session_id, 2))["position"] == 2


@pytest.mark.parametrize(("before", "after"), list(itertools.product(STATUSES, STATUSES)))
def test_only_the_sensible_steps_are_taken(world: World, before: str, after: str) -> None:
    session_id = in_status(world, before)
    version = world(GetSession(session_id))["session"]["version"]
    moving = UpdateStatus(session_id, after)  # type: ignore[arg-type]
    if before == after or after in LEADS_TO[before]:
        answer = world(moving)
        assert answer["session_status"] == after
        assert answer["version"] == version + (before != after)
        return
    with pytest.raises(errors.TransitionRefused) as caught:
        world(moving)
    assert caught.value.details["possible"] == list(LEADS_TO[before])
    session = world(GetSession(session_id))["session"]
    assert (session["session_status"], session["version"]) == (before, version)


def test_the_steps_are_these(world: World) -> None:
    assert LEADS_TO == {
        "created": ("active", "terminated"),
        "active": ("paused", "terminated"),
        "paused": ("active", "terminated"),
        "terminated": ("archived",),
        "archived": (),
    }


@pytest.mark.parametrize("status", STATUSES)
def test_what_a_session_takes_in_each_status(world: World, status: str) -> None:
    session_id = in_status(world, status)
    if status in ("created", "active"):
        assert world(AppendEvent(session_id, 1))["position"] == 1
        assert world(GetSession(session_id))["session"]["session_status"] == "active"
    else:
        with pytest.raises(errors.TransitionRefused, match="takes no events"):
            world(AppendEvent(session_id, 1))
    if status in ("created", "active", "paused"):
        world(SetState(session_id, {"a": 1}))
        assert state(world, session_id) == {"a": 1}
    else:
        with pytest.raises(errors.TransitionRefused, match="only be read"):
            world(SetState(session_id, {"a": 1}))
        assert state(world, session_id) == {}


def test_terminate_and_archive_are_steps_of_their_own(world: World) -> None:
    session_id = begin(world)
    with pytest.raises(errors.TransitionRefused):
        world(ArchiveSession(session_id))
    assert world(TerminateSession(session_id, expected_version=1))["version"] == 2
    assert world(TerminateSession(session_id))["version"] == 2
    with pytest.raises(errors.VersionConflict):
        world(ArchiveSession(session_id, expected_version=1))
    assert world(ArchiveSession(session_id))["session_status"] == "archived"
    assert world(GetSession(session_id))["session"]["version"] == 3


def test_an_unknown_status_is_refused(world: World) -> None:
    session_id = begin(world)
    with pytest.raises(errors.InvalidArgument):
        world(UpdateStatus(session_id, "asleep"))  # type: ignore[arg-type]


def test_state_is_merged_by_delta(world: World) -> None:
    session_id = begin(world, state={"a": 1, "session:b": [1], "c:d": True})
    world(SetState(session_id, {"b": {"x": None}, "e": 0}))
    world(AppendEvent(session_id, "step", {"a": None, "session:e": 1, "gone": None}))
    assert state(world, session_id) == {"b": {"x": None}, "c:d": True, "e": 1}
    before = world(GetState(session_id))["version"]
    assert world(SetState(session_id, {}))["version"] == before
    with pytest.raises(errors.VersionConflict):
        world(SetState(session_id, {}, expected_version=before + 1))


@pytest.mark.parametrize("key", ["", "temp:", "user:", "session:", "session:user:a", "a\x00"])
def test_bad_names_of_state_are_refused(world: World, key: str) -> None:
    session_id = begin(world)
    with pytest.raises(errors.InvalidArgument):
        world(SetState(session_id, {key: 1}))
    assert world(GetState(session_id))["version"] == 1


def test_state_is_shared_by_user_and_by_app(world: World) -> None:
    mine = begin(world, "alice", app="chess")
    other_app = begin(world, "alice", app="go")
    other_user = begin(world, "bob", app="chess")
    stranger = begin(world, "bob", app="go")
    delta = {"move": "e4", "session:clock": 9, "user:level": 3, "app:season": "autumn"}
    world(AppendEvent(mine, "moved", {**delta, "temp:thought": "d5?"}))
    assert state(world, mine) == {
        "move": "e4",
        "clock": 9,
        "user:level": 3,
        "app:season": "autumn",
        "temp:thought": "d5?",
    }
    assert state(world, other_app) == {"user:level": 3}
    assert state(world, other_user) == {"app:season": "autumn"}
    assert state(world, stranger) == {}
    world(SetState(other_app, {"user:level": None, "temp:thought": 1}))
    assert "user:level" not in state(world, mine)
    assert state(world, mine)["temp:thought"] == "d5?"
    world(TerminateSession(mine))
    world(DeleteSession(mine))
    assert state(world, other_user) == {"app:season": "autumn"}


def test_temporary_state_goes_with_the_end_of_its_session(world: World) -> None:
    for ending in ("terminate", "delete", "restart"):
        session_id = begin(world, state={"temp:a": 1, "kept": 2})
        world(SetState(session_id, {"temp:b": 2}))
        world(AppendEvent(session_id, "x", {"temp:a": None, "temp:c": [3]}))
        assert state(world, session_id) == {"kept": 2, "temp:b": 2, "temp:c": [3]}
        if ending == "terminate":
            world(TerminateSession(session_id))
            assert state(world, session_id) == {"kept": 2}
        elif ending == "delete":
            world(DeleteSession(session_id))
        else:
            world.restart()
            assert state(world, session_id) == {"kept": 2}


def files_with(world: World, marker: str) -> list[str]:
    """The files of the store that hold a text."""
    folders = [Path(world.settings.storage.data)]
    if not world.storage.inline_reads:
        [(folder,)] = read(world, lambda session: session.execute("SHOW data_directory"))
        folders.append(Path(folder))
        postgres.checkpoint()
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return [str(file) for file in files if marker.encode() in bytes_of(file)]


def bytes_of(file: Path) -> bytes:
    """What a file holds; nothing if it is gone, as files of a running server may be."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def test_temporary_state_is_never_on_disk(world: World) -> None:
    secret, plain = f"whisper{id(world)}", f"spoken{id(world)}"
    session_id = begin(world, state={"temp:a": secret, "a": plain})
    world(AppendEvent(session_id, "x", {"temp:b": [secret], f"temp:{secret}": 1}), key="once")
    world(AppendEvent(session_id, "x", {"temp:b": [secret], f"temp:{secret}": 1}), key="once")
    world(SetState(session_id, {"temp:c": secret}), key="twice")
    with pytest.raises(errors.VersionConflict):
        world(SetState(session_id, {"temp:d": secret}, expected_version=1))
    assert state(world, session_id)["temp:c"] == secret
    world.run(world.orchestrator.stop())
    world.open()
    assert files_with(world, plain)
    assert files_with(world, secret) == []
    assert state(world, session_id) == {"a": plain}


def test_a_repeated_request_is_answered_alike_and_done_once(world: World) -> None:
    created = world(CreateSession("alice", state={"a": 1}), key="k1")
    assert world(CreateSession("alice", state={"a": 1}), key="k1") == created
    session_id = created["session_id"]
    first = world(AppendEvent(session_id, "x", {"n": 1}), key="k2")
    world(SetState(session_id, {"n": 2, "temp:n": 2}))
    assert world(AppendEvent(session_id, "x", {"n": 1}), key="k2") == first
    assert state(world, session_id) == {"a": 1, "n": 2, "temp:n": 2}
    assert world(GetSession(session_id))["session"]["events"] == 1


def test_a_version_guards_against_lost_updates(world: World) -> None:
    session_id = begin(world, state={"count": 0})
    for n in range(3):
        seen = world(GetState(session_id))
        world(
            SetState(
                session_id, {"count": seen["state"]["count"] + 1}, expected_version=seen["version"]
            )
        )
        for late in (
            SetState(session_id, {"count": 99}, expected_version=seen["version"]),
            AppendEvent(session_id, "x", {"count": 99}, expected_version=seen["version"]),
            UpdateStatus(session_id, "active", expected_version=seen["version"]),
            TerminateSession(session_id, expected_version=seen["version"]),
            DeleteSession(session_id, expected_version=seen["version"]),
        ):
            with pytest.raises(errors.VersionConflict) as caught:
                world(late)
            assert caught.value.details["actual_version"] == seen["version"] + 1
        assert state(world, session_id) == {"count": n + 1}


def test_a_deleted_session_is_gone_and_its_memories_stay_unlinked(world: World) -> None:
    session_id, other = begin(world), begin(world)
    memory_id = world(AddMemory("from a session"), session=session_id)["memory_id"]
    beside = world(AddMemory("from another"), session=other)["memory_id"]
    world(AppendEvent(session_id, "x", {"a": 1, "user:b": 2}))
    assert world(GetMemory(memory_id))["memory"]["session_id"] == session_id
    world(UpdateMemory(memory_id, {"content": "changed"}))
    deleted = world(DeleteSession(session_id))
    assert (deleted["events"], deleted["unlinked"]) == (1, 1)
    memory = world(GetMemory(memory_id))["memory"]
    assert (memory["content"], memory["session_id"]) == ("changed", None)
    world(Restore(memory_id, 1))
    memory = world(GetMemory(memory_id))["memory"]
    assert (memory["content"], memory["session_id"]) == ("from a session", None)
    assert world(GetMemory(beside))["memory"]["session_id"] == other
    for operation in (
        GetSession(session_id),
        GetState(session_id),
        ListEvents(session_id),
        AppendEvent(session_id, 1),
        SetState(session_id, {"a": 1}),
        UpdateStatus(session_id, "active"),
        TerminateSession(session_id),
        ArchiveSession(session_id),
        DeleteSession(session_id),
    ):
        with pytest.raises(errors.NotFound, match="no session"):
            world(operation)
    left = read(
        world,
        lambda session: [
            session.execute("SELECT * FROM session_events"),
            session.execute("SELECT scope, key FROM session_state"),
        ],
    )
    assert left == [[], [("user", "b")]]
    assert state(world, other) == {"user:b": 2}


def test_sessions_are_listed_the_newest_first_page_by_page(world: World) -> None:
    ids = [
        begin(world, user, app=app, session_type=kind)
        for user in ("alice", "bob")
        for app in ("chess", "go")
        for kind in ("play", "watch")
    ]
    newest = ids[::-1]

    def listed(operation: type[Any], **options: Any) -> list[str]:
        found: list[str] = []
        cursor = None
        while True:
            page = world(operation(limit=3, cursor=cursor, **options))
            assert page["count"] == len(page["sessions"]) <= 3
            found += [session["id"] for session in page["sessions"]]
            cursor = page["cursor"]
            if cursor is None:
                return found

    assert listed(ListSessions) == newest
    assert listed(ListSessions, user_id="alice") == newest[4:]
    assert listed(ListSessions, app="go", session_type="watch") == [newest[0], newest[4]]
    assert listed(ListSessions, user_id="carol") == []
    world(UpdateStatus(ids[0], "active"))
    world(UpdateStatus(ids[1], "active"))
    world(UpdateStatus(ids[1], "paused"))
    world(TerminateSession(ids[2]))
    world(TerminateSession(ids[3]))
    world(ArchiveSession(ids[3]))
    assert listed(ListSessions, status="terminated") == [ids[2]]
    assert listed(ListSessions, status="created") == newest[:4]
    assert listed(ListActiveSessions) == [*newest[:4], ids[1], ids[0]]
    assert listed(ListActiveSessions, user_id="alice") == [ids[1], ids[0]]
    assert listed(ListSessions) == newest


def test_a_session_belongs_to_the_namespace_of_its_user(world: World) -> None:
    alice = somebody("alice", write=("user:alice",))
    bob = somebody("bob", write=("user:bob",))
    reader = somebody("reader", read=("user:alice",))
    mine = world(CreateSession("alice", state={"a": 1}), alice)["session_id"]
    world(AddMemory("mine", namespace="user:alice"), alice, session=mine)
    world(AddMemory("a guest's", namespace="user:bob"), bob, session=mine)
    for who in (alice, bob):
        with pytest.raises(errors.Forbidden):
            world(CreateSession("carol"), who)
    unknown = "0199f2ac-0000-7000-8000-000000000000"
    for session_id in (mine, unknown):
        for operation in (
            GetSession(session_id),
            GetState(session_id),
            ListEvents(session_id),
            AppendEvent(session_id, 1),
            SetState(session_id, {"a": 2}),
            UpdateStatus(session_id, "active", expected_version=9),
            TerminateSession(session_id),
            ArchiveSession(session_id),
            DeleteSession(session_id),
        ):
            with pytest.raises(errors.NotFound) as caught:
                world(operation, bob)
            assert str(caught.value) == f"There is no session {session_id!r}."
    assert world(ListSessions(), bob)["sessions"] == []
    assert world(ListSessions("alice"), bob)["sessions"] == []
    assert world(ListActiveSessions("alice"), bob)["sessions"] == []
    assert [s["id"] for s in world(ListActiveSessions(), reader)["sessions"]] == [mine]
    assert [s["id"] for s in world(ListSessions("alice"), reader)["sessions"]] == [mine]
    assert state(world, mine, reader) == {"a": 1}
    for operation in (AppendEvent(mine, 1), SetState(mine, {"a": 2}), DeleteSession(mine)):
        with pytest.raises(errors.Forbidden, match="no write access"):
            world(operation, reader)
    assert world(GetSession(mine))["session"]["version"] == 1
    # A memory that alice may not see is unlinked as well, but she is not told of it.
    assert world(DeleteSession(mine), alice)["unlinked"] == 1
    assert read(
        world, lambda session: session.execute("SELECT DISTINCT session_id FROM memories")
    ) == [(None,)]


def test_how_much_temporary_state_a_session_has_is_told_to_nobody_else(
    storage_url: str, tmp_path: Path
) -> None:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), sessions=SessionsSettings(state_keys_max=3)
    )
    world = World(storage_url, tmp_path / "data", settings)
    try:
        alice = somebody("alice", write=("user:alice",))
        bob = somebody("bob", write=("user:bob",))
        mine = world(CreateSession("alice"), alice)["session_id"]
        world(SetState(mine, {"temp:a": 1, "temp:b": 1}), alice)
        more = {"temp:c": 1, "temp:d": 1}
        for operation in (SetState(mine, more), AppendEvent(mine, 1, more)):
            with pytest.raises(errors.LimitExceeded, match="has 4 keys"):
                world(operation, alice)
            with pytest.raises(errors.NotFound) as caught:
                world(operation, bob)
            assert str(caught.value) == f"There is no session {mine!r}."
    finally:
        world.close()


def test_the_state_of_an_app_needs_access_to_the_app(world: World) -> None:
    alice = somebody("alice", write=("user:alice",))
    player = somebody("player", write=("user:alice",), read=("app:chess",))
    owner = somebody("owner", write=("user", "app:chess"))
    session_id = world(CreateSession("alice", app="chess"), alice)["session_id"]
    world(SetState(session_id, {"app:season": 1}), owner)
    for who in (alice, player):
        with pytest.raises(errors.Forbidden, match="app:chess"):
            world(AppendEvent(session_id, 1, {"app:season": 2, "user:a": 1}), who)
        with pytest.raises(errors.Forbidden, match="app:chess"):
            world(CreateSession("alice", app="chess", state={"app:season": 2}), who)
    assert state(world, session_id, alice) == {}
    assert state(world, session_id, player) == {"app:season": 1}
    assert world(GetSession(session_id), player)["session"]["events"] == 0


@pytest.mark.parametrize("user_id", ["a b", "a:b", "100%", "ünï", "a%20b", "tab\tline\n"])
def test_a_user_may_have_any_name(world: World, user_id: str) -> None:
    session_id = begin(world, user_id, state={"user:x": user_id})
    assert [s["id"] for s in world(ListSessions(user_id))["sessions"]] == [session_id]
    other = begin(world, "a", state={"user:x": "other"})
    assert state(world, session_id) == {"user:x": user_id}
    everybody = somebody("all", read=("user",))
    assert {s["id"] for s in world(ListSessions(), everybody)["sessions"]} == {session_id, other}
    [(namespace,)] = read(
        world,
        lambda session: session.execute(
            "SELECT namespace FROM sessions WHERE id = ?", (session_id,)
        ),
    )
    own = somebody("own", read=(namespace,))
    assert [s["id"] for s in world(ListSessions(), own)["sessions"]] == [session_id]
    assert world(GetSession(session_id), own)["session"]["user_id"] == user_id


def test_what_is_too_large_is_refused_by_the_name_of_its_limit(
    storage_url: str, tmp_path: Path
) -> None:
    sessions = SessionsSettings(
        event_bytes_max=100, state_keys_max=3, state_value_bytes_max=50, state_bytes_max=80
    )
    settings = Settings(embedding=EmbeddingSettings(provider="hashed"), sessions=sessions)
    world = World(storage_url, tmp_path / "data", settings)
    try:
        session_id = begin(world, state={"a": 1, "b": 1})
        world(SetState(session_id, {"temp:a": 1, "temp:b": 1}))
        cases: list[tuple[Any, str]] = [
            (AppendEvent(session_id, "x" * 100), "sessions.event_bytes_max"),
            (SetState(session_id, {"c": 1, "d": 1}), "sessions.state_keys_max"),
            (SetState(session_id, {"temp:c": 1, "temp:d": 1}), "sessions.state_keys_max"),
            (SetState(session_id, {f"x{n}": None for n in range(4)}), "sessions.state_keys_max"),
            (SetState(session_id, {"c": "ü" * 25}), "sessions.state_value_bytes_max"),
            (SetState(session_id, {"a": "x" * 45, "b": "ü" * 20}), "sessions.state_bytes_max"),
            (
                SetState(session_id, {"user:a": "x" * 45, "user:b": "x" * 45}),
                "sessions.state_bytes_max",
            ),
            (
                SetState(session_id, {"temp:a": "x" * 45, "temp:b": "x" * 45}),
                "sessions.state_bytes_max",
            ),
            (SetState(session_id, {"k" * 513: 1}), "limits.key_chars_max"),
            (CreateSession("alice", state={c: 1 for c in "abcd"}), "sessions.state_keys_max"),
            (CreateSession("a" * 252), "limits.namespace_chars_max"),
            (CreateSession(":" * 100), "limits.namespace_chars_max"),
            (GetSession(session_id, events=1_001), "limits.page_items_max"),
            (ListEvents(session_id, 1_001), "limits.page_items_max"),
            (ListSessions(limit=1_001), "limits.page_items_max"),
        ]
        for operation, limit in cases:
            with pytest.raises(errors.LimitExceeded) as caught:
                world(operation)
            assert caught.value.details["limit"] == limit
        assert state(world, session_id) == {"a": 1, "b": 1, "temp:a": 1, "temp:b": 1}
        world(SetState(session_id, {"a": None, "c": 1, "d": 1}))
        assert world(GetSession(session_id))["session"]["version"] == 3
    finally:
        world.close()


def test_of_too_much_temporary_state_the_one_used_longest_ago_goes(
    storage_url: str, tmp_path: Path
) -> None:
    sessions = SessionsSettings(temp_sessions_max=3, temp_bytes_max=100)
    settings = Settings(embedding=EmbeddingSettings(provider="hashed"), sessions=sessions)
    world = World(storage_url, tmp_path / "data", settings)
    try:
        ids = [begin(world, state={"temp:a": n}) for n in range(3)]
        assert state(world, ids[0]) == {"temp:a": 0}
        fourth = begin(world, state={"temp:a": 3})
        assert [state(world, each) for each in ids] == [{"temp:a": 0}, {}, {"temp:a": 2}]
        # With 99 bytes there is room for one more, and that was used last.
        world(SetState(fourth, {"temp:a": "x" * 97}))
        assert [state(world, each) for each in ids] == [{}, {}, {"temp:a": 2}]
        assert state(world, fourth) == {"temp:a": "x" * 97}
    finally:
        world.close()


def with_events(world: World, count: int) -> str:
    """A session with many events, put there at once."""
    session_id = begin(world, state={"a": 0, "user:b": 0})
    world(AppendEvent(session_id, "first", {"a": 1}))

    def fill(transaction: WriteTransaction) -> None:
        transaction.executemany(
            "INSERT INTO session_events (session_id, position, at_us, author, event) "
            "VALUES (?, ?, 0, NULL, '1')",
            [(session_id, n) for n in range(2, count + 1)],
        )
        transaction.execute("UPDATE sessions SET events = ? WHERE id = ?", (count, session_id))

    write(world, fill)
    return session_id


def test_the_ten_thousandth_event_is_appended_by_the_same_statements_as_the_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = with_events(world, 1), with_events(world, 9_999)
    said: list[str] = []
    writer: Any = world.storage._writer_session  # type: ignore[attr-defined]
    execute, executemany = writer.execute, writer.executemany

    def heard(sql: str, params: Any = ()) -> Any:
        said.append(sql)
        return execute(sql, params)

    def heard_many(sql: str, rows: Any) -> None:
        rows = list(rows)
        said.append(f"{len(rows)} times {sql}")
        executemany(sql, rows)

    monkeypatch.setattr(writer, "execute", heard)
    monkeypatch.setattr(writer, "executemany", heard_many)
    heard_of: dict[int, list[str]] = {}
    for session_id, position in ((few, 2), (many, 10_000)):
        said.clear()
        answer = world(AppendEvent(session_id, "x", {"a": 2, "user:b": 3}))
        assert answer["position"] == position
        heard_of[position] = [sql for sql in said if "session" in sql]
    assert heard_of[2] == heard_of[10_000]
    assert 0 < len(heard_of[2]) <= 7, heard_of[2]


def test_the_ten_thousandth_event_takes_as_many_steps_as_the_first(tmp_path: Path) -> None:
    """What SQLite does for each statement, counted by itself."""
    world = World("sqlite", tmp_path / "data")
    try:
        # A statement takes a step more when it runs first, and less at the end of a table.
        warming, few, many, _ = [with_events(world, count) for count in (1, 1, 9_999, 1)]
        connection: apsw.Connection = world.storage._writer_session.connection  # type: ignore[attr-defined]
        inline: apsw.Connection = world.storage._inline.connection  # type: ignore[attr-defined]
        steps: list[tuple[str, int, int]] = []

        def profile(event: dict[str, Any]) -> None:
            status = event["stmt_status"]
            if "session" in event["sql"]:
                steps.append(
                    (
                        event["sql"],
                        status["SQLITE_STMTSTATUS_VM_STEP"],
                        status["SQLITE_STMTSTATUS_FULLSCAN_STEP"],
                    )
                )

        for each in (connection, inline):
            each.trace_v2(apsw.SQLITE_TRACE_PROFILE, profile)
        counted = []
        for session_id in (warming, few, many):
            steps.clear()
            world(AppendEvent(session_id, "x", {"a": 2, "user:b": 3}))
            world(GetSession(session_id, events=1))
            counted.append(list(steps))
        assert len(counted[1]) > 5
        assert counted[1] == counted[2]
        assert all(scanned == 0 for _, _, scanned in counted[1])
    finally:
        world.close()


def test_every_change_of_a_session_is_in_the_journal(world: World) -> None:
    session_id = begin(world)
    world(AppendEvent(session_id, 1, {"app:x": 1}), agent="planner", session="s", task="t")
    world(TerminateSession(session_id))
    world(DeleteSession(session_id))

    def entries(session: Session) -> list[Any]:
        return session.execute(
            "SELECT operation, namespace, version_before, version_after FROM journal "
            "WHERE subject = ? ORDER BY seq",
            (session_id,),
        )

    assert read(world, entries) == [
        ("create_session", "user:alice", None, 1),
        ("append_event", "app:default", None, None),
        ("append_event", "user:alice", 1, 2),
        ("terminate_session", "user:alice", 2, 3),
        ("delete_session", "user:alice", 3, None),
    ]
