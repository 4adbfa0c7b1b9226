"""P17: a job has its effect once, also when its scheduler is stopped past its lease and comes back.

Holders are stopped in two ways: clients that just do nothing until they are replaced, many at once;
and real schedulers, which are stopped by SIGSTOP in the midst of whatever they are at.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recollect import AsyncMemoryClient, MemoryClient
from recollect.protocol import operations as ops
from recollect.protocol.errors import LeaseLost
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.polling import wait_for
from tests.harness.processes import OrchestratorProcess
from tests.harness.schedulers import SchedulerProcess, only_when_asked
from tests.harness.storages import CHOSEN
from tests.harness.worlds import World

TTL_S = 0.5
AT_ONCE = 50
HAPPENS_WITHIN_S = 30.0
PLACE = "project:effects"


@pytest.fixture(scope="module")
def orchestrator(
    storage: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OrchestratorProcess]:
    process = OrchestratorProcess(tmp_path_factory.mktemp("handovers") / "data")
    with process:
        yield process


async def hand_over(endpoint: str, number: int, trial: Trial) -> None:
    """One holder falls silent with a write to come; the next does the work; then the first wakes.

    Every write has a key of its own, so that nothing but the fence keeps a second effect away.
    """
    name = f"work-{number % AT_ONCE}"
    async with AsyncMemoryClient(endpoint) as first, AsyncMemoryClient(endpoint) as second:
        lease = await first.acquire_lease(name, f"first-{number}", TTL_S)
        while not lease["acquired"]:
            await asyncio.sleep(TTL_S / 5)
            lease = await first.acquire_lease(name, f"first-{number}", TTL_S)
        first.set_fence(name, lease["token"] or 0)
        until_s = time.monotonic() + HAPPENS_WITHIN_S
        taken = await second.acquire_lease(name, f"second-{number}", TTL_S)
        while not taken["acquired"] and time.monotonic() < until_s:
            await asyncio.sleep(TTL_S / 5)
            taken = await second.acquire_lease(name, f"second-{number}", TTL_S)
        if not taken["acquired"]:
            return trial.violated(f"handover {number}: nobody took over")
        second.set_fence(name, taken["token"] or 0)
        # The one that wakes may come before, with or after the one that replaced it.
        work = f"the effect of {number}"
        late = [asyncio.create_task(first.add_memory(work, namespace=PLACE)) for _ in range(2)]
        done = asyncio.create_task(second.add_memory(work, namespace=PLACE))
        late.append(asyncio.create_task(first.add_memory(work, namespace=PLACE)))
        await done
        for outcome in await asyncio.gather(*late, return_exceptions=True):
            if not isinstance(outcome, LeaseLost):
                trial.violated(f"handover {number}: a late write was answered {outcome!r}")
        second.clear_fence()
        await second.release_lease(name, f"second-{number}", taken["token"] or 0)


@pytest.mark.timeout(counts.timeout_s(60))
def test_what_a_replaced_holder_writes_has_no_effect(
    storage: str, orchestrator: OrchestratorProcess
) -> None:
    number = counts.on(storage, counts.HANDOVERS)

    async def all_of_them(trial: Trial) -> None:
        for start in range(0, number, AT_ONCE):
            batch = range(start, min(start + AT_ONCE, number))
            trial.case(len(batch))
            await asyncio.gather(*(hand_over(orchestrator.endpoint, n, trial) for n in batch))

    with Trial("P17") as trial:
        asyncio.run(all_of_them(trial))
        with orchestrator.client() as client:
            seen: Counter[str] = Counter()
            cursor = None
            while True:
                page = client.list_memories(namespace=PLACE, limit=500, cursor=cursor)
                seen.update(memory["content"] for memory in page["memories"])
                if (cursor := page["cursor"]) is None:
                    break
        for n in range(number):
            if seen[f"the effect of {n}"] != 1:
                trial.violated(f"the effect of {n} is there {seen[f'the effect of {n}']} times")


@pytest.mark.timeout(counts.timeout_s(90))
def test_a_scheduler_that_comes_back_does_nothing_twice(
    storage: str, orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    env = only_when_asked() | {"RECOLLECT_JOBS_BACKUP_KEEP": "10000"}
    chance = random.Random(counts.SEED)
    schedulers = [SchedulerProcess(orchestrator, tmp_path / name, env) for name in ("a", "b")]
    with schedulers[0] as a, schedulers[1] as b, orchestrator.client() as client:
        with Trial("P17") as trial:
            for number in range(counts.on(storage, counts.SCHEDULER_HANDOVERS)):
                trial.case()
                leader, other = leading(client, a, b)
                before = backups_of(orchestrator)
                run_id = client.request_job("backup")["job_run_id"]
                time.sleep(chance.uniform(0, 0.12))
                replace(client, leader, other)
                wait_for(
                    partial(ended, client, run_id),
                    within_s=HAPPENS_WITHIN_S,
                    what="what was asked for is done",
                )
                made = backups_of(orchestrator) - before
                status = client.get_job_run(run_id)["run"]["run_status"]
                # What was lost may have come to its end, or not; never twice.
                if made > 1 or (status == "done" and made != 1):
                    trial.violated(f"handover {number}: {status}, with {made} backups")
        assert (a.stop(), b.stop()) == (0, 0)


@pytest.mark.usefixtures("storage")
def test_a_backup_that_was_overtaken_is_not_kept(tmp_path: Path) -> None:
    """A backup is no transaction: its lease is looked at once more when it is made."""
    world = World(CHOSEN.url_of(tmp_path / "data"), tmp_path / "data")
    backup = world.storage.backup
    with Trial("P17") as trial:
        token = world(ops.AcquireLease("scheduler", "anna", 60.0))["token"]

        async def overtaken(folder: str) -> dict[str, Any]:
            made = await backup(folder)
            await world.ask(ops.AcquireLease("scheduler", "anna", 60.0))
            return made

        world.storage.backup = overtaken  # type: ignore[assignment,method-assign]
        trial.case()
        with pytest.raises(LeaseLost):
            world(ops.KeepBackup(), fence=f"scheduler/{token}")
        kept = list((tmp_path / "data" / "backups").glob("*"))
        trial.check(not kept, f"it left {kept}")
    world.close()


def replace(client: MemoryClient, leader: SchedulerProcess, other: SchedulerProcess) -> None:
    """Stop a scheduler in its tracks until another has taken over, and have it notice."""
    leader.signal(signal.SIGSTOP)
    try:
        wait_for(
            lambda: holder(client) == other.word().get("holder"),
            within_s=HAPPENS_WITHIN_S,
            what=f"the other takes over\n{other.log()}",
        )
    finally:
        leader.signal(signal.SIGCONT)
    wait_for(
        lambda: leader.state == "standby",
        within_s=HAPPENS_WITHIN_S,
        what=f"the first notices\n{leader.log()}",
    )


def backups_of(orchestrator: OrchestratorProcess) -> int:
    folder = orchestrator.data / "backups"
    return len(list(folder.iterdir())) if folder.exists() else 0


def leading(
    client: MemoryClient, a: SchedulerProcess, b: SchedulerProcess
) -> tuple[SchedulerProcess, SchedulerProcess]:
    """The one at work, and the one that stands by."""

    def settled() -> bool:
        states = {a.state, b.state}
        return states == {"leading", "standby"} and bool(client.list_jobs()["jobs"])

    wait_for(settled, within_s=HAPPENS_WITHIN_S, what=f"one leads\n{a.log()}\n{b.log()}")
    return (a, b) if a.state == "leading" else (b, a)


def holder(client: MemoryClient) -> str | None:
    return client.list_jobs()["scheduler"]["holder"]


def ended(client: MemoryClient, run_id: str) -> bool:
    return client.get_job_run(run_id)["run"]["run_status"] not in ("requested", "running")
