"""P12: a clock that jumps a day harms nothing: nothing fades or expires by it, leases and breakers
stay as they are, and deadlines hold."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from recollect.client import Breaker, MemoryClient, Retry, Timeouts, sans_io
from recollect.orchestrator.clock import JUMP_NS, SystemClock
from recollect.orchestrator.running.lifecycle import Orchestrator
from recollect.protocol import operations as ops
from recollect.protocol.errors import DeadlineExceeded, RecollectError
from tests.faults.ledger import Trial
from tests.faults.tools.clocks import Machine
from tests.harness.ports import free_port
from tests.harness.processes import OrchestratorProcess
from tests.harness.worlds import World

HOUR_S = 3_600
DAY_S = 24 * HOUR_S
JUMPS_S = (DAY_S, -DAY_S)
LONG_S = 30 * 365 * DAY_S


class MachineWorld(World):
    """An orchestrator with the clock that it has in service, on such a machine."""

    def __init__(self, data: Path) -> None:
        self.machine = Machine()
        super().__init__("sqlite", data)

    async def _open(self) -> Orchestrator:
        self.system_clock = SystemClock(self.machine.wall_ns, self.machine.steady_ns)
        orchestrator = Orchestrator(self.settings, self.system_clock)
        await orchestrator.start()
        return orchestrator

    def now_s(self) -> float:
        return self.system_clock.now_us() / 1e6

    def set_wall(self, ahead_s: float) -> None:
        self.machine.set_wall(ahead_s)
        self.system_clock.follow()


class Filled:
    """Memories each of which something would become of within a day."""

    def __init__(self, world: MachineWorld) -> None:
        self.deleted = self.add(world, "Deleted")
        world(ops.DeleteMemory(self.deleted))
        deleted_s = world.now_s()
        self.old = [self.add(world, f"Old {n}", memory_tier="short") for n in range(20)]
        # By their own measure these have half a day left.
        [fades_at] = {m["fades_at"][:16] for m in listed(world) if m["id"] == self.old[0]}
        world.machine.pass_time(_seconds(fades_at) - world.now_s() - 12 * HOUR_S)
        # After so many days what was deleted is to be purged: in half a day.
        self.deleted_days = (world.now_s() - deleted_s) / DAY_S + 0.5
        self.expiring = self.add(world, "A pass", expires_at=world.now_s() + 12 * HOUR_S)
        self.lease = world(ops.AcquireLease("jobs", "one", 15.0))

    def add(self, world: MachineWorld, content: str, **given: Any) -> str:
        memory_id: str = world(ops.AddMemory(content, namespace="user:anna", **given))["memory_id"]
        return memory_id


def listed(world: MachineWorld) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world(ops.ListMemories(limit=100))["memories"]
    return found


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(f"{moment}:00+00:00").timestamp()


def outcome(world: MachineWorld, operation: Any, **envelope: Any) -> str:
    try:
        return str(world(operation, **envelope)["status"])
    except RecollectError as error:
        return error.code


def check_unmoved(trial: Trial, case: str, world: MachineWorld, filled: Filled) -> None:
    """Nothing became of anything."""
    faded = world(ops.FadeMemories())
    trial.check(faded["examined"] == 0, f"{case}: {faded['examined']} have faded")
    kept = world(ops.ApplyRetention(deleted_days=filled.deleted_days))
    trial.check(kept["expired"] + kept["purged_deleted"] == 0, f"{case}: {kept} are gone")
    trial.check(outcome(world, ops.GetMemory(filled.expiring)) == "success", f"{case}: expired")
    trimmed = world(ops.TrimAnswers())
    trial.check(trimmed["answers"] == 0, f"{case}: an answer was forgotten")
    trial.case(4)


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_a_jump_under_a_running_orchestrator_is_not_followed(tmp_path: Path, jump_s: int) -> None:
    case = f"jump by {jump_s} s"
    world = MachineWorld(tmp_path / "data")
    try:
        with Trial("P12") as trial:
            filled = Filled(world)
            check_unmoved(trial, "before", world, filled)
            first = world(ops.AddMemory("Once"), key="key")
            before_s = world.now_s()
            world.set_wall(jump_s)
            check_unmoved(trial, case, world, filled)
            trial.check(abs(world.now_s() - before_s) < HOUR_S, f"{case}: it was followed")
            offset_s = world(ops.Metrics())["clock_offset_s"]
            trial.check(abs(offset_s - jump_s) < 60, f"{case}: shown as {offset_s}")
            again = world(ops.AddMemory("Once"), key="key")
            trial.check(again == first, f"{case}: a retry had a second effect")
            later = filled.add(world, "Later")
            trial.check(later > first["memory_id"], f"{case}: ids are out of order")
            # A lease is still its holder's.
            other = world(ops.AcquireLease("jobs", "other", 15.0))
            trial.check(not other["acquired"], f"{case}: a lease was given to another")
            renewed = world(ops.RenewLease("jobs", "one", filled.lease["token"], 15.0))
            trial.check(renewed["status"] == "success", f"{case}: a lease was lost")
            # Deadlines are moments of the orchestrator's clock, which replies tell.
            now_ms = int(world.now_s() * 1000)
            in_time = outcome(world, ops.Ping(), deadline_ms=now_ms + 5_000)
            late = outcome(world, ops.Ping(), deadline_ms=now_ms - 1)
            trial.check(
                (in_time, late) == ("success", DeadlineExceeded.code),
                f"{case}: deadlines came to {in_time}, {late}",
            )
            trial.case(8)
            # Time itself goes on.
            world.machine.pass_time(13 * HOUR_S)
            expired = outcome(world, ops.GetMemory(filled.expiring))
            trial.check(expired == "not_found", f"{case}: what expires does not")
            faded = world(ops.FadeMemories())
            trial.check(faded["to_medium"] == len(filled.old), f"{case}: {faded} have faded")
            trial.case(2)
    finally:
        world.close()


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_a_start_with_a_wrong_clock_takes_nothing_for_good(tmp_path: Path, jump_s: int) -> None:
    """A restart has to believe the clock. What is hidden by that is there again with the right one,
    and what was moved can be brought back."""
    case = f"start at {jump_s} s"
    world = MachineWorld(tmp_path / "data")
    try:
        with Trial("P12") as trial:
            filled = Filled(world)
            world.run(world.orchestrator.stop())
            world.machine.set_wall(jump_s)
            world.open()
            kept = world(ops.ApplyRetention(deleted_days=filled.deleted_days))
            trial.check(kept["expired"] + kept["purged_deleted"] == 0, f"{case}: {kept} are gone")
            trial.check(world(ops.TrimAnswers())["answers"] == 0, f"{case}: answers are gone")
            run = world(ops.FadeMemories())
            world.run(world.orchestrator.stop())
            world.machine.set_wall(0)
            world.open()
            if run["run_id"] is not None:
                undone = world(ops.Undo(run["run_id"]))
                trial.check(undone["skipped"] == [], f"{case}: {undone['skipped']} stay moved")
            check_unmoved(trial, f"{case}, set right", world, filled)
            tiers = {m["memory_tier"] for m in listed(world) if m["id"] in filled.old}
            trial.check(tiers == {"short"}, f"{case}: {tiers}")
            restored = outcome(world, ops.Restore(filled.deleted))
            trial.check(restored == "success", f"{case}: what was deleted is {restored}")
            trial.case(5)
    finally:
        world.close()


def test_a_clock_far_ahead_does_not_empty_a_namespace(tmp_path: Path) -> None:
    world = MachineWorld(tmp_path / "data")
    try:
        with Trial("P12") as trial:
            for n in range(20):
                world(ops.AddMemory(f"Number {n}", memory_tier="long", namespace="user:anna"))
            world.run(world.orchestrator.stop())
            world.machine.set_wall(LONG_S)
            world.open()
            for _ in range(3):
                world(ops.FadeMemories())
            left = world(ops.Count(namespace="user:anna"))["count"]
            trial.check(left == 16, f"{left} of 20 are left after a start {LONG_S} s ahead")
            trial.case()
    finally:
        world.close()


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_a_client_whose_wall_clock_jumps_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: int
) -> None:
    with Trial("P12") as trial, OrchestratorProcess(tmp_path / "data") as process:
        with process.client() as before:
            before.ping()
            down = MemoryClient(
                f"tcp://127.0.0.1:{free_port()}",
                breaker=Breaker(fail_max=1, reset_timeout_s=1_000.0),
                retry=Retry(attempts_max=1),
                timeouts=Timeouts(connect_s=0.05),
            )
            with down, pytest.raises(RecollectError):
                down.ping(timeout=0.2)
            opened = down.get_circuit_breaker_status()
            wall = time.time
            jumped = SimpleNamespace(monotonic=time.monotonic, time=lambda: wall() + jump_s)
            monkeypatch.setattr(sans_io, "time", jumped)
            monkeypatch.setattr(time, "time", jumped.time)
            still = down.get_circuit_breaker_status()
            trial.check(
                (opened["state"], still["state"]) == ("open", "open")
                and 0 <= opened["retry_in_s"] - still["retry_in_s"] < 100,
                f"jump by {jump_s} s: the breaker was moved from {opened} to {still}",
            )
            trial.check(before.ping(timeout=5.0)["ready"], "a client that was there fails")
        # One that comes now believes its wall clock until the first reply.
        with process.client() as after:
            trial.check(after.ping(timeout=5.0)["ready"], "a client that comes fails")
        trial.case(3)


def test_small_drifts_are_followed_slowly() -> None:
    with Trial("P12") as trial:
        for ahead_s in (0.9 * JUMP_NS / 1e9, -0.9 * JUMP_NS / 1e9):
            machine = Machine()
            clock = SystemClock(machine.wall_ns, machine.steady_ns)
            machine.set_wall(ahead_s)
            last_us, back_us = clock.now_us(), 0
            for _ in range(6_000):
                machine.pass_time(1.0)
                clock.follow()
                now_us = clock.now_us()
                back_us = max(back_us, last_us - now_us)
                last_us = now_us
            trial.check(abs(clock.offset_s) < 0.001, f"{ahead_s} s became {clock.offset_s}")
            trial.check(back_us <= 0, f"time went back by {back_us} us")
            trial.case()
