"""Memories by namespace and key: put, read in every version and at every time, restored."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.orchestrator.clock import to_iso
from recollect.protocol import errors
from recollect.protocol.operations import (
    AddMemory,
    DeleteByKey,
    DeleteMemory,
    Diff,
    GetByKey,
    GetMemory,
    HistoryByKey,
    ListMemories,
    Put,
    RestoreByKey,
    SemanticSearch,
    UpdateByKey,
    UpdateMemory,
)
from recollect.protocol.records import MemoryRecord
from tests.harness.somebody import somebody
from tests.harness.worlds import World

HOME = "user:alice"
DAY_S = 86_400


def put(world: World, value: Any, key: str = "editor", **options: Any) -> dict[str, Any]:
    answer: dict[str, Any] = world(Put(options.pop("namespace", HOME), key, value, **options))
    return answer


def get(world: World, key: str = "editor", **options: Any) -> MemoryRecord:
    memory: MemoryRecord = world(GetByKey(HOME, key, **options))["memory"]
    return memory


def moment(world: World) -> str:
    """A time between what was done and what comes next."""
    world.clock.advance(60)
    now = to_iso(world.clock.now_us())
    world.clock.advance(60)
    return now


def test_what_is_put_is_a_memory_like_any_other(world: World) -> None:
    answer = put(world, {"name": "vim", "modes": ["normal", "insert"]}, metadata={"by": "alice"})
    assert (answer["namespace"], answer["key"]) == (HOME, "editor")
    assert (answer["version"], answer["created"]) == (1, True)
    memory = get(world)
    assert memory["id"] == answer["memory_id"]
    assert memory["value"] == {"name": "vim", "modes": ["normal", "insert"]}
    assert memory["content"] == "name: vim; modes: normal, insert"
    assert (memory["memory_type"], memory["memory_tier"]) == ("semantic", "medium")
    assert memory["metadata"] == {"by": "alice"}
    assert world(GetMemory(answer["memory_id"]))["memory"]["key"] == "editor"
    found = world(SemanticSearch("vim modes", k=1, namespace=HOME))["results"]
    assert [m["id"] for m in found] == [answer["memory_id"]]


def test_a_memory_that_was_added_with_a_key_is_reached_by_it(world: World) -> None:
    memory_id = world(AddMemory("vim", namespace=HOME, key="editor"))["memory_id"]
    assert get(world)["id"] == memory_id
    again = put(world, "emacs")
    assert (again["memory_id"], again["version"], again["created"]) == (memory_id, 2, False)


def test_put_again_is_the_next_version_and_keeps_what_it_does_not_name(world: World) -> None:
    first = put(
        world,
        "vim",
        metadata={"a": 1},
        memory_tier="long",
        importance=0.9,
        tags=["tool"],
        source="chat",
        trust=0.5,
        expires_at="2099-01-01",
    )
    second = put(world, "emacs", memory_type="procedural")
    assert second["memory_id"] == first["memory_id"]
    assert (second["version"], second["created"]) == (2, False)
    memory = get(world)
    assert (memory["value"], memory["content"], memory["metadata"]) == ("emacs", "emacs", {})
    assert memory["memory_type"] == "procedural"
    assert (memory["memory_tier"], memory["importance"], memory["tags"]) == ("long", 0.9, ["tool"])
    assert (memory["source"], memory["trust"]) == ("chat", 0.5)
    assert memory["expires_at"] == "2099-01-01T00:00:00.000000Z"
    put(world, "ed", tags=None, source=None, expires_at=None, importance=0.1)
    memory = get(world)
    assert (memory["tags"], memory["source"], memory["expires_at"]) == ([], None, None)
    assert memory["importance"] == 0.1
    assert memory["created_at"] < memory["updated_at"]


@pytest.mark.parametrize("memory_type", ["general", "semantic", "episodic", "procedural"])
def test_every_type_of_memory_can_be_put(world: World, memory_type: str) -> None:
    put(world, "x", memory_type=memory_type)
    assert get(world)["memory_type"] == memory_type


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", "text", [], {}, [None, {"a": []}]])
def test_any_json_is_a_value_and_always_has_a_text(world: World, value: Any) -> None:
    put(world, value)
    memory = get(world)
    assert memory["value"] == value
    assert type(memory["value"]) is type(value)
    assert memory["content"].strip()


@pytest.mark.parametrize("namespace", ["alice", "user", "user:", "users:alice", "user: a", ":a"])
def test_other_namespaces_are_refused_with_the_rule(world: World, namespace: str) -> None:
    operations = (
        Put(namespace, "k", 1),
        GetByKey(namespace, "k"),
        UpdateByKey(namespace, "k", 1),
        DeleteByKey(namespace, "k"),
        HistoryByKey(namespace, "k"),
        RestoreByKey(namespace, "k"),
        Diff(namespace, "k", 1),
    )
    for operation in operations:
        with pytest.raises(errors.InvalidArgument, match="temp, session, user, app or project"):
            world(operation)


@pytest.mark.parametrize(
    "namespace", ["temp:a", "session:a", "user:a", "app:a", "project:a:b:c-d_e.f"]
)
def test_every_prefix_begins_a_namespace(world: World, namespace: str) -> None:
    world(Put(namespace, "k", namespace))
    assert world(GetByKey(namespace, "k"))["memory"]["value"] == namespace


def test_a_put_can_ask_for_a_version_and_for_a_free_key(world: World) -> None:
    with pytest.raises(errors.VersionConflict) as caught:
        put(world, 1, expected_version=1)
    assert caught.value.details["actual_version"] == 0
    assert put(world, 1, expected_version=0)["created"] is True
    with pytest.raises(errors.AlreadyExists) as taken:
        put(world, 2, expected_version=0)
    assert taken.value.details["actual_version"] == 1
    assert put(world, 2, expected_version=1)["version"] == 2
    with pytest.raises(errors.VersionConflict) as late:
        put(world, 3, expected_version=1)
    assert late.value.details["actual_version"] == 2
    assert get(world)["value"] == 2
    world(DeleteByKey(HOME, "editor"))
    assert put(world, 4, expected_version=0)["created"] is True


def test_update_changes_what_it_names_and_needs_the_key(world: World) -> None:
    with pytest.raises(errors.NotFound):
        world(UpdateByKey(HOME, "editor", "vim"))
    put(world, {"name": "vim"}, metadata={"a": 1}, content="The editor is vim")
    assert world(UpdateByKey(HOME, "editor", metadata={"b": 2}))["version"] == 2
    memory = get(world)
    assert (memory["value"], memory["metadata"]) == ({"name": "vim"}, {"b": 2})
    assert memory["content"] == "The editor is vim"
    world(UpdateByKey(HOME, "editor", {"name": "emacs"}))
    assert get(world)["content"] == "name: emacs"
    world(UpdateByKey(HOME, "editor", content="It is emacs"))
    memory = get(world)
    assert (memory["value"], memory["content"]) == ({"name": "emacs"}, "It is emacs")
    world(UpdateByKey(HOME, "editor", None))
    assert get(world)["value"] is None
    with pytest.raises(errors.InvalidArgument, match="what to change"):
        world(UpdateByKey(HOME, "editor"))
    with pytest.raises(errors.VersionConflict):
        world(UpdateByKey(HOME, "editor", 1, expected_version=1))


def test_what_is_deleted_by_key_is_gone_and_can_be_restored(world: World) -> None:
    memory_id = put(world, "vim")["memory_id"]
    child = world(AddMemory("with plugins", namespace=HOME, parent_id=memory_id))["memory_id"]
    with pytest.raises(errors.VersionConflict):
        world(DeleteByKey(HOME, "editor", expected_version=7))
    deleted = world(DeleteByKey(HOME, "editor", expected_version=1))
    assert set(deleted["deleted_ids"]) == {memory_id, child}
    for operation in (
        GetByKey(HOME, "editor"),
        UpdateByKey(HOME, "editor", 1),
        DeleteByKey(HOME, "editor"),
        GetMemory(memory_id),
    ):
        with pytest.raises(errors.NotFound):
            world(operation)
    assert world(RestoreByKey(HOME, "editor"))["memory_id"] == memory_id
    assert (get(world)["value"], get(world)["version"]) == ("vim", 3)
    with pytest.raises(errors.InvalidArgument, match="not deleted"):
        world(RestoreByKey(HOME, "editor"))


def test_a_key_is_free_after_its_memory_is_deleted_by_id(world: World) -> None:
    first = put(world, "vim")["memory_id"]
    world(DeleteMemory(first))
    second = put(world, "emacs")
    assert second["created"] is True
    assert second["memory_id"] != first
    with pytest.raises(errors.AlreadyExists):
        world(RestoreByKey(HOME, "editor"))
    with pytest.raises(errors.AlreadyExists):
        world(Put(HOME, "editor", 1, expected_version=0))
    assert get(world)["value"] == "emacs"


def test_an_expired_memory_gives_its_key_up(world: World) -> None:
    first = put(world, "vim", expires_at=to_iso(world.clock.now_us() + 60_000_000))
    then = to_iso(world.clock.now_us())
    world.clock.advance(3600)
    with pytest.raises(errors.NotFound):
        get(world)
    second = put(world, "emacs", expected_version=0)
    assert second["created"] is True
    assert second["memory_id"] != first["memory_id"]
    assert get(world, as_of=then)["value"] == "vim"


def test_an_expired_memory_can_be_restored_while_it_has_its_key(world: World) -> None:
    put(world, "vim", expires_at=to_iso(world.clock.now_us() + 60_000_000))
    world.clock.advance(3600)
    assert world(RestoreByKey(HOME, "editor"))["version"] == 2
    memory = get(world)
    assert (memory["value"], memory["expires_at"]) == ("vim", None)


def test_every_version_can_be_read_and_compared_and_brought_back(world: World) -> None:
    put(world, {"name": "vim", "since": 1991}, metadata={"a": 1})
    put(world, {"name": "vim", "since": 1991.0}, metadata={"a": 1})
    put(world, {"name": "neovim"}, content="one\ntwo\nthree")
    world(UpdateByKey(HOME, "editor", content="one\n2\nthree"))
    assert get(world, version=1)["value"] == {"name": "vim", "since": 1991}
    assert get(world, version=4)["content"] == "one\n2\nthree"
    with pytest.raises(errors.NotFound, match="in version 9"):
        get(world, version=9)
    history = world(HistoryByKey(HOME, "editor"))
    assert [v["version"] for v in history["versions"]] == [4, 3, 2, 1]
    assert [v["operation"] for v in history["versions"]] == ["update_by_key", "put", "put", "put"]

    numbers = world(Diff(HOME, "editor", 1, 2))
    assert set(numbers["changes"]) == {"content", "value"}
    values = numbers["changes"]["value"]
    assert [type(values[side]["since"]) for side in ("before", "after")] == [int, float]
    lines = world(Diff(HOME, "editor", 3))
    assert (lines["from_version"], lines["to_version"]) == (3, 4)
    assert set(lines["changes"]) == {"content"}
    assert lines["text"].splitlines()[-4:] == [" one", "-two", "+2", " three"]
    assert world(Diff(HOME, "editor", 4, 4))["changes"] == {}
    back = world(Diff(HOME, "editor", 4, 1))
    assert back["changes"]["metadata"] == {"before": {}, "after": {"a": 1}}
    with pytest.raises(errors.NotFound, match="in version 5"):
        world(Diff(HOME, "editor", 1, 5))

    assert world(RestoreByKey(HOME, "editor", 1))["version"] == 5
    assert get(world)["value"] == {"name": "vim", "since": 1991}
    with pytest.raises(errors.VersionConflict):
        world(RestoreByKey(HOME, "editor", 1, expected_version=1))


def test_history_goes_page_by_page_and_notices_another_memory(world: World) -> None:
    for n in range(5):
        put(world, n)
    seen, cursor = [], None
    while True:
        page = world(HistoryByKey(HOME, "editor", 2, cursor))
        seen += [v["version"] for v in page["versions"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == [5, 4, 3, 2, 1]
    first = world(HistoryByKey(HOME, "editor", 2))
    world(DeleteByKey(HOME, "editor"))
    assert world(HistoryByKey(HOME, "editor", 2, first["cursor"]))["versions"][0]["version"] == 3
    put(world, "another")
    with pytest.raises(errors.InvalidArgument, match="another memory"):
        world(HistoryByKey(HOME, "editor", 2, first["cursor"]))


def test_a_deleted_key_keeps_its_history_and_can_go_back_to_any_version(world: World) -> None:
    put(world, "one")
    put(world, "two")
    world(DeleteByKey(HOME, "editor"))
    versions = world(HistoryByKey(HOME, "editor"))["versions"]
    assert [v["operation"] for v in versions] == ["delete_by_key", "put", "put"]
    assert get(world, version=1)["value"] == "one"
    assert world(Diff(HOME, "editor", 1, 2))["changes"]["value"]["after"] == "two"
    with pytest.raises(errors.InvalidArgument, match="deletion itself"):
        world(RestoreByKey(HOME, "editor", 3))
    world(RestoreByKey(HOME, "editor", 1))
    assert (get(world)["value"], get(world)["version"]) == ("one", 4)


def test_as_of_reads_whichever_memory_had_the_key_then(world: World) -> None:
    before = moment(world)
    first = put(world, "one")["memory_id"]
    one = moment(world)
    put(world, "two")
    two = moment(world)
    world(DeleteByKey(HOME, "editor"))
    gone = moment(world)
    second = put(world, "three")["memory_id"]
    three = moment(world)
    world(DeleteByKey(HOME, "editor"))
    gone_again = moment(world)
    world(RestoreByKey(HOME, "editor"))
    restored = moment(world)
    world(DeleteByKey(HOME, "editor"))
    third = put(world, "four")["memory_id"]
    four = moment(world)

    expected = {
        one: (first, "one"),
        two: (first, "two"),
        three: (second, "three"),
        restored: (second, "three"),
        four: (third, "four"),
    }
    for then, (memory_id, value) in expected.items():
        memory = get(world, as_of=then)
        assert (memory["id"], memory["value"]) == (memory_id, value)
    for then in (before, gone, gone_again):
        with pytest.raises(errors.NotFound, match="at that time"):
            get(world, as_of=then)
    with pytest.raises(errors.InvalidArgument, match="not both"):
        get(world, as_of=one, version=1)


def test_a_key_of_another_namespace_is_another_key(world: World) -> None:
    for namespace in (HOME, f"{HOME}:work", "user:alice2"):
        world(Put(namespace, "editor", namespace))
    for namespace in (HOME, f"{HOME}:work", "user:alice2"):
        assert world(GetByKey(namespace, "editor"))["memory"]["value"] == namespace


def test_reading_by_key_counts_as_reading_and_looking_at_the_past_does_not(world: World) -> None:
    put(world, "vim")
    for _ in range(3):
        get(world)
    get(world, version=1)
    get(world, as_of=to_iso(world.clock.now_us()))
    assert get(world)["access_count"] == 3


def test_what_may_not_be_read_looks_like_what_is_not_there(world: World) -> None:
    put(world, "vim")
    bob = somebody("bob", write=("user:bob",))
    for key in ("editor", "nothing"):
        for operation in (
            GetByKey(HOME, key),
            GetByKey(HOME, key, version=1),
            GetByKey(HOME, key, as_of=to_iso(world.clock.now_us())),
            HistoryByKey(HOME, key),
            Diff(HOME, key, 1),
        ):
            with pytest.raises(errors.NotFound) as caught:
                world(operation, bob)
            assert (
                str(caught.value)
                .replace(key, "KEY")
                .startswith("There is no memory under the key 'KEY' in user:alice")
            )
        for writing in (
            Put(HOME, key, "x"),
            UpdateByKey(HOME, key, "x"),
            DeleteByKey(HOME, key),
            RestoreByKey(HOME, key),
        ):
            with pytest.raises(errors.Forbidden):
                world(writing, bob)
    assert get(world)["value"] == "vim"


def test_who_may_only_read_reads_and_changes_nothing(world: World) -> None:
    put(world, "vim")
    reader = somebody("reader", read=(HOME,))
    assert world(GetByKey(HOME, "editor"), reader)["memory"]["value"] == "vim"
    assert world(HistoryByKey(HOME, "editor"), reader)["count"] == 1
    for writing in (Put(HOME, "editor", "x"), DeleteByKey(HOME, "editor")):
        with pytest.raises(errors.Forbidden, match="no write access to user:alice"):
            world(writing, reader)
    assert (get(world)["value"], get(world)["version"]) == ("vim", 1)


def test_the_same_put_sent_twice_is_done_once(world: World) -> None:
    first = world(Put(HOME, "editor", "vim"), key="once")
    assert world(Put(HOME, "editor", "vim"), key="once") == first
    with pytest.raises(errors.IdempotencyConflict):
        world(Put(HOME, "editor", "emacs"), key="once")
    assert get(world)["version"] == 1


@pytest.mark.parametrize(
    ("operation", "limit"),
    [
        (Put(HOME, "k" * 513, 1), "limits.key_chars_max"),
        (GetByKey(HOME, "k" * 513), "limits.key_chars_max"),
        (Put("user:" + "a" * 300, "k", 1), "limits.namespace_chars_max"),
        (Put(HOME, "k", "v" * 1_048_577), "limits.value_bytes_max"),
        (Put(HOME, "k", 1, content="c" * 200_001), "limits.content_chars_max"),
        (HistoryByKey(HOME, "k", 1_001), "limits.page_items_max"),
    ],
)
def test_what_is_too_large_is_refused_by_the_name_of_its_limit(
    world: World, operation: Any, limit: str
) -> None:
    with pytest.raises(errors.LimitExceeded) as caught:
        world(operation)
    assert caught.value.details["limit"] == limit


def test_a_long_value_has_a_text_that_fits(world: World) -> None:
    put(world, {"words": ["word"] * 64, "more": {str(n): "x" * 1000 for n in range(500)}})
    assert len(get(world)["content"]) == 200_000


def test_bad_keys_are_refused(world: World) -> None:
    for key in ("", "a\x00b"):
        with pytest.raises(errors.InvalidArgument):
            world(Put(HOME, key, 1))


def test_by_id_and_by_key_are_two_ways_to_one_history(world: World) -> None:
    memory_id = put(world, "one")["memory_id"]
    world(UpdateMemory(memory_id, {"value": "two"}))
    world(UpdateByKey(HOME, "editor", "three", expected_version=2))
    assert [m["id"] for m in world(ListMemories(namespace=HOME))["memories"]] == [memory_id]
    assert [v["memory"]["value"] for v in world(HistoryByKey(HOME, "editor"))["versions"]] == [
        "three",
        "two",
        "one",
    ]
