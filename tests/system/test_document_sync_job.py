"""The job that brings documents up to date, over a real connection: which files it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec import structs

from recollect import AsyncMemoryClient, MemoryClient
from recollect.config import Settings
from recollect.protocol.records import JobRunRecord
from recollect.scheduler.jobs import document_sync
from recollect.scheduler.work import Work
from tests.harness.processes import OrchestratorProcess

TIME_LIMIT_S = 30.0


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@pytest.fixture(scope="module")
def orchestrator(
    storage: str, tmp_path_factory: pytest.TempPathFactory, root: Path
) -> Iterator[OrchestratorProcess]:
    env = {"RECOLLECT_DOCUMENTS_ROOTS": str(root)}
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
        "job": document_sync.JOB.name,
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


def run_job(orchestrator: OrchestratorProcess, roots: str, **limits: int) -> None:
    """Run the job as the scheduler does."""

    async def run() -> None:
        settings = Settings()
        documents = structs.replace(settings.documents, roots=(roots,))
        limited = structs.replace(settings.limits, **limits)
        settings = structs.replace(settings, documents=documents, limits=limited)
        async with AsyncMemoryClient(orchestrator.endpoint) as client:
            await document_sync.run(Work(client, job_run(), settings, TIME_LIMIT_S))

    asyncio.run(run())


def names(client: MemoryClient, namespace: str) -> list[str]:
    found = client.list_documents(namespace=namespace, limit=100)["documents"]
    return sorted(Path(document["source"]).name for document in found)


def text_of(client: MemoryClient, namespace: str) -> str:
    chunks = client.list_memories(namespace=namespace, limit=100)
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
    run_job(orchestrator, str(root))
    assert names(client, "project:shop") == ["Makefile", "README", "guide.md", "more.md"]
    assert "The README of today." in text_of(client, "project:shop")


def test_a_name_is_that_name_whatever_is_in_it(
    orchestrator: OrchestratorProcess, client: MemoryClient, root: Path
) -> None:
    path = root / "odd" / "notes [2026].md"
    client.index_document(write(path, "The brig sails at dawn."), namespace="project:odd")
    write(path, "The brig sails at noon.")
    run_job(orchestrator, str(root))
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
    run_job(orchestrator, "~/home")
    assert "at noon" in text_of(client, "project:home")
