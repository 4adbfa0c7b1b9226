"""Whatever has happened to a store, it reads the same in another one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError
from recollect.protocol.operation import Operation
from tests.harness.exchanging import (
    answers_to,
    exported,
    lasting,
    questions_about,
    same_time,
    take_in,
)
from tests.harness.worlds import World

EXAMPLES = 20
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12
).filter(str.strip)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, width=32)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
).filter(lambda value: value not in (float("inf"), float("-inf")))
FEW = st.integers(0, 3)

Step = tuple[Any, ...]
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("add"), TEXTS, st.dictionaries(TEXTS, VALUES, max_size=2)),
    st.tuples(st.just("put"), FEW, VALUES),
    st.tuples(st.just("update"), FEW, TEXTS, st.floats(0, 1)),
    st.tuples(st.just("parent"), FEW, FEW),
    st.tuples(st.just("delete"), FEW),
    st.tuples(st.just("restore"), FEW),
    st.tuples(st.just("purge"), FEW),
    st.tuples(st.just("link"), FEW, FEW, TEXTS),
    st.tuples(st.just("group"), TEXTS),
    st.tuples(st.just("join"), FEW, FEW),
    st.tuples(st.just("session"), TEXTS),
    st.tuples(st.just("event"), FEW, VALUES),
    st.tuples(st.just("goal"), TEXTS),
    st.tuples(st.just("serve"), FEW, FEW),
    st.tuples(st.just("task"), FEW, FEW, TEXTS),
    st.tuples(st.just("step"), FEW, VALUES),
    st.tuples(st.just("decide"), TEXTS),
    st.tuples(st.just("expire"), FEW),
    st.tuples(st.just("squash")),
    st.tuples(st.just("wait"), st.integers(1, 100)),
)


class Teller:
    """Lets something happen in a namespace; what cannot happen does not."""

    def __init__(self, world: World, user: str) -> None:
        self._world = world
        self._user = user
        self.home = f"user:{user}"
        self._ids: dict[str, list[str]] = {"memory": [], "group": [], "session": [], "goal": []}
        self._actions: dict[str, Callable[..., Operation[Any] | None]] = {
            "add": lambda text, said: ops.AddMemory(text, metadata=said, namespace=self.home),
            "put": lambda n, value: ops.Put(self.home, f"key-{n}", value),
            "update": lambda n, text, much: ops.UpdateMemory(
                self._at("memory", n), {"content": text, "importance": much}
            ),
            "parent": lambda n, m: ops.UpdateMemory(
                self._at("memory", n), {"parent_id": self._at("memory", m)}
            ),
            "delete": lambda n: ops.DeleteMemory(self._at("memory", n)),
            "restore": lambda n: ops.Restore(self._at("memory", n)),
            "purge": lambda n: ops.Purge(self._at("memory", n)),
            "link": lambda n, m, kind: ops.AddRelationship(
                self._at("memory", n), self._at("memory", m), kind
            ),
            "group": lambda name: ops.CreateContextGroup(name, namespace=self.home),
            "join": lambda n, m: ops.AddToGroup(self._at("memory", n), self._at("group", m)),
            "session": lambda key: ops.CreateSession(
                self._user, state={f"user:{key}": 1, f"own {key}": 2}
            ),
            "event": lambda n, value: ops.AppendEvent(self._at("session", n), {"said": value}),
            "goal": lambda text: ops.StoreGoal(text, namespace=self.home),
            "serve": lambda n, m: ops.UpdateGoal(
                self._at("goal", n), parent_goal_id=self._at("goal", m)
            ),
            "task": lambda n, m, text: ops.SaveTask(
                text, f"task-{n}", self._at("goal", m), namespace=self.home
            ),
            "step": lambda n, value: ops.SaveStep(
                f"task-{n}", 1, "hammer", {"with": value}, value, namespace=self.home
            ),
            "decide": lambda text: ops.LogDecision(text, [text, "no"], text, namespace=self.home),
            "expire": lambda n: ops.UpdateMemory(
                self._at("memory", n), {"expires_at": self._world.clock.now_us() / 1e6 + 50}
            ),
            "squash": lambda: ops.SquashVersions(self.home, 0),
            "wait": self._wait,
        }

    def tell(self, step: Step) -> None:
        name, *args = step
        try:
            operation = self._actions[name](*args)
            answer = {} if operation is None else self._world(operation)
        except RecollectError:
            return
        for kind, ids in self._ids.items():
            if (made := answer.get(f"{kind}_id")) and made not in ids:
                ids.append(made)

    def _at(self, kind: str, place: int) -> str:
        ids = self._ids[kind]
        return ids[-1 - place % len(ids)] if ids else "nothing"

    def _wait(self, seconds: int) -> None:
        self._world.clock.advance(seconds)


def test_any_history_reads_the_same_where_it_is_taken_to(world: World, tmp_path: Path) -> None:
    source = World("sqlite", tmp_path / "source")
    examples = itertools.count()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        database=None,
    )
    @given(steps=st.lists(STEPS, min_size=3, max_size=40), size=st.sampled_from([1, 3, 500]))
    def check(steps: list[Step], size: int) -> None:
        teller = Teller(source, f"e{next(examples)}")
        began_s = source.clock.now_us() / 1e6
        for step in steps:
            teller.tell(step)
        ended_s = source.clock.now_us() / 1e6
        records = exported(source, size, teller.home)
        taken = take_in(world, records, size)
        assert (taken["problems"], taken["unresolved"]) == ([], 0)
        assert taken["added"] == len(records)
        same_time(source, world)
        assert lasting(exported(world, namespace=teller.home)) == lasting(records)
        moments = [began_s + (ended_s - began_s) * part / 3 for part in range(4)]
        asked = [*questions_about(records, moments)]
        assert answers_to(world, asked) == answers_to(source, asked)
        again = take_in(world, records)
        assert (again["present"], again["added"]) == (len(records), 0)

    try:
        check()
    finally:
        source.close()
