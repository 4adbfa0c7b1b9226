"""The guide to the frameworks, word for word, on a real orchestrator."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.harness.forks import ROOT

PRINTED = {
    "langgraph": "tea Ann drinks green tea",
    "openai_agents": "1 item",
    "google_adk": "I drink green tea",
}
GUIDE = (ROOT / "docs" / "integrations.md").read_text()


@pytest.mark.parametrize("name", PRINTED)
def test_the_python_of_the_guide_works_word_for_word(name: str, endpoint: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, re.S)
    assert len(blocks) == len(PRINTED)
    [source] = [block for block in blocks if f"recollect.integrations.{name} " in block]
    run = subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        timeout=90,
        env={**os.environ, "RECOLLECT_ENDPOINT": endpoint, "PYTHONPATH": str(ROOT)},
    )
    assert run.returncode == 0, run.stderr
    assert PRINTED[name] in run.stdout


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langgraph", "langgraph", "langgraph"),
        ("openai_agents", "agents", "openai-agents"),
        ("google_adk", "google.adk", "adk"),
    ],
)
def test_a_missing_framework_says_which_extra_to_install(
    module: str, package: str, extra: str
) -> None:
    # A name that is None in sys.modules cannot be imported, as if it were not there.
    source = f"import sys; sys.modules[{package!r}] = None; import recollect.integrations.{module}"
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    assert f"pip install 'recollect[{extra}]'" in run.stderr
