"""The guides to the audit, the feed, purging and trust, word for word, on a real orchestrator."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine

DOCS = Path(__file__).parents[2] / "docs"
PRINTED = {
    "feed.md": ["add_memory", "local bad_row 3 A row has no date"],
    "audit.md": ["update_memory 1 2", "as it was"],
    "purging.md": ["0 left"],
    "trust.md": ["['https://shop.example']", "True"],
}


def blocks(guide: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / guide).read_text(), re.S)


@pytest.mark.parametrize("guide", PRINTED)
def test_the_python_of_the_guides_works_word_for_word(
    orchestrator: OrchestratorProcess, guide: str
) -> None:
    sources = blocks(guide, "python")
    assert len(sources) == len(PRINTED[guide])
    for source, printed in zip(sources, PRINTED[guide], strict=True):
        run = subprocess.run(
            [sys.executable, "-c", source],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "RECOLLECT_ENDPOINT": orchestrator.endpoint},
        )
        assert run.returncode == 0, run.stderr
        assert printed in run.stdout


def test_the_commands_of_the_audit_guide_work_word_for_word(
    orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    with orchestrator.client(task_id="launch-7") as client:
        client.add_memory("Anna prefers tea", namespace="user:anna")
    recollect = CommandLine(tmp_path, orchestrator.endpoint)
    lines = [line for block in blocks("audit.md", "sh") for line in block.splitlines()]
    assert len(lines) == 5
    for line in lines:
        program, *args = shlex.split(line)
        assert program == "recollect"
        answer = recollect(*args)
        assert answer.code == 0, (line, answer)


def test_what_the_guide_says_of_secrets_is_so(tmp_path: Path) -> None:
    key = f"sk-proj-{'q7Zk2Vw9Xb4Lm1Rt' * 3}"
    for mode, printed in (("mask", "The key is [masked OpenAI key]"), ("refuse", "secret_refused")):
        env = {"RECOLLECT_TRUST_SECRETS": mode}
        with OrchestratorProcess(tmp_path / mode, env=env) as process:
            recollect = CommandLine(tmp_path, process.endpoint)
            added = recollect("add", f"The key is {key}", "--json")
            shown = recollect("list").out if added.code == 0 else added.out
            assert printed in shown and key not in shown + process.log()
