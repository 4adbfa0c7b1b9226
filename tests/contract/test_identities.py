"""Identities, grants, rates and quotas, on every storage."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
import zmq

from recollect.orchestrator.access import attempts as attempts_module
from recollect.orchestrator.access.attempts import STRANGER, WINDOW_S, Attempts
from recollect.orchestrator.access.grants import EVERYTHING, NOTHING
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.access.refusals import RefusalLog
from recollect.orchestrator.services import identities as service
from recollect.protocol import errors
from recollect.protocol.operations import (
    AddMemory,
    BatchAddMemories,
    Count,
    CreateIdentity,
    DeleteMemory,
    GetMemory,
    GrantAccess,
    ListIdentities,
    Ping,
    Purge,
    RevokeAccess,
    WhoAmI,
)
from tests.harness.worlds import World

JOURNAL = "SELECT identity, operation, subject, outcome, detail FROM journal ORDER BY seq"


def new_key() -> str:
    return zmq.curve_keypair()[0].decode()


def made(world: World, name: str, *grants: tuple[str, str], **bounds: Any) -> str:
    """The public key of a new identity."""
    key = new_key()
    world(CreateIdentity(name, key, **bounds))
    for pattern, access in grants:
        world(GrantAccess(name, pattern, access))  # type: ignore[arg-type]
    return key


def known(world: World, key: str) -> Identity:
    """Who a key belongs to, as a message that came with it would be told."""
    found = world.orchestrator.parts.keyring.identity(key)
    assert found is not None
    return found


def journal(world: World) -> list[tuple[Any, ...]]:
    async def read() -> list[tuple[Any, ...]]:
        # Behind whatever is still to be written.
        await world.storage.write(lambda transaction: None)
        return await world.storage.read(lambda session: session.execute(JOURNAL))

    return world.run(read())


def test_a_new_identity_may_do_nothing_but_ask_who_it_is(world: World) -> None:
    key = made(world, "alice")
    alice = known(world, key)
    assert (alice.name, alice.grants) == ("alice", NOTHING)
    assert world(WhoAmI(), alice) == {"status": "success", "identity": "alice", "grants": []}
    assert world(Ping(), alice)["ready"] is True
    with pytest.raises(errors.Forbidden, match="keys grant alice user:alice write"):
        world(AddMemory("x", namespace="user:alice"), alice)
    with pytest.raises(errors.Forbidden):
        world(ListIdentities(), alice)


def test_grants_and_their_end_are_in_force_when_they_are_answered(world: World) -> None:
    key = made(world, "alice", ("user:alice:*", "read"))
    assert world(WhoAmI(), known(world, key))["grants"] == [
        {"pattern": "user:alice", "access": "read"}
    ]
    with pytest.raises(errors.Forbidden):
        world(AddMemory("x", namespace="user:alice"), known(world, key))
    answer = world(GrantAccess("alice", "user:alice", "write"))
    assert answer["identity"]["grants"] == [{"pattern": "user:alice", "access": "write"}]
    stored = world(AddMemory("x", namespace="user:alice:notes"), known(world, key))["memory_id"]
    world(RevokeAccess("alice", "user:alice:*"))
    with pytest.raises(errors.NotFound):
        world(GetMemory(stored), known(world, key))
    with pytest.raises(errors.NotFound, match="no grant on 'user:alice'"):
        world(RevokeAccess("alice", "user:alice"))


def test_a_revoked_identity_is_unknown_and_its_name_can_be_given_again(world: World) -> None:
    key = made(world, "alice", ("user:alice", "admin"))
    answer = world(RevokeAccess("alice"))
    assert answer["identity"]["revoked_at"] is not None
    assert answer["identity"]["grants"] == []
    keyring = world.orchestrator.parts.keyring
    assert keyring.identity(key) is None
    assert keyring.revoked_name(key) == "alice"
    assert world(RevokeAccess("alice"))["identity"]["revoked_at"] is not None
    with pytest.raises(errors.NotFound, match="was revoked"):
        world(GrantAccess("alice", "user:alice", "read"))
    for name in ("alice", "bob"):
        with pytest.raises(errors.AlreadyExists, match="was revoked"):
            world(CreateIdentity(name, key))
    again = made(world, "alice")
    assert known(world, again).grants == NOTHING
    assert keyring.identity(key) is None


def test_what_is_known_survives_a_restart(world: World) -> None:
    alice = made(world, "alice", ("user:alice", "write"), ("app", "read"))
    bob = made(world, "bob", requests_per_s=2.5, memories_max=7)
    gone = made(world, "gone")
    world(RevokeAccess("gone"))
    before = world(ListIdentities())
    world.restart()
    keyring = world.orchestrator.parts.keyring
    world.run(keyring.load())
    assert world(ListIdentities()) == before
    assert known(world, alice).grants.allows("user:alice", "write")
    assert (known(world, bob).requests_per_s, known(world, bob).memories_max) == (2.5, 7)
    assert keyring.revoked_name(gone) == "gone"
    assert keyring.strangers_count == 2


def test_names_and_keys_are_nobody_elses(world: World) -> None:
    key = made(world, "alice")
    with pytest.raises(errors.AlreadyExists, match="keys revoke alice"):
        world(CreateIdentity("alice", new_key()))
    with pytest.raises(errors.AlreadyExists, match="alice"):
        world(CreateIdentity("bob", key))
    for own in ("local", "orchestrator"):
        with pytest.raises(errors.AlreadyExists, match="own machine"):
            world(CreateIdentity(own, new_key()))
    for name in ("", "a b", "alice\n", "x" * 129, "(unknown)", "-x", "a/b"):
        with pytest.raises(errors.InvalidArgument):
            world(CreateIdentity(name, new_key()))
    for bad in ("short", "~" * 40, " " * 40, key[:-1] + "\n"):
        with pytest.raises(errors.InvalidArgument, match="public_key"):
            world(CreateIdentity("carol", bad))
    assert world(ListIdentities())["count"] == 1


def test_only_patterns_of_known_prefixes_are_granted(world: World) -> None:
    made(world, "alice")
    for pattern in ("users", "user:", "user:*:x", "user:a b", ":", "nowhere:x"):
        with pytest.raises(errors.InvalidArgument, match="is not a pattern"):
            world(GrantAccess("alice", pattern, "read"))
    with pytest.raises(errors.LimitExceeded):
        world(GrantAccess("alice", "user:" + "x" * 5_000, "read"))
    with pytest.raises(errors.NotFound, match="no identity 'nobody'"):
        world(GrantAccess("nobody", "user", "read"))
    with pytest.raises(errors.NotFound):
        world(RevokeAccess("nobody"))
    assert world(ListIdentities())["identities"][0]["grants"] == []


def test_identities_and_grants_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "IDENTITIES_MAX", 2)
    monkeypatch.setattr(service, "GRANTS_MAX", 2)
    made(world, "alice", ("user:a", "read"), ("user:b", "read"))
    with pytest.raises(errors.LimitExceeded) as caught:
        world(GrantAccess("alice", "user:c", "read"))
    assert caught.value.details["limit"] == "grants_max"
    world(GrantAccess("alice", "user:a", "admin"))
    made(world, "bob")
    with pytest.raises(errors.LimitExceeded) as caught:
        world(CreateIdentity("carol", new_key()))
    assert caught.value.details["limit"] == "identities_max"


def test_what_can_be_no_namespace_comes_into_no_audit(world: World) -> None:
    alice = known(world, made(world, "alice", ("user:alice", "write")))
    before = journal(world)
    for namespace in ("user:bob\x00", "user:bob\nuser:carol", "nowhere", "user:" + "x" * 100_000):
        with pytest.raises(errors.InvalidRequest):
            world(AddMemory("x", namespace=namespace), alice)
    with pytest.raises(errors.Forbidden):
        world(AddMemory("x", namespace="user:bob"), alice)
    assert [line[:4] for line in journal(world)[len(before) :]] == [
        ("alice", "add_memory", "", "denied")
    ]


def test_what_was_begun_is_neither_done_nor_told_after_its_key_was_revoked(world: World) -> None:
    key = made(world, "alice", ("user:alice", "write"))
    alice = known(world, key)
    stored = world(AddMemory("tea", namespace="user:alice"), alice)["memory_id"]
    adding = AddMemory("too late", namespace="user:alice")

    async def overtaken(by: RevokeAccess | GrantAccess, *operations: Any) -> list[Any]:
        """The answers to what waits for a change that comes with the end of its right."""
        until = await world.ask(Ping())
        waiting = [
            asyncio.ensure_future(world.ask(make(until["seq"] + 1), alice)) for make in operations
        ]
        await asyncio.sleep(0)  # they are under way, and wait
        changed = await world.ask(by)
        assert changed["status"] == "success"
        return [await answer for answer in waiting]

    def reading(seq: int) -> GetMemory:
        return GetMemory(stored, min_seq=seq)

    [told] = world.run(overtaken(GrantAccess("alice", "user:alice", "admin"), reading))
    assert (told["error"]["code"], told["error"]["retryable"]) == ("overloaded", True)
    alice = known(world, key)
    [told] = world.run(overtaken(RevokeAccess("alice"), reading))
    assert told["error"]["code"] == "unauthenticated"
    assert "tea" not in str(told)
    assert journal(world)[-1] == ("alice", "get_memory", key, "denied", "revoked key")
    # As a write is, whose vector took long.
    with pytest.raises(errors.Unauthenticated):
        world(adding, alice)
    assert world(GetMemory(stored))["memory"]["version"] == 1
    assert world(Count())["count"] == 1


def test_every_change_has_its_line_in_the_audit(world: World) -> None:
    key = made(world, "alice", ("user:alice", "write"))
    world(RevokeAccess("alice", "user:alice"))
    world(RevokeAccess("alice"))
    assert journal(world) == [
        ("local", "create_identity", "alice", None, f"key {key}"),
        ("local", "grant_access", "alice", None, "write on user:alice"),
        ("local", "revoke_access", "alice", None, "nothing on user:alice any more"),
        ("local", "revoke_access", "alice", None, "revoked"),
    ]


def test_a_change_sent_again_is_made_once(world: World) -> None:
    operation = CreateIdentity("alice", new_key())
    first = world(operation, key="k")
    assert world(operation, key="k") == first
    assert world(ListIdentities())["count"] == 1


def test_only_who_administers_everything_changes_identities(world: World) -> None:
    half = known(world, made(world, "half", ("user", "admin"), ("app", "admin")))
    for operation in (
        CreateIdentity("x", new_key()),
        ListIdentities(),
        GrantAccess("half", "*", "admin"),
        RevokeAccess("half"),
    ):
        with pytest.raises(errors.Forbidden):
            world(operation, half)
    whole = known(world, made(world, "whole", ("*", "admin")))
    assert whole.grants.grants == EVERYTHING.grants
    assert world(ListIdentities(), whole)["count"] == 2
    denied = [line for line in journal(world) if line[3] == "denied"]
    assert [(line[0], line[1]) for line in denied] == [
        ("half", "create_identity"),
        ("half", "list_identities"),
        ("half", "grant_access"),
        ("half", "revoke_access"),
    ]


def test_another_keyring_over_the_same_store_follows(world: World) -> None:
    other = Keyring(world.storage, None)
    world.run(other.load())
    key = made(world, "alice")
    assert other.identity(key) is None
    world.run(other.load())
    assert other.identity(key) is not None


def test_a_quota_is_kept_in_the_write_and_given_back_by_a_purge(world: World) -> None:
    key = made(world, "alice", ("user:alice", "admin"), memories_max=3)
    alice = known(world, key)

    def add(text: str) -> str:
        memory_id: str = world(AddMemory(text, namespace="user:alice"), alice)["memory_id"]
        return memory_id

    def used() -> int:
        count: int = world(ListIdentities())["identities"][0]["memories"]
        return count

    first = add("one")
    items = [{"content": text, "namespace": "user:alice"} for text in ("two", "three", "four")]
    with pytest.raises(errors.LimitExceeded) as caught:
        world(BatchAddMemories(items, atomic=True), alice)
    assert caught.value.details["limit"] == "memories_max"
    assert (caught.value.details["maximum"], caught.value.details["actual"]) == (3, 4)
    assert used() == 1
    world(BatchAddMemories(items[:2], atomic=True), alice)
    assert used() == 3
    with pytest.raises(errors.LimitExceeded, match="Purge some"):
        add("four")
    world(DeleteMemory(first), alice)
    assert used() == 3, "what is deleted can come back, and counts"
    world(Purge(first), alice)
    assert used() == 2
    add("four")
    assert used() == 3
    world(AddMemory("the machine has no bound", namespace="user:alice"))
    assert used() == 3


def test_a_write_that_fails_takes_nothing_of_the_quota(world: World) -> None:
    alice = known(world, made(world, "alice", ("user:alice", "write"), memories_max=5))
    world(AddMemory("one", namespace="user:alice", key="taken"), alice)
    for _ in range(3):
        with pytest.raises(errors.AlreadyExists):
            world(AddMemory("two", namespace="user:alice", key="taken"), alice)
        with pytest.raises(errors.Forbidden):
            world(AddMemory("two", namespace="user:bob"), alice)
    same = AddMemory("three", namespace="user:alice")
    assert world(same, alice, key="once") == world(same, alice, key="once")
    assert world(ListIdentities())["identities"][0]["memories"] == 2


def test_what_an_identity_stored_still_counts_when_it_is_made_anew(world: World) -> None:
    old = known(world, made(world, "alice", ("user:alice", "write"), memories_max=2))
    world(AddMemory("one", namespace="user:alice"), old)
    world(RevokeAccess("alice"))
    new = known(world, made(world, "alice", ("user:alice", "write"), memories_max=2))
    world(AddMemory("two", namespace="user:alice"), new)
    with pytest.raises(errors.LimitExceeded):
        world(AddMemory("three", namespace="user:alice"), new)


def test_too_many_requests_are_answered_with_when_to_come_again(world: World) -> None:
    # So slow that no token comes back while the test runs.
    alice = known(world, made(world, "alice", requests_per_s=0.001))
    assert world(Ping(), alice)["ready"] is True
    refused = world.send("ping", msgspec.msgpack.encode(Ping()), alice)["error"]
    assert (refused["code"], refused["retryable"]) == ("rate_limited", True)
    assert 0 < refused["details"]["retry_after_ms"] <= 1_000_000
    assert world(Ping())["ready"] is True, "others are not slowed"


class Moment:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def denied_lines(world: World) -> list[tuple[Any, ...]]:
    return [(w, o, s, d) for w, o, s, outcome, d in journal(world) if outcome == "denied"]


def test_the_first_attempt_of_a_kind_has_its_line_at_once_and_the_rest_are_counted(
    world: World,
) -> None:
    clock = Moment()
    attempts = Attempts(RefusalLog(world.storage), world.clock, clock)

    async def come(times: int, *what: Any) -> None:
        for _ in range(times):
            attempts.denied(*what)

    world.run(come(5, "KEY", "10.0.0.1", "unknown key"))
    world.run(come(1, "KEY", "10.0.0.2", "unknown key"))
    world.run(come(2, "OLD", "", "revoked key", "alice", "get_memory"))
    world.run(come(1, "OLD", "", "revoked key", "alice", "ping"))
    first = [
        (STRANGER, "connect", "KEY", "unknown key, from 10.0.0.1"),
        (STRANGER, "connect", "KEY", "unknown key, from 10.0.0.2"),
        ("alice", "get_memory", "OLD", "revoked key"),
        ("alice", "ping", "OLD", "revoked key"),
    ]
    assert denied_lines(world) == first

    async def sweep() -> None:
        attempts.sweep()

    clock.now_s = WINDOW_S - 1
    world.run(sweep())
    assert denied_lines(world) == first
    clock.now_s = WINDOW_S
    world.run(sweep())
    counted = [
        (STRANGER, "connect", "KEY", "unknown key, from 10.0.0.1: 4 more attempts"),
        ("alice", "get_memory", "OLD", "revoked key: 1 more attempt"),
    ]
    assert denied_lines(world) == first + counted

    async def flush() -> None:
        attempts.denied("KEY", "10.0.0.1", "unknown key")
        attempts.flush()

    world.run(flush())
    last = (STRANGER, "connect", "KEY", "unknown key, from 10.0.0.1: 1 more attempt")
    assert denied_lines(world) == [*first, *counted, last]


def test_a_flood_of_keys_is_counted_in_one_line(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts_module, "ENTRIES_MAX", 3)
    attempts = Attempts(RefusalLog(world.storage), world.clock, Moment())

    async def flood() -> None:
        for number in range(1000):
            attempts.denied(f"KEY{number}", "10.0.0.1", "unknown key")
        attempts.sweep()

    world.run(flood())
    lines = denied_lines(world)
    assert len(lines) == 4
    assert lines[-1] == (STRANGER, "connect", "", "997 attempts of other keys")
