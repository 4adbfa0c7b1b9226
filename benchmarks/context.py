"""Context beside the searches that it consists of, on 100,000 memories in four tiers.

`python -m benchmarks.context` fills a service and measures, for the same tasks, assembling a
context and one recall for each of its tiers, one after another.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.load import latencies_us
from benchmarks.service import Service, serving, store
from benchmarks.table import Row, at_most, medians, p50, show
from recollect import MemoryClient

MEMORIES = 100_000
BATCH = 2_000
ROUNDS = 3
CALLS = 60
FACTOR = 2.0
TOKENS = 4_000
WARMUP = 5
K = 10
TIERS = ("short", "medium", "long")
TOPICS = (
    *("harbour", "tide", "brig", "barrel", "salted", "fish", "crane", "pier", "rope", "sail"),
    *("anchor", "lantern", "ledger", "customs", "pilot", "fog", "deploy", "rollback", "canary"),
    *("database", "replica", "backup", "latency", "queue", "worker", "timeout", "gateway"),
)


def texts(seed: int) -> Iterator[str]:
    """Sentences of some topics, none like another."""
    at_random = random.Random(seed)
    for n in itertools.count():
        words = at_random.sample(TOPICS, 7)
        yield (
            f"Note {n}: the {words[0]} of the {words[1]} waits for the {words[2]}, since the "
            f"{words[3]} and the {words[4]} met the {words[5]} near the {words[6]}."
        )


def memories() -> Iterator[dict[str, Any]]:
    """Memories without end, a quarter of them knowledge, the others in three tiers."""
    for n, text in enumerate(texts(7)):
        yield {
            "content": text,
            "memory_tier": TIERS[n % 3],
            "memory_type": "knowledge" if n % 4 == 3 else "general",
            "namespace": "project:bench",
        }


def filters_of(tier: str) -> dict[str, Any]:
    """What a context takes from a tier."""
    if tier == "knowledge":
        return {"memory_type": "knowledge"}
    return {"AND": [{"memory_tier": tier}, {"NOT": {"memory_type": "knowledge"}}]}


def assembling(service: Service, calls: int, rounds: int) -> list[Row]:
    """assemble_context beside one recall a tier, over the same tasks."""
    with MemoryClient(service.endpoint, timeout=30.0) as client:
        tasks = list(itertools.islice(texts(11), calls))

        def measure() -> dict[str, float]:
            searched, assembled = itertools.cycle(tasks), itertools.cycle(tasks)

            def search() -> None:
                task = next(searched)
                for tier in (*TIERS, "knowledge"):
                    client.recall(task, K, filters=filters_of(tier))

            def assemble() -> None:
                client.assemble_context(next(assembled), TOKENS)

            return {
                "searches": p50(latencies_us(search, calls, WARMUP)),
                "context": p50(latencies_us(assemble, calls, WARMUP)),
            }

        found = medians(measure, rounds)
    name, beside = f"assemble_context, {TOKENS:,} tokens, p50", "one recall a tier"
    return [at_most(name, found["context"] / 1000, found["searches"] / 1000, FACTOR, "ms", beside)]


def main(arguments: list[str] | None = None) -> bool:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=MEMORIES)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(arguments)
    with serving() as service:
        with MemoryClient(service.endpoint) as client:
            store(client, itertools.islice(memories(), given.memories), BATCH)
        rows = assembling(service, given.calls, given.rounds)
    return show(f"Context over {given.memories:,} memories in four tiers", rows)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
