"""The sample: what a small software team and its agents remember, dated back from today."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, NamedTuple, cast

from recollect.client import MemoryClient
from recollect.config.settings import DecaySettings
from recollect.orchestrator.clock import IdSource, to_iso
from recollect.orchestrator.memories.strength import Fading

DAY_US = 86_400_000_000
USED_AFTER = 0.6
"""A memory was used last when this part of its life had passed, the more often the later."""


class Line(NamedTuple):
    """One memory of the sample, as its file has it."""

    namespace: str
    days: int
    agent: str
    memory_type: str
    tier: str
    importance: float
    uses: int
    content: str
    tags: list[str]


class Moment:
    """A clock that stands where it is put."""

    def __init__(self, moment_us: int) -> None:
        self.moment_us = moment_us

    def now_us(self) -> int:
        return self.moment_us


def lines() -> Iterator[Line]:
    """The memories of the file, by namespace."""
    namespace = ""
    for line in _text("memories.txt").splitlines():
        if line.startswith("["):
            namespace = line.strip("[]")
        elif line and not line.startswith("#"):
            facts, content, tags = line.split(" | ")
            days, agent, kind, tier, importance, uses = facts.split()
            yield Line(
                namespace,
                int(days),
                agent,
                kind,
                tier,
                float(importance),
                int(uses),
                content,
                tags.split(","),
            )


def records(now_us: int) -> list[dict[str, Any]]:
    """The memories as records of the export format, oldest first, as old as the file says."""
    fading = Fading(DecaySettings())
    clock = Moment(0)
    ids = IdSource(clock)
    found = []
    for number, line in enumerate(sorted(lines(), key=lambda line: -line.days)):
        # Some hours apart, so that no two of a day are of one moment.
        created_us = now_us - line.days * DAY_US + number % 11 * DAY_US // 24
        created_us = min(created_us, now_us - DAY_US // 24)
        clock.moment_us = created_us
        found.append(_record(line, ids.new(), created_us, now_us, fading))
    return found


def _record(
    line: Line, memory_id: str, created_us: int, now_us: int, fading: Fading
) -> dict[str, Any]:
    stability_s = fading.grown(fading.initial_stability_s(line.tier, line.importance), line.uses)
    # The more often something was used, the nearer to today was the last time.
    part = USED_AFTER + (1 - USED_AFTER) * line.uses / (line.uses + 3) if line.uses else 0.0
    last_access_us = created_us + int((now_us - created_us) * part)
    return {
        "kind": "memory",
        "id": memory_id,
        "namespace": line.namespace,
        "version": 1,
        "collection": "memories",
        "memory_type": line.memory_type,
        "tier": line.tier,
        "content": line.content,
        "importance": line.importance,
        "stability_s": stability_s,
        "access_count": line.uses,
        "last_access_us": last_access_us,
        "fades_us": fading.fades_us(last_access_us, stability_s),
        "created_by": line.agent,
        "updated_by": line.agent,
        "trust": 1.0,
        "created_us": created_us,
        "updated_us": created_us,
        "operation": "add_memory",
        "metadata": {},
        "tags": line.tags,
        "versions": [],
    }


def store_team(memory: MemoryClient, now_us: int) -> int:
    """The goals, tasks, decisions, incidents and conversations of the team; how many there are."""
    team = cast("dict[str, list[dict[str, Any]]]", json.loads(_text("team.json")))
    for goal in team["goals"]:
        memory.store_goal(**goal)
    for task in team["tasks"]:
        memory.save_task(**task)
    for decision in team["decisions"]:
        outcome, success = decision.pop("outcome", None), decision.pop("success", None)
        logged = memory.log_decision(**decision)
        if outcome is not None:
            memory.record_outcome(logged["decision_id"], outcome, success)
    for incident in team["incidents"]:
        occurred_us = now_us - incident.pop("days") * DAY_US
        memory.store_incident(occurred_at=to_iso(occurred_us), **incident)
    for procedure in team["procedures"]:
        memory.store_procedure(**procedure)
    for preference in team["preferences"]:
        memory.save_preference(**preference)
    for execution in team["executions"]:
        memory.store_execution(**execution)
    for session in team["sessions"]:
        made = memory.create_session(session["user_id"], app="harbor")
        for author, said in session["events"]:
            memory.append_event(made["session_id"], {"author": author, "text": said})
    return sum(map(len, team.values()))


def _text(name: str) -> str:
    return files("recollect.cli.demo").joinpath(name).read_text(encoding="utf-8")
