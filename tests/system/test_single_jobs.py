"""Single jobs, as the scheduler runs them, over a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from msgspec import structs

from recollect import AsyncMemoryClient, MemoryClient
from recollect.config import Settings
from recollect.protocol.errors import LimitExceeded
from recollect.protocol.records import JobRunRecord
from recollect.scheduler.jobs import consolidation, decay, document_sync, retention, tier_migration
from recollect.scheduler.work import Job, Work
from tests.harness.processes import OrchestratorProcess

TIME_LIMIT_S = 30.0
PAGE_ITEMS_MAX = 1_000
RUN_ITEMS_MAX = 2_000
"""More than a page may have."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@pytest.fixture(scope="module")
def orchestrator(
    storage: str, tmp_path_factory: pytest.TempPathFactory, root: Path
) -> Iterator[OrchestratorProcess]:
    env = {
        "RECOLLECT_DOCUMENTS_ROOTS": str(root),
        "RECOLLECT_LIMITS_PAGE_ITEMS_MAX": str(PAGE_ITEMS_MAX),
    }
    with OrchestratorProcess(tmp_path_factory.mktemp("synced") / "data", env=env) as process:
        yield process


@pytest.fixture
def client(orchestrator: OrchestratorProcess) -> Iterator[MemoryClient]:
    with orchestrator.client() as client:
        yield client


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def job_run() -> JobRunRecord:
    return {
        "job_run_id": uuid4().hex,
        "job": "job",
        "cause": "request",
        "run_status": "running",
        "dry_run": False,
        "requested_by": None,
        "scheduled_at": None,
        "requested_at": "2026-01-01T00:00:00Z",
        "started_at": None,
        "ended_at": None,
        "duration_s": None,
        "holder": None,
        "progress": {},
        "counts": {},
        "error": None,
    }


def run_job(orchestrator: OrchestratorProcess, job: Job, settings: Settings) -> dict[str, Any]:
    """Run a job as the scheduler does; what it counted."""
    limits = structs.replace(settings.limits, page_items_max=PAGE_ITEMS_MAX)
    settings = structs.replace(settings, limits=limits)

    async def run() -> dict[str, Any]:
        async with AsyncMemoryClient(orchestrator.endpoint) as client:
            work = Work(client, job_run(), settings, TIME_LIMIT_S)
            await job.run(work)
            return work.counts

    return asyncio.run(run())


def sync(orchestrator: OrchestratorProcess, roots: str) -> None:
    documents = structs.replace(Settings().documents, roots=(roots,))
    run_job(orchestrator, document_sync.JOB, Settings(documents=documents))


def names(client: MemoryClient, namespace: str) -> list[str]:
    found = client.list_documents(namespace=namespace, limit=PAGE_ITEMS_MAX)["documents"]
    return sorted(Path(document["source"]).name for document in found)


def text_of(client: MemoryClient, namespace: str) -> str:
    chunks = client.list_memories(namespace=namespace, limit=PAGE_ITEMS_MAX)
    return " ".join(chunk["content"] for chunk in chunks["memories"])


def test_what_was_never_read_in_stays_out(
    orchestrator: OrchestratorProcess, client: MemoryClient, root: Path
) -> None:
    home = root / "shop"
    for name in ("README", "Makefile", "guide.md"):
        client.index_document(write(home / name, f"The {name} of old."), namespace="project:shop")
    write(home / "private.txt", "Nobody asked for this to be read.")
    write(home / "key.json", '{"nobody": "asked for this either"}')
    write(home / "more.md", "Another guide.")
    write(home / "README", "The README of today.")
    write(home / "Makefile", "today:")
    sync(orchestrator, str(root))
    assert names(client, "project:shop") == ["Makefile", "README", "guide.md", "more.md"]
    assert "The README of today." in text_of(client, "project:shop")


def test_a_name_is_that_name_whatever_is_in_it(
    orchestrator: OrchestratorProcess, client: MemoryClient, root: Path
) -> None:
    path = root / "odd" / "notes [2026].md"
    client.index_document(write(path, "The brig sails at dawn."), namespace="project:odd")
    write(path, "The brig sails at noon.")
    sync(orchestrator, str(root))
    assert "at noon" in text_of(client, "project:odd")


def test_a_root_may_be_given_from_the_home_of_the_user(
    orchestrator: OrchestratorProcess,
    client: MemoryClient,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = root / "home" / "ships.md"
    client.index_document(write(path, "The brig sails at dawn."), namespace="project:home")
    write(path, "The brig sails at noon.")
    monkeypatch.setenv("HOME", str(root))
    sync(orchestrator, "~/home")
    assert "at noon" in text_of(client, "project:home")


@pytest.mark.parametrize(
    ("name", "job"),
    [("decay", decay.JOB), ("tier_migration", tier_migration.JOB), ("retention", retention.JOB)],
)
def test_a_job_may_see_to_more_at_once_than_a_page_has(
    orchestrator: OrchestratorProcess, name: str, job: Job
) -> None:
    jobs = Settings().jobs
    chosen = structs.replace(getattr(jobs, name), limit=RUN_ITEMS_MAX)
    settings = Settings(jobs=structs.replace(jobs, **{name: chosen}))
    assert run_job(orchestrator, job, settings)["complete"] is True


def test_consolidation_counts_as_refused_only_what_would_shrink_too_much(
    orchestrator: OrchestratorProcess, client: MemoryClient
) -> None:
    for _ in range(2):
        client.add_memory("The deploy runs every Friday at noon", namespace="project:twins")

    def settings(namespace: str) -> Settings:
        jobs = Settings().jobs
        chosen = structs.replace(jobs.consolidation, namespaces=(namespace,), limit=RUN_ITEMS_MAX)
        return Settings(jobs=structs.replace(jobs, consolidation=chosen))

    done = run_job(orchestrator, consolidation.JOB, settings("project:twins"))
    assert (done["refused"], done["archived"]) == (0, 1)
    for _ in range(8):
        client.add_memory("The lamp of the harbour is green", namespace="project:lamps")
    done = run_job(orchestrator, consolidation.JOB, settings("project:lamps"))
    assert (done["refused"], done.get("archived", 0)) == (1, 0)
    with pytest.raises(LimitExceeded):
        run_job(orchestrator, consolidation.JOB, settings("project:" + "x" * 2_000))
