"""What the demo shows, act by act, on a system that runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from recollect.cli.demo import sample
from recollect.cli.demo.crash import WRITERS, crash, writer_names
from recollect.cli.demo.system import DemoSystem
from recollect.cli.demo.telling import Telling
from recollect.cli.output import bar, counted, in_words, one_line
from recollect.client import MemoryClient
from recollect.protocol.records import ConflictFound

PAGE_RECORDS = 100
IMPORT_S = 60.0
CONFLICTS_SHOWN = 5
CONTEXT_LINES_SHOWN = 14
FIRST = (
    "The first ferry to Heron Island leaves from the north pier at 07:40.",
    "Mira wants to be called about the launch, not written to.",
    "The canary of Harbor has been green since nine.",
)
QUESTIONS = (
    ("Why do we not deploy on Fridays?", "project:harbor"),
    ("What does Mira like to drink?", "user:mira"),
    ("May the support agent promise a refund?", "app:support"),
)
# Left unsettled, so that the dashboard has something to settle.
LEFT = "project:tide"
FADING = (
    ("The canary must be green", "used 17 times"),
    ("To roll back Harbor", "used 13 times"),
    ("Prices are kept in cents", "used now and then"),
    ("The logo of the ferry", "never used"),
    ("The linter was upgraded", "never used"),
    ("The launch is on Thursday", "new"),
)


def first_result(system: DemoSystem, tell: Telling, started_s: float) -> None:
    """Remember three things and find one again: the shortest way to an answer."""
    tell.act("Remember and recall", "An agent writes down what it learned; another one asks.")
    with system.client("planner") as memory:
        for text in FIRST:
            memory.add_memory(text, namespace="project:welcome", idempotency_key=text)
    question = "When does the first boat to the island go?"
    with system.client("support") as memory:
        tell.call(f'memory.recall("{question}")')
        found = memory.recall(question, k=1, namespace="project:welcome")["results"]
    tell.found(found)
    tell.fact(f"The first result, {time.monotonic() - started_s:.1f} s after the start.")


def load(system: DemoSystem, tell: Telling, now_us: int) -> list[dict[str, Any]]:
    """Take the sample in; its records."""
    tell.act(
        "A team moves in",
        "Nine months of a small software team: five people, five agents, three services.",
    )
    records = sample.records(now_us)
    began_s = time.monotonic()
    with system.client("planner") as memory:
        for start in range(0, len(records), PAGE_RECORDS):
            memory.import_records(records[start : start + PAGE_RECORDS], timeout=IMPORT_S)
        others = sample.store_team(memory, now_us)
        count = memory.count()["count"]
    tell.fact(
        f"{counted(count, 'memory')} and {others} goals, tasks, decisions, incidents and "
        f"conversations among them, in {time.monotonic() - began_s:.1f} s."
    )
    return records


def recall(system: DemoSystem, tell: Telling) -> None:
    """Questions of agents that were not there when it was written down."""
    tell.act("Recall", "By words, by meaning, by who said it and when, in one ranking.")
    with system.client("newcomer") as memory:
        for question, namespace in QUESTIONS:
            tell.call(f'memory.recall("{question}", namespace="{namespace}")')
            tell.found(memory.recall(question, k=2, namespace=namespace)["results"])


def contradiction(system: DemoSystem, tell: Telling) -> None:
    """What was true once and is not any more: found, settled, and kept in the past."""
    tell.act("Contradiction", "Teams change their mind. Both versions were written down.")
    with system.client("gardener") as memory:
        names = [one["namespace"] for one in memory.list_namespaces()["namespaces"]]
        found = {name: memory.find_conflicts(name)["conflicts"] for name in names}
        conflicts = [one for several in found.values() for one in several]
        tell.call('memory.find_conflicts("project:harbor"), and so on')
        tell.rows([_sides(one) for one in conflicts[:CONFLICTS_SHOWN]], ("before", "now"))
        if len(conflicts) > CONFLICTS_SHOWN:
            tell.remark(f"and {len(conflicts) - CONFLICTS_SHOWN} more")
        tell.call('memory.consolidate(namespace, "keep_latest")')
        runs = [
            memory.consolidate(name, "keep_latest")
            for name, several in found.items()
            if several and name != LEFT
        ]
        archived = sum(run["archived"] for run in runs)
        tell.fact(
            f"{archived} outdated or repeated memories are archived, none is deleted; "
            "memory.undo(run_id) takes any run back."
        )
        _before_and_now(memory, tell)


def _sides(conflict: ConflictFound) -> tuple[Text, Text]:
    older, newer = sorted(conflict["memories"], key=lambda side: side["updated_at"])[:2]
    return Text(one_line(older["content"]), "yellow"), Text(one_line(newer["content"]), "green")


def _before_and_now(memory: MemoryClient, tell: Telling) -> None:
    left = memory.search_memory("staging port", namespace="project:harbor", limit=3)["results"]
    said = [one["content"] for one in left if "staging port" in one["content"].lower()]
    tell.fact(f'Asked for the staging port, it answers: "{one_line(said[0]) if said else "-"}".')


def decay(
    system: DemoSystem, tell: Telling, records: Sequence[dict[str, Any]], now_us: int
) -> None:
    """Months pass: what is used stays strong, the rest steps back and is never deleted."""
    tell.act(
        "Decay over months",
        "The sample is dated back nine months. What is used or important stays strong; the rest "
        "fades.",
    )
    with system.client("gardener") as memory:
        tell.rows(_strengths(memory, records, now_us), ("strength", "age", "", "memory"))
        tell.call("memory.fade_memories()")
        before = memory.count()["count"]
        run = memory.fade_memories()
        parts = (
            (run["to_medium"], "from short to medium"),
            (run["to_long"], "from medium to long"),
            (run["summarised"], "summed up"),
            (run["archived"], "into the archive"),
            (run["kept"], "kept: too important to go"),
        )
        tell.rows([(f"{count:>4}", what) for count, what in parts if count])
        everything = memory.count(include_archived=True)["count"]
        tell.fact(
            f"Searched are {memory.count()['count']} now, before {before}; of {everything} none "
            "was deleted, and undo brings every one back."
        )


def _strengths(
    memory: MemoryClient, records: Sequence[dict[str, Any]], now_us: int
) -> list[tuple[Text | str, ...]]:
    rows: list[tuple[Text | str, ...]] = []
    for beginning, use in FADING:
        record = next(one for one in records if one["content"].startswith(beginning))
        listed = memory.list_memories(filters={"id": record["id"]}, limit=1)["memories"]
        strength = listed[0]["strength"] if listed else 0.0
        age = in_words((now_us - record["created_us"]) / 1_000_000)
        shown = Text.assemble(bar(strength), f" {strength:>4.0%}")
        rows.append((shown, Text(age, "dim"), Text(use, "dim"), Text(record["content"])))
    return rows


def survive(system: DemoSystem, tell: Telling) -> None:
    """A kill -9 in mid-write, and the counts."""
    tell.act(
        "A crash",
        f"{WRITERS} agents write as fast as they can. In the middle of it: kill -9.",
    )
    counts = crash(system)
    tell.rows(
        [
            (f"{counts.acknowledged_before:>4}", "writes were acknowledged before the kill"),
            (f"{counts.repeated:>4}", "had no answer, and were sent again by the same key"),
            (f"{counts.acknowledged:>4}", "were acknowledged in all, and"),
            (f"{counts.found:>4}", "are there"),
            (Text(f"{counts.lost:>4}", "bold green"), "are lost"),
            (Text(f"{counts.twice:>4}", "bold green"), "are there twice"),
        ]
    )
    whole = "is whole" if counts.intact else "is NOT whole"
    tell.fact(
        f"It was back by itself, after {counts.away_s:.1f} s; the database {whole}. Acknowledged "
        "means on disk."
    )
    for remark in counts.remarks:
        tell.remark(remark, "yellow")
    with system.client("gardener") as memory:
        tell.call('memory.forget_source("writer-1"), and so on')
        taken = sum(memory.forget_source(name)["forgotten"] for name in writer_names())
    tell.fact(
        f"What these agents wrote is taken back, {counted(taken, 'memory')} in {WRITERS} calls; "
        "that could be undone, too."
    )


def context(system: DemoSystem, tell: Telling) -> None:
    """What an agent has in view before it begins."""
    tell.act("For the next task", "One call gathers what helps, within a number of tokens.")
    with system.client("deployer") as memory:
        tell.call('memory.assemble_context("Deploy Harbor for the launch", 600)')
        given = memory.assemble_context("Deploy Harbor for the launch", 600)
    lines = [line for line in given["context"].splitlines() if line.strip()]
    for line in lines[:CONTEXT_LINES_SHOWN]:
        tell.remark(one_line(line))
    if len(lines) > CONTEXT_LINES_SHOWN:
        tell.remark("…")
    tell.fact(
        f"{counted(given['count'], 'piece')} of {given['considered']} that were weighed, in "
        f"{given['tokens']} tokens, each with its source and fenced as data."
    )
