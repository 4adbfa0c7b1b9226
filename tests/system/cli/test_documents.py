"""Documents over a real orchestrator and the command line: indexed, synced, searched, deleted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from recollect import AsyncMemoryClient, MemoryClient
from recollect.protocol.errors import PathRefused
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine
from tests.unit.orchestrator.documents.samples import HTML, pdf

GUIDE = "# Pump guide\n\nKeep it dry.\n\n## Start\n\nPull the blue cord twice, then wait.\n"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    library = tmp_path / "library"
    library.mkdir()
    return library


@pytest.fixture
def process(tmp_path: Path, library: Path) -> Iterator[OrchestratorProcess]:
    roots = {"RECOLLECT_DOCUMENTS_ROOTS": str(library)}
    with OrchestratorProcess(tmp_path / "data", env=roots) as process:
        yield process


@pytest.fixture
def recollect(process: OrchestratorProcess, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, process.endpoint)


def test_a_document_goes_in_is_found_and_goes(recollect: CommandLine, library: Path) -> None:
    (library / "guide.md").write_text(GUIDE)
    indexed = recollect("documents", "index", library / "guide.md", "-n", "project:pump")
    assert indexed.code == 0, indexed
    assert "Indexed Pump guide (markdown): 1 chunk, 1 new, 0 kept, 0 gone" in indexed.out
    again = recollect("documents", "index", "library/guide.md", "-n", "project:pump", "--json")
    assert (again.json()["added"], again.json()["kept"]) == (0, 1)

    found = recollect("documents", "search", "which cord do I pull?", "-n", "project:pump")
    assert found.code == 0 and "Pull the blue cord twice" in found.out
    # A long path has a line of its own, or several.
    assert f"{library}/guide.md:1" in "".join(found.out.split())
    [hit] = recollect("documents", "search", "cord", "--json").json()["results"]
    assert hit["metadata"]["position"] == 1

    listed = recollect("documents", "list", "--status", "synced")
    assert "Pump guide" in listed.out and "markdown" in listed.out
    document_id = again.json()["document"]["id"]
    assert recollect("documents", "search", "cord", "--document", document_id[-8:]).code == 0
    deleted = recollect("documents", "delete", document_id[-8:])
    assert (deleted.code, deleted.out) == (0, f"Deleted {document_id} with 1 chunk\n")
    assert recollect("documents", "delete", document_id).code == 1
    assert "Nothing was found" in recollect("documents", "search", "cord").err
    assert "There are no documents" in recollect("documents", "list").err


def test_standard_input_is_a_document_of_the_source_it_is_said_to_have(
    recollect: CommandLine,
) -> None:
    command = ("documents", "index", "-", "--source", "wiki/pump", "--title", "The pump", "--json")
    first = recollect(*command, "--type", "markdown", given=GUIDE).json()
    assert first["document"]["title"] == "The pump"
    second = recollect(*command, given=GUIDE.replace("twice", "once")).json()
    assert second["document"]["id"] == first["document"]["id"]
    assert (second["added"], second["removed"]) == (1, 1)
    wrong = recollect("documents", "index", "x.md", "--source", "y")
    assert wrong.code == 2 and "--source belongs to standard input" in wrong.err


def test_a_folder_is_synced_and_what_failed_is_told(recollect: CommandLine, library: Path) -> None:
    (library / "guide.md").write_text(GUIDE)
    (library / "page.html").write_text(HTML)
    (library / "paper.pdf").write_bytes(pdf("Valves close slowly.", "Springs open fast."))
    (library / "tool.py").write_text("def pressure(bar):\n    return bar * 100_000\n")
    (library / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    synced = recollect("documents", "sync", library)
    assert synced.code == 0, synced
    assert f"Synced {library}: 5 files, 4 synced, 0 unchanged, 0 removed" in synced.out
    assert "1 file could not be read" in synced.err and "broken.pdf" in synced.err
    found = recollect("documents", "search", "how do springs open?", "-k", "1").out
    assert f"{library}/paper.pdf, page 2" in found
    (library / "tool.py").unlink()
    (library / "broken.pdf").unlink()
    again = recollect("documents", "sync", "library", "--json").json()
    assert (again["unchanged"], again["removed"], again["complete"]) == (3, 2, True)
    some = recollect("documents", "sync", library, "--pattern", "*.md", "--json").json()
    assert some["files"] == 1


def test_what_is_outside_is_refused_with_what_to_do(
    recollect: CommandLine, tmp_path: Path, library: Path
) -> None:
    (tmp_path / "secret.md").write_text("not to be read")
    (library / "link.md").symlink_to(tmp_path / "secret.md")
    for path in (tmp_path / "secret.md", library / "link.md", Path("/etc/passwd")):
        refused = recollect("documents", "index", path)
        assert refused.code == 1 and "(path_refused)" in refused.err
        assert "documents.roots" in refused.err and "not to be read" not in refused.err
    assert recollect("documents", "sync", tmp_path).code == 1


def test_both_clients_index_and_find(process: OrchestratorProcess, library: Path) -> None:
    (library / "guide.md").write_text(GUIDE)
    with MemoryClient(process.endpoint) as client:
        answer = client.index_document(str(library / "guide.md"), namespace="user:a")
        assert answer["document"]["document_status"] == "synced"
        assert client.search_documents("blue cord", min_seq=answer["seq"])["count"] == 1
        with pytest.raises(PathRefused):
            client.index_document("/etc/passwd")

    async def run() -> int:
        async with AsyncMemoryClient(process.endpoint) as client:
            synced = await client.sync_documents(str(library), "user:a")
            return synced["unchanged"]

    assert asyncio.run(run()) == 1


def test_readers_end_with_the_orchestrator_however_it_ends(
    process: OrchestratorProcess, library: Path
) -> None:
    (library / "guide.md").write_text(GUIDE)

    def readers() -> list[psutil.Process]:
        return [
            child
            for child in psutil.Process(process.pid).children()
            if "recollect.orchestrator.documents.reading_process" in child.cmdline()
        ]

    for end in (process.kill, process.stop):
        if not process.running():
            process.start()
        with process.client() as client:
            client.index_document(str(library / "guide.md"), f"Title {os.urandom(4).hex()}")
        started = readers()
        assert started
        end()
        _, left = psutil.wait_procs(started, timeout=10)
        assert left == []
