"""Real schedulers: what is asked for, what was missed, what hangs, and what is away."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from apscheduler.triggers.cron import CronTrigger
from msgspec import structs

from recollect import MemoryClient
from recollect.client.places import Place
from recollect.config import SchedulerSettings, Settings
from recollect.protocol.errors import RecollectError
from recollect.scheduler.connecting import Lines
from recollect.scheduler.leadership import Leadership
from recollect.scheduler.term import Term
from tests.faults.polling import wait_for
from tests.harness.chat_server import ChatServer
from tests.harness.embedding_server import Fault
from tests.harness.processes import OrchestratorProcess
from tests.harness.schedulers import JOBS, SchedulerProcess, only_when_asked

HAPPENS_WITHIN_S = 30.0
TWINS = "project:twins"
JOBS_SET = Settings().jobs


@pytest.fixture(scope="module")
def chat() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "ships.md").write_text("# Ships\n\nThe brig sails at dawn.\n")
    return folder


@pytest.fixture(scope="module")
def orchestrator(
    storage: str, tmp_path_factory: pytest.TempPathFactory, chat: ChatServer, documents: Path
) -> Iterator[OrchestratorProcess]:
    env = {
        "RECOLLECT_DOCUMENTS_ROOTS": str(documents),
        "RECOLLECT_CONSOLIDATION_LLM_URL": chat.url,
        "RECOLLECT_CONSOLIDATION_LLM_KEY_VARIABLE": "NO_KEY_NEEDED",
        "NO_KEY_NEEDED": "x",
    }
    with OrchestratorProcess(tmp_path_factory.mktemp("scheduled") / "data", env=env) as process:
        yield process


@pytest.fixture
def client(orchestrator: OrchestratorProcess) -> Iterator[MemoryClient]:
    with orchestrator.client() as client:
        yield client


def wait(condition: Any, what: str, scheduler: SchedulerProcess) -> None:
    try:
        wait_for(condition, within_s=HAPPENS_WITHIN_S, what=what)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{scheduler.log()}") from None


def leads(client: MemoryClient, scheduler: SchedulerProcess) -> bool:
    listed = client.list_jobs()
    mine = listed["scheduler"]["holder"] == scheduler.word().get("holder")
    return listed["scheduler"]["alive"] and mine and listed["count"] == len(JOBS)


def ended(client: MemoryClient, run_id: str) -> bool:
    return client.get_job_run(run_id)["run"]["run_status"] not in ("requested", "running")


def ran(
    client: MemoryClient, scheduler: SchedulerProcess, job: str, dry_run: bool = False
) -> dict[str, Any]:
    """What became of a job that was asked for."""
    run_id = client.request_job(job, dry_run)["job_run_id"]
    wait(partial(ended, client, run_id), f"{job} is done", scheduler)
    return dict(client.get_job_run(run_id)["run"])


def lost_leases(client: MemoryClient) -> int:
    """How many requests were refused because their lease had passed on."""
    count: int = client.stats()["requests"]["failed"].get("lease_lost", 0)
    return count


def twins(client: MemoryClient) -> None:
    for _ in range(2):
        client.add_memory("The deploy runs every Friday at noon", namespace=TWINS)


def test_every_job_does_its_work_when_it_is_asked_for(
    orchestrator: OrchestratorProcess, client: MemoryClient, documents: Path, tmp_path: Path
) -> None:
    client.sync_documents(str(documents), "project:port")
    (documents / "ships.md").write_text("# Ships\n\nThe brig sails at noon.\n")
    soon = client.add_memory("Gone soon", expires_at=time.time() + 0.2)["memory_id"]
    twins(client)
    env = only_when_asked() | {"RECOLLECT_DOCUMENTS_ROOTS": str(documents)}
    with SchedulerProcess(orchestrator, tmp_path / "scheduler", env) as scheduler:
        wait(partial(leads, client, scheduler), "it leads", scheduler)
        dry = ran(client, scheduler, "consolidation", dry_run=True)
        assert (dry["counts"]["archived"], dry["counts"].get("run_id")) == (1, None)
        assert client.count(namespace=TWINS)["count"] == 2
        runs = {job: ran(client, scheduler, job) for job in JOBS}
        failed = {job: run["error"] for job, run in runs.items() if run["run_status"] != "done"}
        assert failed == {}
        assert scheduler.stop() == 0
    assert client.count(namespace=TWINS)["count"] == 1
    client.undo(runs["consolidation"]["counts"]["run_id"])
    assert client.count(namespace=TWINS)["count"] == 2
    found = client.search_documents("When does the brig sail?", 1)["results"]
    assert "at noon" in found[0]["content"]
    assert Path(runs["backup"]["counts"]["path"]).is_dir()
    assert {runs[job]["cause"] for job in JOBS} == {"request"}
    with pytest.raises(RecollectError):
        client.get_memory(soon)


def test_what_was_missed_is_made_up_for_once(
    orchestrator: OrchestratorProcess, client: MemoryClient, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    token = client.acquire_lease("scheduler", "earlier")["token"]
    assert token is not None
    with orchestrator.client() as fenced:
        fenced.set_fence("scheduler", token)
        for job in ("backup", "decay"):
            described = {"name": "backup", "description": "x", "enabled": True, "schedule": "x"}
            fenced.announce_jobs([described | {"name": job}])  # type: ignore[list-item]
            moment = (now - timedelta(days=3)).isoformat()
            run = fenced.begin_job(job, scheduled_at=moment)["run"]
            fenced.finish_job(run["job_run_id"], "done")
    client.release_lease("scheduler", "earlier", token)
    # Of the two that were missed, one is not enabled any more.
    env = only_when_asked() | {
        "RECOLLECT_JOBS_BACKUP_ENABLED": "true",
        "RECOLLECT_JOBS_BACKUP_SCHEDULE": "@hourly",
    }
    with SchedulerProcess(orchestrator, tmp_path / "scheduler", env) as scheduler:
        missed = partial(client.job_history, "backup", 1)
        wait(lambda: missed()["runs"][0]["cause"] == "missed", "it is made up for", scheduler)
        run = missed()["runs"][0]
        wait(partial(ended, client, run["job_run_id"]), "it is done", scheduler)
        # Whatever is asked for comes behind what was missed.
        ran(client, scheduler, "trimming")
        assert scheduler.stop() == 0
    since = now.isoformat()
    for job, count in (("backup", 1), ("decay", 0)):
        runs = [r for r in client.job_history(job)["runs"] if r["requested_at"] > since]
        assert [r["cause"] for r in runs if r["cause"] == "missed"] == ["missed"] * count
    due_at = datetime.fromisoformat(run["scheduled_at"] or "")
    assert timedelta(0) <= datetime.now(UTC) - due_at < timedelta(hours=1, minutes=1)


def test_a_schedule_is_kept_with_one_run_a_moment(
    orchestrator: OrchestratorProcess, client: MemoryClient
) -> None:
    """With a schedule that comes every second, which no cron expression can say."""
    chosen = {
        name: structs.replace(getattr(JOBS_SET, name), enabled=name == "trimming") for name in JOBS
    }
    settings = Settings(
        scheduler=SchedulerSettings(lease_ttl_s=1.0, poll_s=0.05, jitter_s_max=0.1),
        jobs=structs.replace(JOBS_SET, **chosen),
    )
    begun = datetime.now(UTC).isoformat()

    def kept() -> list[str]:
        runs = client.job_history("trimming")["runs"]
        mine = [run for run in runs if run["requested_at"] > begun and run["cause"] == "schedule"]
        return [run["scheduled_at"] or "" for run in mine if run["run_status"] == "done"]

    async def serve() -> None:
        lines = Lines(lambda: Place(orchestrator.endpoint, None))
        leadership = Leadership(lines, 1.0, "every-second")
        while not await leadership.try_once():
            await asyncio.sleep(0.1)
        every_second = {"trimming": CronTrigger(second="*", timezone=UTC)}
        term = asyncio.create_task(Term(lines, leadership, settings, triggers=every_second).serve())
        until_s = time.monotonic() + HAPPENS_WITHIN_S
        while len(await asyncio.to_thread(kept)) < 3 and time.monotonic() < until_s:
            await asyncio.sleep(0.05)
        term.cancel()
        await asyncio.gather(term, return_exceptions=True)
        await leadership.release()
        await lines.close()

    asyncio.run(serve())
    moments = kept()
    assert len(moments) >= 3
    assert len(set(moments)) == len(moments)
    assert all(moment.endswith(".000000Z") for moment in moments)


def test_a_job_that_hangs_is_stopped_and_what_it_does_late_has_no_effect(
    orchestrator: OrchestratorProcess, client: MemoryClient, chat: ChatServer, tmp_path: Path
) -> None:
    client.add_memory("The cat sleeps on the red sofa", namespace="project:cat")
    client.add_memory("The cat sleeps on the red sofa", namespace="project:cat")
    config = tmp_path / "memory_config.yaml"
    config.write_text(
        "jobs:\n  consolidation:\n    time_limit_s: 0.5\n    strategy: llm_based\n"
        "    namespaces: ['project:cat']\n"
    )
    env = only_when_asked() | {"RECOLLECT_CONFIG": str(config)}
    asked = len(chat.received)
    answered = threading.Event()
    chat.fail(Fault(change=lambda reply: answered.wait(HAPPENS_WITHIN_S)))
    with SchedulerProcess(orchestrator, tmp_path / "scheduler", env) as scheduler:
        wait(partial(leads, client, scheduler), "it leads", scheduler)
        run = ran(client, scheduler, "consolidation")
        assert run["run_status"] == "timed_out"
        assert "0.5 s" in run["error"]
        assert run["duration_s"] >= 0.5
        wait(
            lambda: any(
                error["code"] == "job_timed_out" and error["source"] == "scheduler"
                for error in client.recent_errors(limit=50)["errors"]
            ),
            "it is reported",
            scheduler,
        )
        assert len(chat.received) == asked + 1
        # It goes on with other jobs, under a new token.
        assert ran(client, scheduler, "trimming")["run_status"] == "done"
        refused = partial(lost_leases, client)
        before = refused()
        answered.set()
        wait(lambda: refused() > before, "the late step is refused", scheduler)
        assert scheduler.stop() == 0
    assert client.count(namespace="project:cat")["count"] == 2


def test_it_outlives_its_orchestrator_and_ends_when_it_is_told_to(
    orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    with SchedulerProcess(orchestrator, tmp_path / "scheduler", only_when_asked()) as scheduler:
        with orchestrator.client() as client:
            wait(partial(leads, client, scheduler), "it leads", scheduler)
        orchestrator.kill()
        orchestrator.start()
        with orchestrator.client() as client:
            wait(partial(leads, client, scheduler), "it leads again", scheduler)
            assert ran(client, scheduler, "decay")["run_status"] == "done"
            assert scheduler.running()
            assert scheduler.stop() == 0
            assert client.list_jobs()["scheduler"]["holder"] is None
        assert scheduler.word() == {}


def test_it_outlives_a_key_file_that_is_exchanged_just_now(
    orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    orchestrator.kill()
    with SchedulerProcess(orchestrator, tmp_path / "scheduler", only_when_asked()) as scheduler:
        wait(lambda: '"action": "lease"' in scheduler.log(), "it asks in vain", scheduler)
        key, word = scheduler.folder / "keys" / "local.key", scheduler.folder / "orchestrator.json"
        key.parent.mkdir()
        key.write_text("half of a ke")
        word.write_text(json.dumps({"pid": 1, "endpoint": orchestrator.endpoint, "keys": True}))
        wait(lambda: '"action": "follow"' in scheduler.log(), "it looks for it", scheduler)
        word.unlink()
        orchestrator.start()
        with orchestrator.client() as client:
            wait(partial(leads, client, scheduler), "it leads", scheduler)
            assert scheduler.stop() == 0
