"""jobs list, run, history and show, for people and for programs."""

from __future__ import annotations

from pathlib import Path

from tests.harness.processes import OrchestratorProcess
from tests.harness.schedulers import SchedulerProcess, only_when_asked
from tests.system.cli.commands import CommandLine, wait_for


def test_jobs_are_listed_run_and_shown(
    recollect: CommandLine, orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    assert "No scheduler has run yet" in recollect("jobs", "list").err
    assert "Nothing has run yet" in recollect("jobs", "history").err
    env = only_when_asked() | {"RECOLLECT_JOBS_DECAY_ENABLED": "true"}
    with SchedulerProcess(orchestrator, tmp_path / "scheduler", env) as scheduler:
        with orchestrator.client() as client:
            for _ in range(2):
                client.add_memory("The lamp was painted in May", namespace="user:anna")
            wait_for(lambda: client.list_jobs()["count"] == 12, scheduler.log)
        listed = recollect("jobs", "list")
        for text in ("decay", "*/15 * * * *", "backup", "when asked for", "never"):
            assert text in listed.out, listed
        [decay] = [line for line in listed.out.splitlines() if line.startswith("decay")]
        assert "when asked for" not in decay
        assert "is at work" in listed.err
        wrong = recollect("jobs", "run", "decoy")
        assert (wrong.code, "recollect jobs list" in wrong.err) == (1, True)
        dry = recollect("jobs", "run", "consolidation", "--dry-run", "--json").json()["run"]
        assert (dry["dry_run"], dry["counts"]["archived"]) == (True, 1)
        done = recollect("jobs", "run", "consolidation")
        for text in ("done", "asked for by cli", "archived"):
            assert text in done.out, done
        assert "recollect undo" in done.err
        asked = recollect("jobs", "run", "decay", "--no-wait")
        assert "recollect jobs show" in asked.err
        assert scheduler.stop() == 0
    history = recollect("jobs", "history", "consolidation")
    assert "consolidation (dry)" in history.out
    [run, _] = recollect("jobs", "history", "consolidation", "--json").json()["runs"]
    shown = recollect("jobs", "show", run["job_run_id"][-8:])
    assert run["job_run_id"] in shown.out
    assert "No scheduler is at work" in recollect("jobs", "list").err
