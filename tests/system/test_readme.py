"""The README's Python, word for word, against a real orchestrator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.models import real_model
from tests.harness.processes import OrchestratorProcess

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
GUIDES = {
    "search": 3,
    "namespaces": 3,
    "sessions": 2,
    "longterm": 3,
    "tiers": 1,
    "working": 2,
    "learning": 3,
    "operational": 2,
    "context": 1,
}
"""The guides, with how many pieces of Python each has."""


@pytest.mark.parametrize("provider", ["hashed", "local"])
def test_the_python_of_the_readme_works_word_for_word(tmp_path: Path, provider: str) -> None:
    """With the model that a new user has, and with the embedder of most other tests."""
    if provider == "local":
        real_model()
    sources = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(sources) == 2, "the second goes on where the first ends"
    source = "\n".join(sources)
    embedding = {"RECOLLECT_EMBEDDING_PROVIDER": provider}
    with OrchestratorProcess(tmp_path / "data", env=embedding) as orchestrator:
        run = subprocess.run(
            [sys.executable, "-c", source],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "RECOLLECT_ENDPOINT": orchestrator.endpoint},
        )
    assert run.returncode == 0, run.stderr
    assert "Anna prefers green tea" in run.stdout
    assert "2 versions" in run.stdout
    assert "canary must be green" in run.stdout.partition("2 versions")[2], run.stdout


@pytest.mark.parametrize("guide", GUIDES)
def test_the_python_of_every_guide_works_word_for_word(
    orchestrator: OrchestratorProcess, guide: str
) -> None:
    text = (ROOT / "docs" / f"{guide}.md").read_text()
    sources = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(sources) == GUIDES[guide]
    for source in sources:
        run = subprocess.run(
            [sys.executable, "-c", source],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "RECOLLECT_ENDPOINT": orchestrator.endpoint},
        )
        assert run.returncode == 0, run.stderr
