"""Any history of a few keys reads like that of a simple model, at every moment of it."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from recollect.orchestrator.clock import to_iso
from recollect.protocol import errors
from recollect.protocol.operation import Operation
from recollect.protocol.operations import (
    DeleteByKey,
    GetByKey,
    HistoryByKey,
    Put,
    RestoreByKey,
    SearchNamespace,
    UpdateByKey,
)
from tests.harness.worlds import World

KEYS = ("a", "b")
SECOND_US = 1_000_000
keys = st.sampled_from(KEYS)
values = st.integers(0, 9) | st.none() | st.text("xyz", max_size=3) | st.lists(st.booleans())
expected = st.none() | st.integers(0, 4)
namespaces = itertools.count(1)


class Version(NamedTuple):
    """What a memory was, until the next one."""

    value: Any
    expires_us: int | None = None
    deleted: bool = False

    def alive(self, now_us: int) -> bool:
        return not self.deleted and (self.expires_us is None or self.expires_us > now_us)


class Memory:
    """All versions of one memory."""

    def __init__(self, first: Version) -> None:
        self.versions = [first]

    @property
    def present(self) -> Version:
        return self.versions[-1]


Shown = tuple[int, Any]
"""Version and value."""


class KeyedMemories(RuleBasedStateMachine):
    """The service and the model, side by side, in a namespace of their own."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.home = f"project:run{next(namespaces)}"
        # Of each key all that had it, in the order in which they lost it; the last may have it.
        self.had: dict[str, list[Memory]] = {key: [] for key in KEYS}
        self.seen: list[tuple[int, dict[str, Shown | None]]] = []

    def now_us(self) -> int:
        return self.world.clock.now_us()

    def last(self, key: str) -> Memory | None:
        return self.had[key][-1] if self.had[key] else None

    def living(self, key: str) -> Memory | None:
        last = self.last(key)
        return last if last is not None and last.present.alive(self.now_us()) else None

    def shown(self, key: str) -> Shown | None:
        living = self.living(key)
        return None if living is None else (len(living.versions), living.present.value)

    def ask(self, operation: Operation[Any], error: type[Exception] | None) -> Any:
        """The answer; or nothing, if it was refused as it should be."""
        try:
            answer = self.world(operation)
        except errors.RecollectError as refused:
            assert error is not None and isinstance(refused, error), refused
            return None
        assert error is None, f"{operation} should have been refused by {error}"
        return answer

    @rule(key=keys, value=values, wanted=expected, fleeting=st.booleans())
    def put(self, key: str, value: Any, wanted: int | None, fleeting: bool) -> None:
        living, last = self.living(key), self.last(key)
        options: dict[str, Any] = {}
        expires_us = living.present.expires_us if living else None
        if fleeting:
            expires_us = self.now_us() + 60 * SECOND_US
            options["expires_at"] = to_iso(expires_us)
        error: type[Exception] | None = None
        if living is not None:
            if wanted == 0:
                error = errors.AlreadyExists
            elif wanted not in (None, len(living.versions)):
                error = errors.VersionConflict
        elif wanted not in (None, 0):
            error = errors.VersionConflict
        operation = Put(self.home, key, value, expected_version=wanted, **options)
        answer = self.ask(operation, error)
        if answer is None:
            return
        new = Version(value, expires_us)
        if living is not None:
            living.versions.append(new)
        else:
            if last is not None and not last.present.deleted:
                last.versions.append(last.present._replace(deleted=True))
            self.had[key].append(Memory(new))
        assert answer["created"] is (living is None)
        assert (answer["version"], value) == self.shown(key)

    @rule(key=keys, value=values, wanted=st.none() | st.integers(1, 4))
    def update(self, key: str, value: Any, wanted: int | None) -> None:
        living = self.living(key)
        error = self.change_error(living, wanted)
        if self.ask(UpdateByKey(self.home, key, value, expected_version=wanted), error):
            assert living is not None
            living.versions.append(living.present._replace(value=value))

    @rule(key=keys, wanted=st.none() | st.integers(1, 4))
    def delete(self, key: str, wanted: int | None) -> None:
        living = self.living(key)
        error = self.change_error(living, wanted)
        if self.ask(DeleteByKey(self.home, key, expected_version=wanted), error):
            assert living is not None
            living.versions.append(living.present._replace(deleted=True))

    def change_error(self, living: Memory | None, wanted: int | None) -> type[Exception] | None:
        if living is None:
            return errors.NotFound
        return None if wanted in (None, len(living.versions)) else errors.VersionConflict

    @rule(key=keys)
    def restore_what_is_gone(self, key: str) -> None:
        last, living = self.last(key), self.living(key)
        error: type[Exception] | None = None
        if last is None:
            error = errors.NotFound
        elif living is not None:
            # What others had before it could be meant, if there are any.
            several = len(self.had[key]) > 1
            error = errors.AlreadyExists if several else errors.InvalidArgument
        if self.ask(RestoreByKey(self.home, key), error):
            assert last is not None
            self.bring_back(last, last.present)

    @rule(key=keys, number=st.integers(1, 5))
    def restore_a_version(self, key: str, number: int) -> None:
        last = self.last(key)
        error: type[Exception] | None = None
        if last is None or number > len(last.versions):
            error = errors.NotFound
        elif last.versions[number - 1].deleted:
            error = errors.InvalidArgument
        if self.ask(RestoreByKey(self.home, key, number), error):
            assert last is not None
            self.bring_back(last, last.versions[number - 1])

    def bring_back(self, memory: Memory, version: Version) -> None:
        expires_us = version.expires_us
        if expires_us is not None and expires_us <= self.now_us():
            expires_us = None
        memory.versions.append(Version(version.value, expires_us))

    @rule()
    def wait(self) -> None:
        self.world.clock.advance(3600)

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """What was seen at a moment is what is read of it now, whatever happened since."""
        if not self.seen:
            return
        moment_us, then = data.draw(st.sampled_from(self.seen))
        for key in KEYS:
            assert self.read(key, as_of=to_iso(moment_us)) == then[key]

    @rule(key=keys)
    def read_all_versions(self, key: str) -> None:
        last = self.last(key)
        if last is None:
            self.ask(HistoryByKey(self.home, key), errors.NotFound)
            return
        versions = self.world(HistoryByKey(self.home, key))["versions"]
        assert [
            Version(v["memory"]["value"], deleted=v["memory"]["deleted_at"] is not None)._replace(
                expires_us=was.expires_us
            )
            for v, was in zip(versions, reversed(last.versions), strict=True)
        ] == last.versions[::-1]
        number = 1 + len(last.versions) // 2
        if not last.versions[number - 1].deleted:
            assert self.read(key, version=number) == (number, last.versions[number - 1].value)

    def read(self, key: str, **options: Any) -> Shown | None:
        try:
            memory = self.world(GetByKey(self.home, key, **options))["memory"]
        except errors.NotFound:
            return None
        return memory["version"], memory["value"]

    @invariant()
    def the_present_is_as_it_should_be(self) -> None:
        then = {key: self.shown(key) for key in KEYS}
        assert {key: self.read(key) for key in KEYS} == then
        self.seen.append((self.now_us(), then))
        found = self.world(SearchNamespace(self.home))["memories"]
        assert {m["key"]: (m["version"], m["value"]) for m in found} == {
            key: shown for key, shown in then.items() if shown is not None
        }


def test_every_history_of_keys_reads_like_that_of_a_model(world: World) -> None:
    run_state_machine_as_test(
        lambda: KeyedMemories(world),  # type: ignore[arg-type]
        settings=settings(
            max_examples=15,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
