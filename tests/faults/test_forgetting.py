"""P23: what one source wrote can be taken back, with all that was derived from it, reversibly."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from recollect.client import MemoryClient, Retry
from recollect.orchestrator.access.grants import EVERYTHING
from recollect.orchestrator.access.identities import Identity
from recollect.protocol import errors
from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.test_consolidation import LEFT_OUT, whole
from tests.harness.postgres import new_database
from tests.harness.processes import OrchestratorProcess
from tests.harness.worlds import World

HOMES = ("project:alpha", "user:anna")
AGENTS = ("planner", "critic", "rogue")
ROGUE = "rogue"
WEB = "web:rogue.example"
MARKER = "Quixotania"
"""In all that the rogue writes, and in nothing else."""
PLACES = ("Oslo", "Rome", "Paris", "Madrid", "Vienna", "Prague")
STEPS = 60


@pytest.fixture(params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    url = "sqlite" if request.param == "sqlite" else new_database()
    world = World(url, tmp_path / "data")
    yield world
    world.close()


class History:
    """A random life of a store in which one agent lies."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.honest: set[str] = set()
        """Memories that others wrote by themselves."""

    def live(self) -> None:
        steps = (self._add, self._add, self._add, self._update, self._settle, self._summarise)
        for home in HOMES:
            for number in range(6):
                self._write("planner", f"A note about gadget{number}", home)
        for _ in range(STEPS):
            self.chance.choice(steps)()

    def _add(self) -> None:
        who = self.chance.choice(AGENTS)
        subject = f"Person{self.chance.randrange(5)}"
        place = f"{MARKER}{self.chance.randrange(99)}" if who == ROGUE else self._place()
        self._write(who, f"{subject} lives in {place}", self.chance.choice(HOMES))

    def _place(self) -> str:
        return self.chance.choice(PLACES)

    def _write(self, who: str, text: str, home: str) -> str:
        # The rogue also comes by way of a page that others only quote.
        quoted = who == ROGUE and self.chance.random() < 0.3
        source = WEB if quoted else None
        operation = ops.AddMemory(text, namespace=home, source=source)
        memory_id: str = self._do("planner" if quoted else who, operation)["memory_id"]
        if who != ROGUE:
            self.honest.add(memory_id)
        return memory_id

    def _do(self, who: str, operation: Operation[Any]) -> Any:
        """Who has a key of their own may give any name, and the rogue gives many."""
        if who == ROGUE and self.chance.random() < 0.5:
            name = self.chance.choice(("planner", "helper-1", "helper-2"))
            return self.world(operation, Identity(ROGUE, EVERYTHING), agent=name)
        return self.world(operation, agent=who)

    def _present(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.world(ops.ListMemories(limit=500))["memories"]
        return listed

    def _update(self) -> None:
        memory = self.chance.choice(self._present())
        if self.chance.random() < 0.4:
            change = {"content": f"{memory['content'].split()[0]} lives in {MARKER}"}
            self._do(ROGUE, ops.UpdateMemory(memory["id"], change))
        else:
            tags = {"tags": [f"seen{self.chance.randrange(9)}"]}
            self.world(ops.UpdateMemory(memory["id"], tags), agent="critic")

    def _settle(self) -> None:
        strategy: Any = self.chance.choice(("merge", "merge", "keep_latest"))
        with suppress(errors.LimitExceeded):
            self.world(ops.Consolidate(self.chance.choice(HOMES), strategy), agent="gardener")

    def _summarise(self) -> None:
        """Somebody writes down what some memories say, and from which."""
        chosen = self.chance.sample(self._present(), 2)
        text = f"Summary{self.chance.randrange(10_000)}: " + "; ".join(m["content"] for m in chosen)
        summary = self.world(
            ops.AddMemory(text, memory_type="summary", namespace=chosen[0]["namespace"]),
            agent="critic",
        )["memory_id"]
        for memory in chosen:
            self.world(ops.AddRelationship(summary, memory["id"], "derived_from"))


def check_forgotten(trial: Trial, case: str, history: History, sources: tuple[str, ...]) -> None:
    world = history.world
    listed = world(ops.ListMemories(limit=500, include_archived=True))["memories"]
    living = {memory["id"] for memory in listed}
    for memory in listed:
        if MARKER in memory["content"]:
            trial.violated(f"{case}: {memory['id']} still says {memory['content']!r}")
        if memory["created_by"] in sources or memory["source"] in sources:
            trial.violated(f"{case}: {memory['id']} of {memory['created_by']} is still there")
    for memory_id in history.honest - living:
        trial.violated(f"{case}: {memory_id}, which others wrote, is gone")
    hits = world(ops.SemanticSearch(f"Person1 lives in {MARKER}", 50))["results"]
    for hit in hits:
        if MARKER in hit["content"]:
            trial.violated(f"{case}: {hit['content']!r} is still found")


@pytest.mark.timeout(counts.timeout_s(300))
def test_all_of_a_source_is_taken_back_and_can_be_brought_back(world: World) -> None:
    with Trial("P23") as trial:
        for seed in range(counts.SEED, counts.SEED + counts.pick(2, 100)):
            history = History(world, seed)
            history.live()
            before = whole(world)
            assert any(MARKER in str(row) for row in before), "there was nothing to take back"
            dry = [world(ops.ForgetSource(source, True)) for source in (ROGUE, WEB)]
            trial.check(whole(world) == before, f"{seed}: a dry run changed something")
            assert sum(answer["forgotten"] for answer in dry), dry
            runs = []
            for source in (ROGUE, WEB):
                trial.case()
                runs.append(world(ops.ForgetSource(source), agent="gardener"))
            check_forgotten(trial, f"seed {seed}", history, (ROGUE, WEB))
            for source in (ROGUE, WEB):
                left = world(ops.ForgetSource(source, True))
                trial.check(left["memory_ids"] == [], f"{seed}: {left} is left of {source}")
            for run in reversed(runs):
                trial.case()
                undone = world(ops.Undo(run["run_id"]), agent="gardener")
                trial.check(undone["skipped"] == [], f"{seed}: {undone['skipped']} were left")
            trial.check(whole(world) == before, f"{seed}: undo did not bring all back")
            # What comes next begins with an empty store.
            for run in (world(ops.ForgetSource(source)) for source in (ROGUE, WEB)):
                assert run["run_id"]
            check_forgotten(trial, f"seed {seed}, again", history, (ROGUE, WEB))
            for memory in world(ops.ListMemories(limit=500, include_archived=True))["memories"]:
                world(ops.Purge(memory["id"]))


FORGOTTEN = 120


@pytest.mark.timeout(counts.timeout_s(120))
def test_a_forgetting_that_is_killed_is_taken_back_as_a_whole(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    with Trial("P23") as trial:
        try:
            with process.start(), process.client(agent_id=ROGUE, timeout=30.0) as client:
                items = [{"content": f"{MARKER} number {n}"} for n in range(FORGOTTEN)]
                client.batch_add_memories(items, namespace=HOMES[0])
                before = _kept(client)
            for death in ("forgetting:1", "forgetting:2", "forgetting:3"):
                process.start(RECOLLECT_FAILPOINTS=death)
                with (
                    process.client(retry=Retry(attempts_max=1)) as client,
                    pytest.raises(errors.TransportError),
                ):
                    client.forget_source(ROGUE, timeout=60.0)
                assert process.wait_ended() == -9, process.log()
                trial.case()
                with process.start(), process.client(timeout=30.0) as client:
                    trial.check(_kept(client) == before, f"killed at {death}: not as before")
                    status = client.list_runs()["runs"][0]["run_status"]
                    trial.check(status == "failed", f"killed at {death}: the run is {status}")
            with process.start(), process.client(timeout=60.0) as client:
                trial.case()
                run = client.forget_source(ROGUE)
                trial.check(run["forgotten"] == FORGOTTEN, f"{run['forgotten']} were forgotten")
                assert run["run_id"] is not None
                client.undo(run["run_id"])
                trial.check(_kept(client) == before, "undo did not bring all back")
        finally:
            process.close()


def _kept(client: MemoryClient) -> dict[str, dict[str, Any]]:
    listed = client.list_memories(limit=500, include_archived=True)["memories"]
    return {m["id"]: {k: v for k, v in m.items() if k not in LEFT_OUT} for m in listed}
