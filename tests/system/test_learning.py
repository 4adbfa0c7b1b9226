"""Learning works: what is suggested for a new task is what was learned from its kind, until those
who used it say that it does not help. Over real processes, by spelling and by meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect import MemoryClient
from tests.harness.models import real_model
from tests.harness.processes import OrchestratorProcess

HOME = "project:learning"
# What was to be done, what was done, and whether that was good.
MIGRATIONS = [
    ("Migrate the orders database to PostgreSQL 16", "Took a snapshot first, then copied.", True),
    ("Migrate the users database to PostgreSQL 16", "Took a snapshot first. Copied slowly.", True),
    ("Migrate the stock database to PostgreSQL 16", "Copied at noon, under full load.", False),
    ("Migrate the audit database to PostgreSQL 16", "Under full load, copied again.", False),
]
REPORTS = [
    ("Write the sales report for March", "Asked finance for figures, drew two charts.", True),
    ("Write the sales report for April", "Asked finance for figures and kept it short.", True),
    ("Write the sales report for May", "Guessed the figures, drew two charts.", False),
    ("Write the sales report for June", "Guessed the figures and kept it short.", False),
]
NEW = {
    "hashed": ("Migrate the invoice database to PostgreSQL 16", "Write the sales report for July"),
    # In other words, which only a model of meaning understands.
    "local": ("Move the invoices DB over to Postgres 16", "Prepare July's report about sales"),
}


@pytest.fixture(params=["hashed", "local"])
def provider(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    if chosen == "local":
        real_model()
    return chosen


@pytest.fixture
def client(provider: str, tmp_path: Path) -> Iterator[MemoryClient]:
    env = {"RECOLLECT_EMBEDDING_PROVIDER": provider}
    with OrchestratorProcess(tmp_path / "data", env=env) as process, process.client() as client:
        yield client


def store(client: MemoryClient, told: list[tuple[str, str, bool]], task_type: str) -> None:
    for description, summary, success in told:
        client.store_execution(
            description,
            summary,
            success,
            task_description=description,
            task_type=task_type,
            namespace=HOME,
        )


def suggested(client: MemoryClient, task: str) -> tuple[str, list[str], list[str]]:
    pattern = client.find_pattern(task)["pattern"]
    assert pattern is not None, f"nothing is suggested for {task}"
    return pattern["id"], pattern["success_indicators"], pattern["failure_indicators"]


def test_the_right_pattern_is_suggested_and_feedback_changes_which(
    client: MemoryClient, provider: str
) -> None:
    # The kinds in turn, and none says which it is.
    for migration, report in zip(MIGRATIONS, REPORTS, strict=True):
        store(client, [migration, report], "general")
    migrate, write = NEW[provider]
    migrating, good, bad = suggested(client, migrate)
    assert "took a snapshot first" in good
    assert "under full load" in bad
    writing, good, bad = suggested(client, write)
    assert "asked finance for figures" in good
    assert "guessed the figures" in bad
    assert len(client.search_patterns(namespace=HOME)["patterns"]) == 2
    assert client.find_pattern("Feed the cat")["pattern"] is None
    found = client.search_similar(migrate, similarity_threshold=0.5, success_only=True)["results"]
    assert {one["task_description"] for one in found} == {m[0] for m in MIGRATIONS[:2]}

    # Another way to do the same work, which is as yet less proven than it could be.
    store(client, [(MIGRATIONS[0][0], "Replicated and switched over.", True)] * 2, "replication")
    replicating, good, _ = suggested(client, MIGRATIONS[0][0])
    assert good == ["switched over"]
    for _ in range(4):
        client.pattern_feedback(replicating, success=False)
    assert suggested(client, MIGRATIONS[0][0])[0] == migrating
    for _ in range(8):
        client.pattern_feedback(replicating, success=True)
    assert suggested(client, MIGRATIONS[0][0])[0] == replicating
    # What one is good for says nothing about the other kind of task.
    assert suggested(client, write)[0] == writing
