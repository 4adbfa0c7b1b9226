"""docs/consolidation.md, word for word: its Python and its commands, in their order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.harness.forks import ROOT
from tests.harness.processes import LIGHT, OrchestratorProcess

GUIDE = ROOT / "docs" / "consolidation.md"
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.S)
ENDS_WITHIN_S = 120


def test_the_guide_works_word_for_word(orchestrator: OrchestratorProcess, tmp_path: Path) -> None:
    blocks = BLOCK.findall(GUIDE.read_text())
    assert [kind for kind, _ in blocks] == ["python", "sh", "python", "sh"]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("RECOLLECT_")}
    env = {**inherited, **LIGHT, "PYTHONPATH": str(ROOT)}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    env["RECOLLECT_ENDPOINT"] = orchestrator.endpoint
    printed = []
    for kind, source in blocks:
        ended = subprocess.run(
            ["bash", "-eo", "pipefail"] if kind == "sh" else [sys.executable, "-"],
            input=source,
            capture_output=True,
            text=True,
            timeout=ENDS_WITHIN_S,
            cwd=tmp_path,
            env=env,
        )
        assert ended.returncode == 0, (source, ended.stdout, ended.stderr)
        printed.append(ended.stdout)
    assert "contradiction | Berlin against Paris" in printed[0]
    assert "Clara lives in Berlin" in printed[1]
    assert "4 memories as before, 2 memories removed." in printed[1]
    with orchestrator.client() as client:
        assert client.count(namespace="user:clara")["count"] == 5
        assert client.count(namespace="project:city")["count"] == 2
