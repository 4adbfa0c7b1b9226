"""A store as a fleet of agents would leave it: memories of every kind, linked, used and changed."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from recollect import MemoryClient
from recollect.protocol.operations import ErrorReport
from tests.harness.executions import DEPLOYMENTS, Told

SCRIPT = "<script>window.broken = 'content'</script>"
MARKUP = f'{SCRIPT}<img src=x onerror="window.broken = 1"> **bold** {{{{ 7 * 7 }}}} [a](http://x.invalid)'
TAG = '<b onmouseover="window.broken = 2">tag</b>'
SUBJECTS = (
    *("the checkout service", "the search index", "the billing export", "the login page"),
    *("the nightly backup", "the message queue", "the mobile app", "the data warehouse"),
    *("the rate limiter", "the release train", "the image resizer", "the audit trail"),
)
VERBS = (
    *("was moved to the new cluster", "fails when the disk is nearly full", "is owned by Dana"),
    *("needs a warm cache before peak hours", "was rewritten to stream its input"),
    *("has an alert that nobody reads", "depends on the old certificate until June"),
    *("runs twice as fast since the index was rebuilt", "must not be deployed on Fridays"),
    *("keeps its secrets in the vault", "was paged for three nights in a row"),
)
NAMESPACES = (
    *("project:apollo", "project:apollo:backend", "project:apollo:web", "project:hermes"),
    *("user:alice", "user:alice:preferences", "user:bob", "app:default", "temp:scratch"),
)
AGENTS = ("planner", "coder", "reviewer", "oncall", "researcher")
TYPES = ("general", "semantic", "episodic", "procedural")
WINDOW = "Deploy window of Apollo\n\nDeploys are on {day} at noon.\nAsk Dana before."
LINKS = ("supports", "contradicts", "caused_by", "follows", "derived_from")
CONVERSATION = (
    ("alice", "Why is the checkout slow today?"),
    ("oncall", "The queue is long since the deploy at nine; I am looking at the consumers."),
    ("alice", "Can we roll back?"),
    ("oncall", "Rolled back at 9:42. The queue is draining, p95 is at 180 ms again."),
    ("alice", "Thanks. Please note what it was."),
)


class Filled(NamedTuple):
    """What a test looks for."""

    changed_id: str
    marked_id: str
    session_id: str
    memories: int


def fill(endpoint: str, count: int = 240, seed: int = 7) -> Filled:
    """Put a fleet's leavings into an empty store."""
    chance = random.Random(seed)
    with MemoryClient(endpoint) as client:
        ids = _memories(client, chance, count)
        changed = _changed(client)
        marked = _marked(client, ids[0])
        for _ in range(count // 2):
            source, target = chance.sample(ids[: count // 3], 2)
            kind, strength = chance.choice(LINKS), round(chance.uniform(0.3, 1), 2)
            client.add_relationship(source, target, kind, strength)
        client.add_relationship(changed, ids[1], "supports", 0.9)
        for _ in range(count // 2):
            client.get_memory(chance.choice(ids[:20]))
        session = _sessions(client)
        _learning(client)
        _errors(client)
    return Filled(changed, marked, session, count)


def _memories(client: MemoryClient, chance: random.Random, count: int) -> list[str]:
    items: list[dict[str, Any]] = []
    for number in range(count):
        subject = SUBJECTS[number % len(SUBJECTS)]
        text = f"{subject[:1].upper()}{subject[1:]} {chance.choice(VERBS)} (note {number})."
        items.append(
            {
                "content": text,
                "memory_type": chance.choice(TYPES),
                "memory_tier": chance.choices(("short", "medium", "long"), (5, 3, 2))[0],
                "namespace": chance.choice(NAMESPACES),
                "importance": round(chance.random(), 2),
                "tags": chance.sample(["release", "incident", "customer", "cost", "idea"], 2),
                "metadata": {"ticket": f"OPS-{number}", "state": chance.choice(["open", "done"])},
            }
        )
    ids: list[str] = []
    for agent, part in zip(AGENTS, _parts(items, len(AGENTS)), strict=True):
        client.set_agent_id(agent)
        ids += [i for i in client.batch_add_memories(part)["memory_ids"] if i is not None]
    return ids


def _parts(items: list[dict[str, Any]], count: int) -> list[list[dict[str, Any]]]:
    return [items[start::count] for start in range(count)]


def _changed(client: MemoryClient) -> str:
    """A memory with three versions."""
    client.set_agent_id("planner")
    added = client.add_memory(
        WINDOW.format(day="Fridays"),
        namespace="project:apollo",
        metadata={"state": "draft"},
    )
    memory_id = added["memory_id"]
    client.set_agent_id("reviewer")
    client.update_memory(memory_id, {"content": WINDOW.format(day="Tuesdays")})
    client.update_memory(memory_id, {"metadata": {"state": "agreed"}, "tags": ["release"]})
    return memory_id


def _marked(client: MemoryClient, other_id: str) -> str:
    """A memory that would do harm, were any of it taken for markup."""
    client.set_agent_id("<i>mallory</i>")
    memory_id = client.add_memory(
        f"Zebra crossing {MARKUP}",
        namespace="project:<u>zebra<u>",
        metadata={"<script>window.broken = 3</script>": MARKUP},
        tags=[TAG],
    )["memory_id"]
    client.update_memory(memory_id, {"content": f"Zebra crossing, again {MARKUP}"})
    client.add_relationship(memory_id, other_id, "<b>points</b>", 0.5)
    client.set_agent_id(None)
    return memory_id


def _sessions(client: MemoryClient) -> str:
    first = ""
    for user in ("alice", "bob", "carol"):
        session = client.create_session(
            user, session_metadata={"channel": "chat"}, app="support", state={"mood": "calm"}
        )["session_id"]
        first = first or session
        for author, words in CONVERSATION:
            client.set_agent_id(author)
            client.append_event(session, {"says": words}, {"turns": author})
        client.append_event(session, MARKUP)
    client.terminate_session(session)
    client.set_session_id(first)
    client.add_memory("Alice was told that the rollback helped.", "episodic")
    client.set_session_id(None)
    client.set_agent_id(None)
    return first


def _learning(client: MemoryClient) -> None:
    told: Told
    for number, told in enumerate(DEPLOYMENTS):
        client.store_execution(
            f"deploy-{number}",
            told.summary,
            told.success,
            list(told.errors),
            number == len(DEPLOYMENTS) - 1,
            namespace="project:apollo",
            task_description=told.description,
            task_type="deploy",
        )
    for context, choice, success in (
        ("Which queue to use for the billing export?", "The one that we run already", True),
        ("Roll back or fix forward after the failed deploy?", "Roll back", True),
        ("Rewrite the image resizer in Rust?", "Not this quarter", None),
        ("Skip the canary because of the deadline?", "Skip it", False),
    ):
        decision = client.log_decision(
            context,
            [choice, "Wait"],
            choice,
            "It was discussed at length.",
            0.8,
            namespace="project:apollo",
        )
        if success is not None:
            client.record_outcome(decision["decision_id"], "Looked at a week later.", success)


def _errors(client: MemoryClient) -> None:
    client.report_errors(
        "agent/coder",
        [
            ErrorReport("timeout", "recall took longer than 10 s", 3),
            ErrorReport("unreachable", "nobody listens at tcp://127.0.0.1:7331"),
        ],
    )
    client.report_errors("agent/mallory", [ErrorReport("odd", MARKUP)])
