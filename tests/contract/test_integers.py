"""Integers at the edge of what a column holds, in every field that takes one."""

from __future__ import annotations

import msgspec

from recollect.protocol.operations import (
    REGISTRY,
    AddMemory,
    CreateContextGroup,
    CreateSession,
    ListIdentities,
)
from recollect.protocol.operations.fields import INTEGER_MAX
from tests.faults.malformed import Good
from tests.harness.worlds import World
from tests.unit.protocol.test_integers import UNBOUNDED, integers_in

REFUSED = (INTEGER_MAX + 1, 2**64 - 1, -(2**63))
# It would wait for that change.
WAITS = "min_seq"
DEFECTS = ("internal", "storage_failed")


def test_no_integer_is_too_large_for_the_storage(world: World) -> None:
    ids = [world(AddMemory(f"memory {n}", namespace="temp:malformed"))["memory_id"] for n in (1, 2)]
    group_id = world(CreateContextGroup("good"))["group_id"]
    good = Good(ids, group_id, world(CreateSession("alice"))["session_id"])

    def code(name: str, field: str, value: int) -> str:
        body = msgspec.msgpack.encode({**good.bodies[name], field: value})
        answer = world.send(name, body)
        return str(answer["error"]["code"] if answer["status"] == "error" else answer["status"])

    tried = 0
    for name, declared in REGISTRY.items():
        for path, _ in integers_in(name, msgspec.inspect.type_info(declared)):
            _, field, *deeper = path.split(".")
            if deeper or path in UNBOUNDED:
                continue
            tried += 1
            for value in REFUSED:
                assert code(name, field, value) == "invalid_argument", (path, value)
            if field != WAITS:
                assert code(name, field, INTEGER_MAX) not in DEFECTS, path
    assert tried > 30
    [stranger] = [one for one in world(ListIdentities())["identities"] if one["name"] == "stranger"]
    assert stranger["memories_max"] == INTEGER_MAX
