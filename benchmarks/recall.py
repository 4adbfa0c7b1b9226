"""How much of what answers a question is found, through the service, as an agent would ask it.

    python -m benchmarks.recall --locomo PATH/locomo_dev5.json
    python -m benchmarks.recall --sets updated_facts long_answers --kinds

Each set is stored in a namespace of its own, one memory a turn, by who said it, in its session, and
asked by words (`search_memory`), by meaning (`semantic_search`) and by both (`recall`). Beside them
stands the usual way to make one list of two, reciprocal rank fusion of the first two.

Times are as a caller sees them; a text that was embedded for one way of asking is not embedded
again for the next, so that only those of `meaning` and `recall` hold an embedding.

`--together` asks every question of all sets at once, which is what a shared store is like.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks import results
from benchmarks.recall_sets import LabelledSet, Question, locomo, own_sets
from benchmarks.service import Service
from recollect import MemoryClient

ROOT = "project:recall"
DEPTH = 20
FUSED_DEPTH = 100
FUSION_CONSTANT = 60
LOCOMO_RECALL_AT_10 = 0.84
TIMEOUT_S = 30.0

Ask = Callable[[str, str], list[str]]


class Outcome(msgspec.Struct, frozen=True):
    """What one way of asking found for one question."""

    group: str
    kind: str
    way: str
    # For each memory that answers, the place at which it was found, from 1; None if it was not.
    places: list[int | None]
    took_ms: float

    def recall(self, k: int) -> float:
        return sum(place is not None and place <= k for place in self.places) / len(self.places)

    def first(self) -> int | None:
        return min((place for place in self.places if place is not None), default=None)


def store(client: MemoryClient, labelled: LabelledSet) -> dict[int | str, str]:
    """Store a set; which memory got which id."""
    ids: dict[int | str, str] = {}
    for memory in labelled.memories:
        session = f"{labelled.name}-{memory.session}" if memory.session else None
        client.set_session_id(session)
        client.set_agent_id(memory.author)
        added = client.add_memory(
            memory.text,
            metadata=memory.metadata or None,
            namespace=namespace_of(labelled),
            valid_from=memory.at,
        )
        ids[memory.id] = added["memory_id"]
    client.set_session_id(None)
    client.set_agent_id(None)
    return ids


def namespace_of(labelled: LabelledSet) -> str:
    """Where a set is stored."""
    return f"{ROOT}:{labelled.name}"


def ways(client: MemoryClient) -> dict[str, Ask]:
    """Each way of asking: from a question and a namespace to the ids found, best first."""

    def ids(found: Any) -> list[str]:
        return [result["id"] for result in found["results"]]

    def words(query: str, namespace: str, limit: int = DEPTH) -> list[str]:
        return ids(client.search_memory(query, limit=limit, namespace=namespace))

    def meaning(query: str, namespace: str, limit: int = DEPTH) -> list[str]:
        return ids(client.semantic_search(query, limit, namespace=namespace))

    def fused(query: str, namespace: str) -> list[str]:
        scores: dict[str, float] = {}
        for listed in (
            words(query, namespace, FUSED_DEPTH),
            meaning(query, namespace, FUSED_DEPTH),
        ):
            for place, found in enumerate(listed, 1):
                scores[found] = scores.get(found, 0.0) + 1 / (FUSION_CONSTANT + place)
        return sorted(scores, key=lambda found: -scores[found])[:DEPTH]

    def recalled(query: str, namespace: str) -> list[str]:
        return ids(client.recall(query, DEPTH, namespace=namespace))

    return {"words": words, "meaning": meaning, "rank fusion": fused, "recall": recalled}


def ask(
    asking: dict[str, Ask],
    labelled: LabelledSet,
    ids: dict[int | str, str],
    namespace: str,
    group: str,
) -> Iterator[Outcome]:
    """Ask every question of a set in every way."""
    for question in labelled.questions:
        for way, call in asking.items():
            started = time.perf_counter()
            found = call(question.text, namespace)
            took_ms = (time.perf_counter() - started) * 1000
            yield Outcome(group, question.kind, way, _places(question, ids, found), took_ms)


def _places(
    question: Question, ids: dict[int | str, str], found: Sequence[str]
) -> list[int | None]:
    place_of = {memory_id: place for place, memory_id in enumerate(found, 1)}
    return [place_of.get(ids[label]) for label in question.evidence]


def show(outcomes: Sequence[Outcome], *, kinds: bool) -> None:
    """One row a set (or a kind of question) and way of asking."""
    table = Table(title="Evidence found")
    headings = ("set", "questions", "asked by", "recall@5", "@10", "@20", "hit@1", "hit@10", "MRR")
    for heading in (*headings, "p50 ms"):
        table.add_column(heading, justify="left" if heading in ("set", "asked by") else "right")
    rows: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        rows.setdefault(outcome.group, []).append(outcome)
    if kinds:
        for outcome in outcomes:
            rows.setdefault(f"{outcome.group}: {outcome.kind}", []).append(outcome)
    for name in sorted(rows):
        for way in dict.fromkeys(outcome.way for outcome in rows[name]):
            chosen = [outcome for outcome in rows[name] if outcome.way == way]
            table.add_row(name, str(len(chosen)), way, *_figures(chosen))
        table.add_section()
    Console(width=120).print(table)


def _figures(outcomes: Sequence[Outcome]) -> list[str]:
    firsts = [outcome.first() for outcome in outcomes]
    figures = [mean_recall(outcomes, k) for k in (5, 10, 20)]
    figures += [statistics.mean(p is not None and p <= k for p in firsts) for k in (1, 10)]
    figures.append(statistics.mean(1 / place if place else 0.0 for place in firsts))
    p50_ms = statistics.median(outcome.took_ms for outcome in outcomes)
    return [f"{figure:.3f}" for figure in figures] + [f"{p50_ms:.1f}"]


def summary(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Each set and way of asking, in figures."""
    found = []
    for group, way in dict.fromkeys((outcome.group, outcome.way) for outcome in outcomes):
        chosen = [o for o in outcomes if (o.group, o.way) == (group, way)]
        firsts = [outcome.first() for outcome in chosen]
        found.append(
            {
                "group": group,
                "way": way,
                "questions": len(chosen),
                **{f"recall_at_{k}": mean_recall(chosen, k) for k in (5, 10, 20)},
                "mrr": statistics.mean(1 / place if place else 0.0 for place in firsts),
                "p50_ms": statistics.median(outcome.took_ms for outcome in chosen),
            }
        )
    return found


def mean_recall(outcomes: Sequence[Outcome], k: int) -> float:
    """Recall@k, each question counting alike."""
    return statistics.mean(outcome.recall(k) for outcome in outcomes)


def met(outcomes: Sequence[Outcome]) -> bool:
    """Whether recall is as good as it should be, with a sentence for each set where it is not."""
    fine = True
    for group in sorted({outcome.group for outcome in outcomes}):
        by_way = {
            way: mean_recall([o for o in outcomes if o.group == group and o.way == way], 10)
            for way in ("rank fusion", "recall")
        }
        bound = max(by_way["rank fusion"], LOCOMO_RECALL_AT_10 if group == "locomo" else 0.0)
        if by_way["recall"] < bound - 1e-9:
            print(f"{group}: recall@10 is {by_way['recall']:.3f}, and should be {bound:.3f}.")
            fine = False
    return fine


def measure(sets: Sequence[LabelledSet], *, together: bool) -> list[Outcome]:
    """Store the sets in a service of their own and ask all questions."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data", "local")
        service.start()
        try:
            with MemoryClient(service.endpoint, timeout=TIMEOUT_S) as client:
                stored = [store(client, labelled) for labelled in sets]
                asking = ways(client)
                for labelled, ids in zip(sets, stored, strict=True):
                    outcomes += ask(asking, labelled, ids, namespace_of(labelled), labelled.group)
                    if together:
                        group = f"{labelled.group}, in one store"
                        outcomes += ask(asking, labelled, ids, ROOT, group)
        finally:
            service.stop()
    return outcomes


def main(arguments: Sequence[str] | None = None) -> bool:
    """Measure and print; whether every bound is met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall")
    parser.add_argument("--locomo", type=Path, help="a file of LoCoMo conversations")
    parser.add_argument("--sets", nargs="*", help="sets of benchmarks/recall_sets; all by default")
    parser.add_argument("--kinds", action="store_true", help="a row for each kind of question")
    parser.add_argument("--together", action="store_true", help="ask of all sets at once as well")
    options = parser.parse_args(arguments)
    sets = own_sets(options.sets)
    if options.locomo is None:
        print(
            "LoCoMo is left out: fetch locomo10.json from github.com/snap-research/locomo and give "
            "its path with --locomo."
        )
    elif not options.locomo.exists():
        parser.error(f"{options.locomo} is not there.")
    else:
        sets = [*locomo(options.locomo), *sets]
    outcomes = measure(sets, together=options.together)
    show(outcomes, kinds=options.kinds)
    results.keep("recall", {"sets": summary(outcomes)})
    return met(outcomes)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
