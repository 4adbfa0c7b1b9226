"""Runs of jobs: asked for, begun once, told of, lost with their scheduler, on every storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.config import EmbeddingSettings, SchedulerSettings, Settings
from recollect.protocol import errors
from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation
from tests.harness.worlds import World

NOON = "2026-01-31T12:00:00.000000Z"
ONE = "2026-01-31T13:00:00.000000Z"


class Scheduler:
    """What a scheduler says to the orchestrator."""

    def __init__(self, world: World, holder: str) -> None:
        self.world = world
        lease = world(ops.AcquireLease("scheduler", holder, 60.0))
        assert lease["acquired"]
        self.holder, self.token = holder, lease["token"]
        self(ops.AnnounceJobs([job("decay"), job("backup")]))

    def __call__(self, operation: Operation[Any]) -> Any:
        return self.world(operation, fence=f"scheduler/{self.token}")

    def stop(self) -> None:
        self.world(ops.ReleaseLease("scheduler", self.holder, self.token))


def job(name: str) -> ops.JobAnnouncement:
    return ops.JobAnnouncement(name, f"Does {name}.", True, "@hourly", {"limit": 5}, ONE)


def statuses(world: World, job: str | None = None) -> list[str]:
    return [run["run_status"] for run in world(ops.JobHistory(job))["runs"]]


def test_jobs_are_listed_with_what_became_of_them(world: World) -> None:
    assert world(ops.ListJobs()) == {
        "status": "success",
        "jobs": [],
        "count": 0,
        "open": [],
        "scheduler": {"alive": False, "holder": None, "renewed_at": None, "expires_at": None},
    }
    anna = Scheduler(world, "anna")
    begun = anna(ops.BeginJob("decay", scheduled_at=NOON))
    run_id = begun["run"]["job_run_id"]
    assert begun["begun"]
    anna(ops.ReportJob(run_id, {"examined": 3}))
    [opened] = world(ops.ListJobs())["open"]
    assert (opened["run_status"], opened["progress"]) == ("running", {"examined": 3})
    world.clock.advance(2)
    done = anna(ops.FinishJob(run_id, "done", counts={"archived": 2, "run_id": "r"}))["run"]
    assert done["counts"] == {"archived": 2, "run_id": "r"}
    assert done["duration_s"] == pytest.approx(2, abs=0.1)
    listed = world(ops.ListJobs())
    assert listed["scheduler"]["alive"] and listed["scheduler"]["holder"] == "anna"
    backup, decay = listed["jobs"]
    assert (backup["name"], backup["last"], backup["covered_until"]) == ("backup", None, None)
    assert (decay["limits"], decay["next_at"]) == ({"limit": 5}, ONE)
    assert (decay["last"], decay["covered_until"]) == (done, NOON)
    assert world(ops.GetJobRun(run_id))["run"] == done
    anna.stop()
    assert not world(ops.ListJobs())["scheduler"]["alive"]


def test_a_moment_of_a_schedule_has_one_run(world: World) -> None:
    anna = Scheduler(world, "anna")
    first = anna(ops.BeginJob("decay", scheduled_at=NOON))
    # The same again by the same holder is a lost answer; it goes on with what it began.
    assert anna(ops.BeginJob("decay", scheduled_at=NOON)) == first
    anna(ops.FinishJob(first["run"]["job_run_id"], "done"))
    again = anna(ops.BeginJob("decay", scheduled_at=NOON))
    assert (again["begun"], again["run"]["run_status"]) == (False, "done")
    assert anna(ops.BeginJob("decay", scheduled_at=ONE))["begun"]
    assert statuses(world) == ["running", "done"]


def test_a_run_is_lost_with_its_scheduler_and_its_moment_is_done_anew(world: World) -> None:
    anna = Scheduler(world, "anna")
    lost = anna(ops.BeginJob("decay", scheduled_at=NOON))["run"]
    world(ops.AcquireLease("scheduler", "anna"))
    with pytest.raises(errors.LeaseLost):
        anna(ops.FinishJob(lost["job_run_id"], "done"))
    ben = Scheduler(world, "anna")
    assert world(ops.GetJobRun(lost["job_run_id"]))["run"]["run_status"] == "lost"
    covered = world(ops.ListJobs())["jobs"][1]["covered_until"]
    assert covered is not None and covered < NOON
    with pytest.raises(errors.LeaseLost):
        ben(ops.FinishJob(lost["job_run_id"], "done"))
    anew = ben(ops.BeginJob("decay", scheduled_at=NOON, cause="missed"))
    assert anew["begun"] and anew["run"]["job_run_id"] != lost["job_run_id"]
    ben(ops.FinishJob(anew["run"]["job_run_id"], "done"))
    assert statuses(world, "decay") == ["done", "lost"]
    begun = ben(ops.BeginJob("decay", scheduled_at=ONE))["run"]
    ben.stop()
    assert world(ops.GetJobRun(begun["job_run_id"]))["run"]["run_status"] == "lost"


def test_a_run_that_was_asked_for_is_begun_by_one_scheduler(world: World) -> None:
    with pytest.raises(errors.NotFound, match="no scheduler"):
        world(ops.RequestJob("decay"))
    anna = Scheduler(world, "anna")
    with pytest.raises(errors.NotFound, match="backup, decay"):
        world(ops.RequestJob("decoy"))
    run_id = world(ops.RequestJob("decay", True), agent="me")["job_run_id"]
    assert world(ops.RequestJob("decay", True))["job_run_id"] == run_id
    assert world(ops.RequestJob("decay"))["job_run_id"] != run_id
    first, second = world(ops.ListJobs())["open"]
    assert (first["run_status"], first["requested_by"], first["dry_run"]) == (
        "requested",
        "me",
        True,
    )
    assert not second["dry_run"]
    begun = anna(ops.BeginJob("decay", job_run_id=run_id))
    assert begun["begun"] and begun["run"]["dry_run"] and begun["run"]["cause"] == "request"
    anna(ops.FinishJob(run_id, "failed", error="the disk is full"))
    assert not anna(ops.BeginJob("decay", job_run_id=run_id))["begun"]
    assert world(ops.GetJobRun(run_id))["run"]["error"] == "the disk is full"


def test_what_schedulers_do_needs_their_lease(world: World) -> None:
    anna = Scheduler(world, "anna")
    run_id = world(ops.RequestJob("decay"))["job_run_id"]
    for operation in (
        ops.AnnounceJobs([job("decay")]),
        ops.BeginJob("decay", job_run_id=run_id),
        ops.ReportJob(run_id, {}),
        ops.FinishJob(run_id, "done"),
    ):
        with pytest.raises(errors.InvalidArgument, match="lease"):
            world(operation)
    for begin in (
        ops.BeginJob("decay"),
        ops.BeginJob("decay", job_run_id=run_id, scheduled_at=NOON),
    ):
        with pytest.raises(errors.InvalidArgument):
            anna(begin)
    with pytest.raises(errors.NotFound):
        anna(ops.BeginJob("decoy", scheduled_at=NOON))
    with pytest.raises(errors.InvalidArgument):
        anna(ops.AnnounceJobs([job("decay"), job("decay")]))


def test_history_is_paged_and_bounded(storage_url: str, tmp_path: Path) -> None:
    history_max = 5
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"),
        scheduler=SchedulerSettings(history_max=history_max),
    )
    world = World(storage_url, tmp_path / "data", settings)
    anna = Scheduler(world, "anna")
    for moment in range(history_max + 3):
        run = anna(ops.BeginJob("decay", scheduled_at=float(moment)))["run"]
        anna(ops.FinishJob(run["job_run_id"], "done"))
    first = world(ops.JobHistory(limit=2))
    second = world(ops.JobHistory(limit=2, cursor=first["cursor"]))
    moments = [run["scheduled_at"] for run in first["runs"] + second["runs"]]
    assert moments == sorted(moments, reverse=True)
    assert len(set(moments)) == 4
    kept = world(ops.JobHistory("decay", limit=1000))
    assert (kept["count"], kept["cursor"]) == (history_max, None)
    world.close()


def test_runs_and_reports_leave_nothing_in_the_audit(world: World) -> None:
    anna = Scheduler(world, "anna")
    before = world(ops.AuditLog(limit=1000))["count"]
    run = anna(ops.BeginJob("decay", scheduled_at=NOON))["run"]
    anna(ops.ReportJob(run["job_run_id"], {"step": 1}))
    anna(ops.FinishJob(run["job_run_id"], "done"))
    assert world(ops.AuditLog(limit=1000))["count"] == before
    world(ops.RequestJob("decay"))
    assert world(ops.AuditLog(limit=1000))["count"] == before + 1
