"""Every page, word for word: its commands and its Python, in their order, on a real system.

What a block needs beside a running orchestrator is said here; what no test can run says so itself,
in the page. tests/unit/test_docs.py reads the settings and data that pages show.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import foreign_files
from tests.harness.forks import ROOT
from tests.harness.gateways import REST_ALONE, GatewayProcess
from tests.harness.grpc_gateways import GRPC_ALONE
from tests.harness.health import WITHOUT_DASHBOARD, HealthProcess
from tests.harness.models import real_model
from tests.harness.pages import PAGES
from tests.harness.schedulers import SchedulerProcess, only_when_asked
from tests.system.docs.page_run import PageRun

WITH_CODE = [
    page.name
    for page in PAGES.values()
    if any(b.language in ("python", "sh") and b.not_run is None for b in page.blocks)
]
PRINTED = {
    "README.md": ["Anna prefers green tea", "2 versions", "canary must be green"],
    "docs/audit.md": ["update_memory 1 2", "as it was"],
    "docs/consolidation.md": [
        "contradiction | Berlin against Paris",
        "Clara lives in Berlin",
        "4 memories as before, 2 memories removed.",
    ],
    "docs/documents.md": ["pull the cord", "Friday", "wiki/valves 1 Valves # Valves"],
    "docs/feed.md": ["add_memory", "local bad_row 3 A row has no date"],
    "docs/grpc.md": ["Anna prefers green tea", "['add_memory']"],
    "docs/import-export.md": [
        "Exported 1 memory",
        "Added 0 records; 1 were there already",
        "['Tides turn twice a day'] None\n1 there already",
    ],
    "docs/integrations.md": ["tea Ann drinks green tea", "1 item", "I drink green tea"],
    "docs/outbox.md": ["queued 1", "The pump was replaced by rover"],
    "docs/protocol.md": ["'status': 'success', 'memory_id'"],
    "docs/purging.md": ["0 left"],
    "docs/quickstart.md": ["Danish", "2 Anna prefers black tea\n1 Anna prefers green tea"],
    "docs/trust.md": ["['https://shop.example']", "True"],
}
"""What a reader sees of some pages, in this order."""


def handbook(run: PageRun) -> None:
    (run.folder / "handbook").mkdir()
    text = "# Start\n\nTo start the pump, pull the cord.\n"
    (run.folder / "handbook" / "start.md").write_text(text)
    run.start_orchestrator()


def foreign_exports(run: PageRun) -> None:
    foreign_files.mem0_file(run.folder)
    foreign_files.langgraph_database(run.folder)
    foreign_files.mcp_memory_file(run.folder)
    foreign_files.chatgpt_zip(run.folder)
    foreign_files.claude_file(run.folder)
    run.start_orchestrator()
    run.client().add_memory("The brig sails at dawn")


def scheduler(run: PageRun) -> None:
    orchestrator = run.start_orchestrator()
    folder = run.folder / "scheduler"
    run.open.enter_context(SchedulerProcess(orchestrator, folder, only_when_asked()))
    client = run.client()
    run.placeholders["RUN"] = lambda: client.job_history("backup")["runs"][0]["job_run_id"]


def health(run: PageRun) -> None:
    orchestrator = run.start_orchestrator()
    settings = {**WITHOUT_DASHBOARD, "RECOLLECT_HEALTH_PORT": str(run.ports[7332])}
    watching = HealthProcess(orchestrator.data, orchestrator.endpoint, settings)
    run.open.enter_context(watching).until_state("healthy")


def rest(run: PageRun) -> None:
    gateway(run, REST_ALONE)
    memory_id = run.client().add_memory("What is changed by its id")["memory_id"]
    run.placeholders["ID"] = lambda: memory_id


def grpc(run: PageRun) -> None:
    gateway(run, GRPC_ALONE)
    (run.folder / "recollect").symlink_to(ROOT / "recollect")


def gateway(run: PageRun, parts: dict[str, str]) -> None:
    orchestrator = run.start_orchestrator()
    ports = {k: v for k, v in run.env.items() if k.endswith("_PORT")}
    settings = {**parts, **ports}
    run.open.enter_context(GatewayProcess(orchestrator.data, orchestrator.endpoint, settings))


NEEDS: dict[str, Callable[[PageRun], object]] = {
    "README.md": PageRun.start_everything,
    "docs/access.md": PageRun.stop_at_the_end,
    "docs/documents.md": handbook,
    "docs/grpc.md": grpc,
    "docs/health.md": health,
    "docs/import-export.md": foreign_exports,
    "docs/jobs.md": scheduler,
    "docs/operating.md": PageRun.start_everything,
    "docs/quickstart.md": PageRun.stop_at_the_end,
    "docs/rest.md": rest,
    "docs/running.md": PageRun.stop_at_the_end,
}
"""What there is when a reader begins with a page; for all others, a running orchestrator."""


def look(name: str, printed: str) -> None:
    """See whether a page printed what it should."""
    rest = printed
    for piece in PRINTED.get(name, []):
        assert piece in rest, f"{piece!r} is not in:\n{printed}"
        rest = rest.partition(piece)[2]


@pytest.mark.parametrize("name", WITH_CODE)
def test_a_page_works_word_for_word(name: str, tmp_path: Path) -> None:
    with PageRun(PAGES[name], tmp_path) as run:
        NEEDS.get(name, PageRun.start_orchestrator)(run)
        look(name, run.run("python", "sh"))


def test_the_python_of_the_readme_works_with_the_model_that_a_new_user_has(tmp_path: Path) -> None:
    real_model()
    with PageRun(PAGES["README.md"], tmp_path, RECOLLECT_EMBEDDING_PROVIDER="local") as run:
        run.start_orchestrator()
        look("README.md", run.run("python"))
