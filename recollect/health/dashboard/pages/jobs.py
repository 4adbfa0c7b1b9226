"""Jobs: what is scheduled, what was done, and what can be run or undone now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from nicegui import ui
from starlette.requests import Request

from recollect.health.dashboard import parts, wording
from recollect.health.dashboard.acting import action
from recollect.health.dashboard.frame import frame
from recollect.health.dashboard.visit import Visit
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError

RUNS_SHOWN = 25
RUNS_LOOKED_AT = 100
REFRESH_EVERY_S = 3.0
NOT_A_COUNT = ("run_id", "complete", "dry_run", "status", "seq")


async def jobs(visit: Visit, request: Request) -> None:
    with frame(visit, "Jobs", "What the scheduler does by itself, and what it did."):
        shown: dict[str, Any] = {}

        @ui.refreshable
        async def listed() -> None:
            found, history = await _asked(visit)
            _scheduler(found)
            _jobs(visit, found, listed.refresh)
            _history(visit, history, listed.refresh)

        async def look_again() -> None:
            # Drawn anew only if something changed, so that nothing moves under the pointer.
            now = tuple(_mark(answer) for answer in await _asked(visit))
            if shown.get("mark") not in (None, now):
                listed.refresh()
            shown["mark"] = now

        await listed()
        ui.timer(REFRESH_EVERY_S, look_again, immediate=False)


async def _asked(visit: Visit) -> tuple[Any, Any]:
    of_jobs = visit.source.ask(ops.ListJobs())
    of_history = visit.source.ask(ops.JobHistory(limit=RUNS_SHOWN))
    of_runs = visit.source.ask(ops.ListRuns(limit=RUNS_LOOKED_AT))
    found, history, runs = await asyncio.gather(of_jobs, of_history, of_runs)
    if isinstance(history, RecollectError) or isinstance(runs, RecollectError):
        return found, history
    # What was undone since is told by the runs themselves, not by the jobs that made them.
    undone = {run["run_id"] for run in runs["runs"] if run["run_status"] == "undone"}
    told: list[Any] = [
        {**run, "undone": run["counts"].get("run_id") in undone} for run in history["runs"]
    ]
    return found, {**history, "runs": told}


def _mark(answer: Any) -> str:
    """What of an answer is worth drawing anew for."""
    if isinstance(answer, RecollectError):
        return answer.code
    runs = answer.get("runs") or [job["last"] for job in answer.get("jobs", ())]
    states = [
        (run["job_run_id"], run["run_status"], run["progress"], run.get("undone"))
        for run in runs
        if run
    ]
    return repr((states, answer.get("scheduler", {}).get("alive")))


def _scheduler(found: Any) -> None:
    if isinstance(found, RecollectError) or found["scheduler"]["alive"]:
        return
    with parts.box("banner warn"):
        ui.icon("warning")
        with parts.box():
            parts.text("No scheduler is running", "strong")
            parts.text("Jobs wait until one is: start it with recollect scheduler.")


def _jobs(visit: Visit, found: Any, refresh: Callable[[], Any]) -> None:
    with parts.card("Scheduled", "flush"):
        if isinstance(found, RecollectError):
            parts.trouble(found)
            return
        if not found["jobs"]:
            parts.empty(
                "event_repeat",
                "No jobs yet",
                "The scheduler says which there are when it starts.",
                "recollect scheduler",
            )
            return
        with parts.box("table", "table"):
            _head("Job", "Schedule", "Next", "Last", "")
            with parts.box(tag="tbody"):
                for job in found["jobs"]:
                    _job(visit, job, refresh)


def _head(*names: str) -> None:
    with parts.box(tag="thead"), parts.box(tag="tr"):
        for name in names:
            parts.text(name, tag="th")


def _cell(name: str, classes: str = "") -> ui.element:
    cell = parts.box(classes, "td")
    cell.props["data-name"] = name
    return cell


def _job(visit: Visit, job: Mapping[str, Any], refresh: Callable[[], Any]) -> None:
    with parts.box(tag="tr"):
        with _cell("Job", "head"):
            with parts.box("across wrap"):
                parts.text(wording.spoken(job["name"]), "strong", "span")
                if not job["enabled"]:
                    parts.chip("off")
            parts.text(job["description"], "muted small")
        with _cell("Schedule"):
            parts.text(job["schedule"], "mono", "span")
        with _cell("Next"):
            if job["enabled"] and job["next_at"]:
                parts.when(job["next_at"])
            else:
                parts.text("never", "muted", "span")
        with _cell("Last"):
            last = job["last"]
            if last is None:
                parts.text("never ran", "muted", "span")
            else:
                with parts.box("across"):
                    parts.state_chip(last["run_status"])
                    parts.when(last["ended_at"] or last["requested_at"], "num muted small")
        with _cell("", "bare"), parts.box("across").style("justify-content: flex-end"):
            name = wording.spoken(job["name"])
            for label, dry_run in (("Dry run", True), ("Run now", False)):
                question = (
                    f"{name} only says what it would do; nothing is changed."
                    if dry_run
                    else f"{name} runs as soon as the scheduler is free."
                )
                button = action(
                    visit,
                    label,
                    question,
                    _requested(visit, job["name"], dry_run),
                    lambda answer: f"Asked for: run {answer['job_run_id']}.",
                    then=refresh,
                )
                button.props["aria-label"] = f"{label}: {name}"


def _requested(visit: Visit, job: str, dry_run: bool) -> Callable[[], Any]:
    return lambda: visit.source.ask(ops.RequestJob(job, dry_run))


def _history(visit: Visit, history: Any, refresh: Callable[[], Any]) -> None:
    with parts.card("History", "flush"):
        if isinstance(history, RecollectError):
            parts.trouble(history)
            return
        if not history["runs"]:
            parts.empty(
                "history",
                "Nothing ran yet",
                "The first run is due by its schedule, or run one now.",
            )
            return
        with parts.box("table", "table"):
            _head("Run", "Outcome", "When", "Took", "What it did", "")
            with parts.box(tag="tbody"):
                for run in history["runs"]:
                    _run(visit, run, refresh)


def _run(visit: Visit, run: Mapping[str, Any], refresh: Callable[[], Any]) -> None:
    with parts.box(tag="tr"):
        with _cell("Run", "head"):
            with parts.box("across wrap"):
                parts.text(wording.spoken(run["job"]), "strong", "span")
                if run["dry_run"]:
                    parts.chip("dry run")
            by = f" by {run['requested_by']}" if run["requested_by"] else ""
            parts.text(f"{run['cause']}{by}", "muted small")
        with _cell("Outcome"):
            parts.state_chip(run["run_status"])
        with _cell("When"):
            parts.when(run["started_at"] or run["requested_at"])
        with _cell("Took"):
            took = run["duration_s"]
            parts.text(wording.duration(took) if took is not None else "", "num", "span")
        with _cell("What it did"):
            words = run["error"] or _counts(run["counts"] or run["progress"])
            parts.text(words, "small any" + (" soft" if not run["error"] else ""), "span")
        with _cell("", "bare"), parts.box("across").style("justify-content: flex-end"):
            run_id = run["counts"].get("run_id")
            if run.get("undone"):
                parts.chip("undone", "warn")
            elif run_id and not run["dry_run"] and run["run_status"] == "done":
                button = action(
                    visit,
                    "Undo",
                    f"What this run of {wording.spoken(run['job'])} changed goes back to what it "
                    "was before. Memories that were changed since are left as they are.",
                    _undone(visit, str(run_id)),
                    lambda answer: (
                        f"Undone: {answer['restored']} restored, {answer['removed']} removed."
                    ),
                    icon="undo",
                    then=refresh,
                )
                button.props["aria-label"] = f"Undo: {wording.spoken(run['job'])}"


def _undone(visit: Visit, run_id: str) -> Callable[[], Any]:
    return lambda: visit.source.ask(ops.Undo(run_id), 30.0)


def _counts(counts: Mapping[str, Any]) -> str:
    """What was counted, without what was nothing."""
    told = [
        _counted(name, amount)
        for name, amount in counts.items()
        if name not in NOT_A_COUNT
        and isinstance(amount, int | float)
        and not isinstance(amount, bool)
        and amount
    ]
    if not told and "problems" in counts:
        return "no problems"
    return " · ".join(told) or ("nothing to do" if counts else "")


def _counted(name: str, amount: float) -> str:
    if name.endswith("bytes"):
        return (
            f"{wording.spoken(name.removesuffix('bytes')).lower()} {wording.size(amount)}".strip()
        )
    return f"{wording.spoken(name).lower()} {wording.count(amount)}"
