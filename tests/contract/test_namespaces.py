"""Namespaces: what is in one and below it, which there are, and old versions forgotten in them."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.orchestrator.access.identities import LOCAL, Identity
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.services import squashing
from recollect.orchestrator.storage.interface import Session
from recollect.protocol import errors
from recollect.protocol.operations import (
    AddMemory,
    DeleteByKey,
    Diff,
    GetByKey,
    HistoryByKey,
    ListNamespaces,
    Purge,
    Put,
    RestoreByKey,
    SearchMemory,
    SearchNamespace,
    SquashVersions,
)
from tests.harness.somebody import somebody
from tests.harness.worlds import World

# Between a namespace and those below it stand others, in the order of texts.
NAMESPACES = (
    "app:default",
    "project:apollo",
    "user:alice",
    "user:alice-b",
    "user:alice-b:notes",
    "user:alice2",
    "user:alice:notes",
    "user:alice:notes:old",
    "user:alice:prefs",
    "user:bob",
    "user:älice",
)
ALICE = ("user:alice", "user:alice:notes", "user:alice:notes:old", "user:alice:prefs")
DAY_S = 86_400


@pytest.fixture
def filled(world: World) -> World:
    """Three memories in each namespace, written across each other."""
    for n in range(3):
        for namespace in reversed(NAMESPACES):
            kind = "episodic" if n == 1 else "semantic"
            world(Put(namespace, f"k{n}", f"{namespace} {n}", kind))
    return world


def found(
    world: World, prefix: str, who: Identity = LOCAL, limit: int = 50, **options: Any
) -> list[str]:
    """What a walk through all pages gives."""
    contents: list[str] = []
    cursor = None
    while True:
        page = world(SearchNamespace(prefix, limit=limit, cursor=cursor, **options), who)
        assert page["count"] == len(page["memories"]) <= limit
        contents += [memory["content"] for memory in page["memories"]]
        cursor = page["cursor"]
        if cursor is None:
            return contents


def listed(
    world: World, prefix: str | None = None, who: Identity = LOCAL, limit: int = 100
) -> dict[str, int]:
    names: list[tuple[str, int]] = []
    cursor = None
    while True:
        page = world(ListNamespaces(prefix, limit=limit, cursor=cursor), who)
        assert page["count"] == len(page["namespaces"]) <= limit
        names += [(one["namespace"], one["memories"]) for one in page["namespaces"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert [name for name, _ in names] == sorted(dict(names))
    return dict(names)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 50])
def test_a_prefix_finds_its_namespace_and_those_below_it(filled: World, limit: int) -> None:
    expected = [f"{namespace} {n}" for namespace in ALICE for n in range(3)]
    assert found(filled, "user:alice", limit=limit) == expected


@pytest.mark.parametrize(
    ("prefix", "namespaces"),
    [
        ("user:alice2", ("user:alice2",)),
        ("user:alice:notes", ALICE[1:3]),
        ("user:alice-b", ("user:alice-b", "user:alice-b:notes")),
        ("user:ali", ()),
        ("user:älice", ("user:älice",)),
        ("project", ("project:apollo",)),
        ("user", NAMESPACES[2:]),
    ],
)
def test_a_prefix_ends_at_a_colon(filled: World, prefix: str, namespaces: tuple[str, ...]) -> None:
    expected = [f"{namespace} {n}" for namespace in namespaces for n in range(3)]
    assert found(filled, prefix, limit=4) == expected
    assert listed(filled, prefix) == dict.fromkeys(namespaces, 3)


def test_a_type_narrows_a_namespace(filled: World) -> None:
    assert found(filled, "user:alice", memory_type="episodic") == [f"{n} 1" for n in ALICE]
    assert found(filled, "user:alice", memory_type="procedural") == []


def test_only_the_living_are_found_and_counted(filled: World) -> None:
    filled(DeleteByKey("user:alice", "k0"))
    soon = to_iso(filled.clock.now_us() + 60_000_000)
    filled(Put("user:alice", "k1", "fleeting", expires_at=soon))
    assert listed(filled, "user:alice:notes:old") == {"user:alice:notes:old": 3}
    assert listed(filled, "user:alice")["user:alice"] == 2
    filled.clock.advance(3600)
    assert found(filled, "user:alice")[0] == "user:alice 2"
    assert listed(filled, "user:alice")["user:alice"] == 1
    filled(DeleteByKey("user:alice", "k2"))
    assert "user:alice" not in listed(filled, "user:alice")
    assert [page for page in listed(filled, "user:alice", limit=1)] == list(ALICE[1:])


def test_what_was_purged_leaves_no_namespace(world: World) -> None:
    memory_id = world(AddMemory("x", namespace="user:carol"))["memory_id"]
    assert listed(world) == {"user:carol": 1}
    world(Purge(memory_id))
    assert listed(world) == {}


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_all_namespaces_are_listed_in_their_order(filled: World, limit: int) -> None:
    assert listed(filled, limit=limit) == dict.fromkeys(NAMESPACES, 3)


@pytest.mark.parametrize("prefix", ["", "users", "user:", "user:a b", "alice", ":"])
def test_what_is_no_prefix_is_refused_with_the_rule(world: World, prefix: str) -> None:
    for operation in (SearchNamespace(prefix), ListNamespaces(prefix)):
        with pytest.raises(errors.InvalidArgument):
            world(operation)


def test_a_cursor_fits_only_its_own_query(filled: World) -> None:
    cursor = filled(SearchNamespace("user", limit=1))["cursor"]
    for operation in (
        SearchNamespace("app", limit=1, cursor=cursor),
        SearchNamespace("user", "episodic", 1, cursor=cursor),
        ListNamespaces("user", limit=1, cursor=cursor),
    ):
        with pytest.raises(errors.InvalidArgument, match="does not belong"):
            filled(operation)
    for operation in (SearchNamespace("user", limit=1_001), ListNamespaces(limit=1_001)):
        with pytest.raises(errors.LimitExceeded):
            filled(operation)


def test_only_what_may_be_read_is_found_and_listed(filled: World) -> None:
    guest = somebody("guest", read=("user:alice:notes", "user:alice", "user:alice-b:notes", "app"))
    mine = ("app:default", ALICE[0], "user:alice-b:notes", *ALICE[1:])
    assert listed(filled, None, guest) == dict.fromkeys(mine, 3)
    assert listed(filled, None, guest, limit=2) == dict.fromkeys(mine, 3)
    expected = [f"{namespace} {n}" for namespace in mine[1:] for n in range(3)]
    assert found(filled, "user", guest, limit=2) == expected
    assert found(filled, "user:alice-b", guest) == [f"user:alice-b:notes {n}" for n in range(3)]
    assert found(filled, "user:bob", guest) == []
    assert found(filled, "user:nobody", guest) == []
    assert listed(filled, "user:bob", guest) == {}
    assert listed(filled, None, somebody("nobody")) == {}


def episodes(world: World, key: str = "diary", namespace: str = "user:alice") -> list[str]:
    """Five versions of a memory, a day apart; returns a moment of each."""
    moments = []
    for n in range(1, 6):
        world(Put(namespace, key, f"day {n}", "episodic"))
        world.clock.advance(DAY_S / 2)
        moments.append(to_iso(world.clock.now_us()))
        world.clock.advance(DAY_S / 2)
    return moments


def versions_of(world: World, key: str = "diary", namespace: str = "user:alice") -> list[int]:
    history = world(HistoryByKey(namespace, key))["versions"]
    return [version["version"] for version in history]


def test_old_versions_are_squashed_and_the_latest_stays(world: World) -> None:
    moments = episodes(world)
    world.clock.advance(87.5 * DAY_S)
    # Version 1 was superseded 91.5 days ago, version 2 was 90.5 days ago, and so on.
    dry = world(SquashVersions("user:alice", dry_run=True))
    assert (dry["memories"], dry["versions"], dry["complete"]) == (1, 2, True)
    assert versions_of(world) == [5, 4, 3, 2, 1]
    squashed = world(SquashVersions("user:alice"))
    assert (squashed["memories"], squashed["versions"], squashed["complete"]) == (1, 2, True)
    assert squashed["seq"] == dry["seq"] + 1
    assert versions_of(world) == [5, 4, 3]
    assert world(SquashVersions("user:alice"))["versions"] == 0
    assert world(SquashVersions("user:alice", 0.0))["versions"] == 2
    assert versions_of(world) == [5]
    memory = world(GetByKey("user:alice", "diary"))["memory"]
    assert (memory["value"], memory["version"]) == ("day 5", 5)

    assert world(GetByKey("user:alice", "diary", as_of=moments[4]))["memory"]["value"] == "day 5"
    for then in moments[:4]:
        # What was known then is forgotten: no answer, rather than another day's.
        with pytest.raises(errors.NotFound):
            world(GetByKey("user:alice", "diary", as_of=then))
    for operation in (
        GetByKey("user:alice", "diary", version=2),
        Diff("user:alice", "diary", 2, 5),
        RestoreByKey("user:alice", "diary", 2),
    ):
        with pytest.raises(errors.NotFound):
            world(operation)
    world(Put("user:alice", "diary", "day 6", "episodic"))
    assert versions_of(world) == [6, 5]


def test_a_search_of_the_past_agrees_with_what_was_squashed(world: World) -> None:
    moments = episodes(world)
    world(SquashVersions("user:alice", 2.5))
    assert versions_of(world) == [5, 4, 3]
    hits = [world(SearchMemory("day", as_of=then))["results"] for then in moments]
    assert [[hit["value"] for hit in found] for found in hits] == [
        [],
        [],
        ["day 3"],
        ["day 4"],
        ["day 5"],
    ]


def test_squashing_covers_what_is_below_and_nothing_beside(world: World) -> None:
    homes = ("user:alice", "user:alice:notes", "user:alice2", "user:alice-b")
    for namespace in homes:
        episodes(world, namespace=namespace)
    world(Put("user:alice", "fact", 1, "semantic"))
    world(Put("user:alice", "fact", 2, "semantic"))
    world.clock.advance(200 * DAY_S)
    squashed = world(SquashVersions("user:alice"))
    assert (squashed["memories"], squashed["versions"]) == (2, 8)
    counts = [len(versions_of(world, namespace=namespace)) for namespace in homes]
    assert counts == [1, 1, 5, 5]
    assert versions_of(world, "fact") == [2, 1]
    assert world(SquashVersions("user:alice", memory_type="semantic"))["versions"] == 1


def test_a_deleted_memory_keeps_what_it_can_be_restored_to(world: World) -> None:
    episodes(world)
    world(DeleteByKey("user:alice", "diary"))
    world.clock.advance(200 * DAY_S)
    assert world(SquashVersions("user:alice"))["versions"] == 5
    assert versions_of(world) == [6]
    world(RestoreByKey("user:alice", "diary"))
    assert world(GetByKey("user:alice", "diary"))["memory"]["value"] == "day 5"


def test_one_call_forgets_a_bounded_number_of_the_oldest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(squashing, "VERSIONS_MAX", 5)
    monkeypatch.setattr(squashing, "MEMORIES_AT_ONCE", 2)
    for key in ("a", "b", "c"):
        episodes(world, key)
    world.clock.advance(200 * DAY_S)
    answers = [world(SquashVersions("user:alice")) for _ in range(4)]
    assert [answer["versions"] for answer in answers] == [5, 5, 2, 0]
    assert [answer["complete"] for answer in answers] == [False, False, True, True]
    assert [versions_of(world, key) for key in ("a", "b", "c")] == [[5]] * 3


def test_what_is_left_of_a_history_never_has_a_hole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(squashing, "VERSIONS_MAX", 3)
    moments = episodes(world)
    world.clock.advance(200 * DAY_S)
    world(SquashVersions("user:alice"))
    assert versions_of(world) == [5, 4]
    assert world(GetByKey("user:alice", "diary", as_of=moments[3]))["memory"]["value"] == "day 4"
    with pytest.raises(errors.NotFound):
        world(GetByKey("user:alice", "diary", as_of=moments[2]))


def test_squashing_needs_admin_and_is_audited_memory_by_memory(world: World) -> None:
    episodes(world)
    memory_id = world(GetByKey("user:alice", "diary"))["memory"]["id"]
    world.clock.advance(200 * DAY_S)
    with pytest.raises(errors.Forbidden):
        world(SquashVersions("user:alice"), somebody("alice", write=("user:alice",)))
    assert len(versions_of(world)) == 5
    seq = world(SquashVersions("user:alice"), somebody("root", admin=("user",)))["seq"]

    def entry(session: Session) -> list[Any]:
        return session.execute(
            "SELECT identity, operation, subject, namespace, version_before, version_after, detail "
            "FROM journal WHERE seq = ?",
            (seq,),
        )

    async def read() -> list[Any]:
        return await world.storage.read(entry)

    assert world.run(read()) == [
        (
            *("root", "squash_versions", memory_id, "user:alice", 5, 5),
            "forgot 4 versions up to 4",
        )
    ]
