"""The commands and the Python of the guide to documents, word for word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.harness.processes import OrchestratorProcess

GUIDE = Path(__file__).parents[2] / "docs" / "documents.md"


def test_the_guide_to_documents_works_word_for_word(tmp_path: Path) -> None:
    text = GUIDE.read_text()
    [config] = re.findall(r"```yaml\n(.*?)```", text, re.S)
    [commands] = re.findall(r"```sh\n(.*?)```", text, re.S)
    [source] = re.findall(r"```python\n(.*?)```", text, re.S)
    (tmp_path / "memory_config.yaml").write_text(config)
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "start.md").write_text(
        "# Start\n\nTo start the pump, pull the cord.\n"
    )
    # The configuration is found in the folder that the orchestrator is started in.
    with OrchestratorProcess(tmp_path / "data") as process:
        env = {
            **os.environ,
            "RECOLLECT_ENDPOINT": process.endpoint,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "200",
        }
        for line in commands.strip().splitlines():
            run = subprocess.run(
                ["bash", "-c", line],
                capture_output=True,
                text=True,
                timeout=60,
                env=env,
                cwd=tmp_path,
            )
            assert run.returncode == 0, (line, run.stderr)
            if "search" in line:
                assert "pull the cord" in run.stdout or "Friday" in run.stdout, run.stdout
        run = subprocess.run(
            [sys.executable, "-c", source],
            capture_output=True,
            text=True,
            timeout=60,
            env=env,
            cwd=tmp_path,
        )
        assert run.returncode == 0, run.stderr
        assert run.stdout.startswith("wiki/valves 1 Valves # Valves")
