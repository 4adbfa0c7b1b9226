"""An adapter without its framework says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


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
