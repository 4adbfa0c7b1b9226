"""Bearer keys: whose name a request is done in that carries one, on every storage."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from recollect.orchestrator.access import attempts, credentials
from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.services import bearer_keys as service
from recollect.protocol import errors
from recollect.protocol import operations as ops
from recollect.protocol.bearer_keys import PREFIX, hash_of, key_id_of, new_bearer_key
from recollect.protocol.envelope import BEARER_CHARS_MAX
from tests.contract.test_feed import until
from tests.contract.test_identities import denied_lines, journal, known, made
from tests.harness.worlds import World

HOME = "user:alice"
WAIT_S = 20.0
CARRIER = Identity("carrier", Grants((Grant("user:carrier", "write"),)))


def bearing(world: World, name: str, *grants: tuple[str, str], **bounds: Any) -> str:
    """A bearer key of a new identity that has no other."""
    world(ops.CreateIdentity(name, **bounds))
    for pattern, access in grants:
        world(ops.GrantAccess(name, pattern, access))  # type: ignore[arg-type]
    return one_more(world, name)


def one_more(world: World, name: str, label: str | None = None) -> str:
    key = new_bearer_key()
    world(ops.CreateBearerKey(name, hash_of(key), label))
    return key


def id_of(key: str) -> str:
    return key_id_of(hash_of(key))


def everything(world: World) -> str:
    """Every row of every table."""
    tables = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%fts%'"
        if world.settings.storage.url == "sqlite"
        else "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    )

    async def read() -> str:
        await world.storage.write(lambda transaction: None)
        return await world.storage.read(
            lambda session: "\n".join(
                str(session.execute(f"SELECT * FROM {name}")) for (name,) in session.execute(tables)
            )
        )

    return world.run(read())


def test_a_request_is_done_in_the_name_of_whose_bearer_key_it_carries(world: World) -> None:
    key = bearing(world, "alice", (HOME, "write"))
    for carrier in (None, CARRIER, known(world, made(world, "admin", ("*", "admin")))):
        given: Any = {} if carrier is None else {"identity": carrier}
        assert world(ops.WhoAmI(), bearer=key, **given) == {
            "status": "success",
            "identity": "alice",
            "grants": [{"pattern": HOME, "access": "write"}],
        }
        stored = world(ops.AddMemory("Tea", namespace=HOME), bearer=key, **given)["memory_id"]
        assert journal(world)[-1][:3] == ("alice", "add_memory", stored)
        # What the carrier may, the holder may not.
        with pytest.raises(errors.Forbidden):
            world(ops.AddMemory("x", namespace="user:carrier"), bearer=key, **given)
        with pytest.raises(errors.Forbidden):
            world(ops.ListIdentities(), bearer=key, **given)
        assert journal(world)[-1][:4] == ("alice", "list_identities", "", "denied")
    # Who carries no bearer key is nobody but itself.
    assert world(ops.WhoAmI(), CARRIER)["identity"] == "carrier"
    with pytest.raises(errors.Forbidden):
        world(ops.AddMemory("x", namespace=HOME), CARRIER)


def test_an_identity_is_the_same_by_each_of_its_keys(world: World) -> None:
    public = made(world, "alice", (HOME, "write"), memories_max=2)
    laptop, server = one_more(world, "alice", "laptop"), one_more(world, "alice", "server")
    operation = ops.AddMemory("Tea", namespace=HOME)
    first = world(operation, known(world, public), key="once")
    assert world(operation, bearer=laptop, key="once") == first
    assert world(operation, bearer=server, key="once") == first
    world(operation, bearer=server, key="twice")
    for given in ({"identity": known(world, public)}, {"bearer": laptop}, {"bearer": server}):
        with pytest.raises(errors.LimitExceeded) as caught:
            world(operation, **given)
        assert caught.value.details["limit"] == "memories_max"


def test_the_rate_is_the_holders_and_not_the_carriers(world: World) -> None:
    slow = bearing(world, "slow", requests_per_s=0.001)
    quick = bearing(world, "quick")
    assert world(ops.Ping(), bearer=slow)["ready"] is True
    with pytest.raises(errors.RateLimited, match="'slow'"):
        world(ops.Ping(), bearer=slow)
    assert world(ops.Ping(), bearer=quick)["ready"] is True
    assert world(ops.Ping())["ready"] is True


@pytest.mark.parametrize("carrier", [None, CARRIER], ids=["the machine", "somebody"])
def test_a_key_that_is_nobodys_gets_nothing_and_one_line(
    world: World, carrier: Identity | None
) -> None:
    given: Any = {} if carrier is None else {"identity": carrier}
    key = bearing(world, "alice", ("*", "admin"))
    unknown = new_bearer_key()
    wrong = ["", " ", key[:-1], f"{key} ", key.upper(), hash_of(key), unknown]
    wrong += [id_of(key), credentials.of_hash(hash_of(key)), "local", "alice"]
    before = world(ops.Count())["count"]
    for bearer in wrong:
        for _ in range(2):
            with pytest.raises(errors.Unauthenticated, match="keys new NAME --bearer"):
                world(ops.AddMemory("x"), bearer=bearer, **given)
    assert world(ops.Count())["count"] == before
    assert denied_lines(world) == [
        ("(unknown)", "add_memory", f"bearer:{id_of(bearer)}", "unknown key") for bearer in wrong
    ]
    world.orchestrator.parts.attempts.flush()
    told = denied_lines(world)[len(wrong) :]
    assert {line[3] for line in told} == {"unknown key: 1 more attempt"} and len(told) == len(wrong)


def test_a_revoked_bearer_key_leaves_the_others_and_is_never_known_again(world: World) -> None:
    lost, kept = bearing(world, "alice", (HOME, "write")), one_more(world, "alice", "kept")
    answer = world(ops.RevokeBearerKey("alice", id_of(lost)))
    states = {k["key_id"]: k["revoked_at"] is None for k in answer["identity"]["bearer_keys"]}
    assert states == {id_of(lost): False, id_of(kept): True}
    with pytest.raises(errors.Unauthenticated):
        world(ops.WhoAmI(), bearer=lost)
    assert denied_lines(world) == [("alice", "who_am_i", f"bearer:{id_of(lost)}", "revoked key")]
    assert world(ops.WhoAmI(), bearer=kept)["identity"] == "alice"
    again = world(ops.RevokeBearerKey("alice", id_of(lost)))
    assert again["identity"] == answer["identity"], "the moment stays what it was"
    world(ops.CreateIdentity("bob"))
    for name in ("alice", "bob"):
        with pytest.raises(errors.AlreadyExists, match="was revoked; it was one of 'alice'"):
            world(ops.CreateBearerKey(name, hash_of(lost)))
        with pytest.raises(errors.AlreadyExists, match="is one of 'alice'"):
            world(ops.CreateBearerKey(name, hash_of(kept)))
    with pytest.raises(errors.NotFound):
        world(ops.RevokeBearerKey("bob", id_of(kept)))
    assert world(ops.WhoAmI(), bearer=kept)["identity"] == "alice"


def test_with_the_identity_go_all_its_bearer_keys_for_good(world: World) -> None:
    one, two = bearing(world, "alice", ("*", "admin")), one_more(world, "alice")
    gone = world(ops.RevokeAccess("alice"))["identity"]
    assert all(key["revoked_at"] == gone["revoked_at"] for key in gone["bearer_keys"])
    with pytest.raises(errors.NotFound, match="was revoked"):
        world(ops.CreateBearerKey("alice", "0" * 64))
    world(ops.CreateIdentity("alice"))
    world(ops.GrantAccess("alice", "*", "admin"))
    for key in (one, two):
        with pytest.raises(errors.Unauthenticated):
            world(ops.WhoAmI(), bearer=key)
    assert world(ops.WhoAmI(), bearer=one_more(world, "alice"))["identity"] == "alice"


def test_what_is_known_survives_a_restart_and_is_followed_by_others(world: World) -> None:
    key, gone = bearing(world, "alice", (HOME, "read")), one_more(world, "alice", "gone")
    world(ops.RevokeBearerKey("alice", id_of(gone)))
    other = Keyring(world.storage, None)
    world.run(other.load())
    assert other.identity(credentials.of_bearer(key)) is not None
    assert other.revoked_name(credentials.of_bearer(gone)) == "alice"
    assert other.strangers_count == 0, "nobody could connect by these alone"
    before = world(ops.ListIdentities())
    world.restart()
    assert world(ops.ListIdentities()) == before
    assert world(ops.WhoAmI(), bearer=key)["identity"] == "alice"
    with pytest.raises(errors.Unauthenticated):
        world(ops.WhoAmI(), bearer=gone)


def test_what_is_under_way_is_neither_done_nor_told_after_its_bearer_key_was_revoked(
    world: World,
) -> None:
    key = bearing(world, "alice", (HOME, "write"))
    stored = world(ops.AddMemory("tea", namespace=HOME), bearer=key)["memory_id"]

    async def overtaken(by: Any) -> Any:
        """The answer to a read that waits for the change that ends its right."""
        present = await world.ask(ops.Ping())
        reading = ops.GetMemory(stored, min_seq=present["seq"] + 1)
        waiting = asyncio.ensure_future(world.ask(reading, bearer=key))
        await asyncio.sleep(0)  # it is under way, and waits
        assert (await world.ask(by))["status"] == "success"
        return await waiting

    told = world.run(overtaken(ops.GrantAccess("alice", HOME, "admin")))
    assert (told["error"]["code"], told["error"]["retryable"]) == ("overloaded", True)
    begun = known(world, credentials.of_bearer(key))
    told = world.run(overtaken(ops.RevokeBearerKey("alice", id_of(key))))
    assert told["error"]["code"] == "unauthenticated" and "tea" not in str(told)
    shown = f"bearer:{id_of(key)}"
    assert journal(world)[-1] == ("alice", "get_memory", shown, "denied", "revoked key")
    # As a write is, whose vector took long.
    with pytest.raises(errors.Unauthenticated, match="bearer key"):
        world(ops.AddMemory("too late", namespace=HOME), begun)
    assert world(ops.Count())["count"] == 1


@pytest.mark.parametrize("ending", ["key", "identity", "grants"])
def test_who_waits_for_changes_by_a_bearer_key_is_told_when_it_ends(
    world: World, ending: str
) -> None:
    key, other = bearing(world, "alice", (HOME, "read")), one_more(world, "alice", "other")
    changes: dict[str, tuple[Any, str]] = {
        "key": (ops.RevokeBearerKey("alice", id_of(key)), "unauthenticated"),
        "identity": (ops.RevokeAccess("alice"), "unauthenticated"),
        "grants": (ops.GrantAccess("alice", "user:bob", "read"), "overloaded"),
    }
    change, code = changes[ending]

    async def scene() -> str:
        async def wait(bearer: str) -> Any:
            return await world.ask(ops.ReadChanges(wait_s=WAIT_S), bearer=bearer)

        waiting, beside = asyncio.create_task(wait(key)), asyncio.create_task(wait(other))
        room = world.orchestrator.dispatcher._room
        await until(lambda: room.count == 2)
        assert (await world.ask(change))["status"] == "success"
        answer = await waiting
        assert beside.done() == (ending != "key")
        if ending == "key":
            await world.ask(ops.AddMemory("Tea", namespace=HOME))
            assert (await beside)["changes"][0]["operation"] == "add_memory"
        told: str = answer["error"]["code"]
        return told

    assert world.run(scene()) == code


def test_of_a_key_only_its_hash_is_kept_and_nobody_is_told_the_key(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    key = bearing(world, "alice", (HOME, "write"))
    revoked, unknown = one_more(world, "alice"), new_bearer_key()
    world(ops.RevokeBearerKey("alice", id_of(revoked)))
    answers = []
    for bearer in (key, revoked, unknown, "x" * (BEARER_CHARS_MAX + 1)):
        for operation in (ops.AddMemory("x", namespace=HOME), ops.Stats(), ops.AuditLog()):
            body = msgspec.msgpack.encode(operation)
            answers.append(world.send(operation.spec.name, body, bearer=bearer, key=f"{id(body)}"))
    answers.append(world(ops.ListIdentities()))
    world.orchestrator.parts.attempts.flush()
    rows, said = everything(world), capfd.readouterr()
    for secret in (key, revoked, unknown):
        assert secret[len(PREFIX) :] not in f"{answers} {rows} {said.out} {said.err}"
    assert hash_of(key) in rows and hash_of(key) not in str(answers)
    assert hash_of(unknown) not in rows, "of what is unknown there is the id alone"


def test_the_length_of_a_bearer_key_is_bounded(world: World) -> None:
    for length, error in (
        (BEARER_CHARS_MAX, errors.Unauthenticated),
        (BEARER_CHARS_MAX + 1, errors.LimitExceeded),
        (1_000_000, errors.LimitExceeded),
    ):
        with pytest.raises(error) as caught:
            world(ops.Ping(), bearer="k" * length)
        assert "kkk" not in str(caught.value)


def test_what_is_no_operation_is_named_in_no_line(world: World) -> None:
    refused = world.send("drop_everything", b"\x80", bearer="wrong")
    assert refused["error"]["code"] == "unauthenticated"
    assert [line[1] for line in denied_lines(world)] == [attempts.UNREADABLE]


def test_what_is_no_hash_label_or_id_is_refused(world: World) -> None:
    world(ops.CreateIdentity("alice"))
    good = "0f" * 32
    for key_hash in ("", good[:-1], good + "0", good.upper(), new_bearer_key(), f"{good}\n"):
        with pytest.raises(errors.InvalidArgument, match="key_hash"):
            world(ops.CreateBearerKey("alice", key_hash))
    for label in ("", "a\nb", "a\x00", "x" * 129, "a\n"):
        with pytest.raises(errors.InvalidArgument, match="label"):
            world(ops.CreateBearerKey("alice", good, label))
    for name in ("nobody", "local", "orchestrator"):
        with pytest.raises(errors.NotFound):
            world(ops.CreateBearerKey(name, good))
    for key_id in ("", "0f", good, "0F" * 6, "%%%%%%%%%%%%"):
        with pytest.raises(errors.InvalidArgument, match="key_id"):
            world(ops.RevokeBearerKey("alice", key_id))
    assert world(ops.ListIdentities())["identities"][0]["bearer_keys"] == []


def test_two_keys_are_never_named_alike(world: World) -> None:
    world(ops.CreateIdentity("alice"))
    world(ops.CreateIdentity("bob"))
    world(ops.CreateBearerKey("alice", "0f" * 32))
    with pytest.raises(errors.AlreadyExists):
        world(ops.CreateBearerKey("bob", "0f" * 6 + "a" * 52))
    world(ops.CreateBearerKey("bob", "0f" * 5 + "0e" + "a" * 52))


def test_bearer_keys_are_bounded_and_the_oldest_that_is_revoked_makes_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BEARER_KEYS_MAX", 3)
    first = bearing(world, "alice")
    second, third = one_more(world, "alice"), one_more(world, "alice")
    with pytest.raises(errors.LimitExceeded) as caught:
        one_more(world, "alice")
    assert caught.value.details["limit"] == "bearer_keys_max"
    world(ops.RevokeBearerKey("alice", id_of(second)))
    world(ops.RevokeBearerKey("alice", id_of(first)))
    fourth = one_more(world, "alice")
    [identity] = world(ops.ListIdentities())["identities"]
    ids = [key["key_id"] for key in identity["bearer_keys"]]
    assert ids == [id_of(first), id_of(third), id_of(fourth)]
    with pytest.raises(errors.Unauthenticated):
        world(ops.WhoAmI(), bearer=second)


def test_every_change_has_its_line_and_is_made_once(world: World) -> None:
    world(ops.CreateIdentity("alice"))
    key_hash = hash_of(new_bearer_key())
    operation = ops.CreateBearerKey("alice", key_hash, "laptop")
    assert world(operation, key="k") == world(operation, key="k")
    world(ops.RevokeBearerKey("alice", key_id_of(key_hash)))
    key_id = key_id_of(key_hash)
    assert journal(world)[1:] == [
        ("local", "create_bearer_key", "alice", None, f"bearer key {key_id}"),
        ("local", "revoke_bearer_key", "alice", None, f"bearer key {key_id} revoked"),
    ]


def test_a_bearer_key_does_not_let_anybody_give_themselves_more(world: World) -> None:
    key = bearing(world, "alice", ("user", "admin"), ("app", "admin"))
    for operation in (
        ops.CreateBearerKey("alice", "0f" * 32),
        ops.RevokeBearerKey("alice", id_of(key)),
        ops.GrantAccess("alice", "*", "admin"),
    ):
        with pytest.raises(errors.Forbidden):
            world(operation, bearer=key)
    assert world(ops.WhoAmI(), bearer=key)["identity"] == "alice"
