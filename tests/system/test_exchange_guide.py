"""docs/import-export.md, word for word: its commands and its Python, in their order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.harness import foreign_files
from tests.harness.forks import ROOT
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine

GUIDE = ROOT / "docs" / "import-export.md"
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.S)


def test_the_guide_works_word_for_word(orchestrator: OrchestratorProcess, tmp_path: Path) -> None:
    blocks = BLOCK.findall(GUIDE.read_text())
    assert [kind for kind, _ in blocks] == ["sh", "python", "sh"]
    # What its commands name.
    foreign_files.mem0_file(tmp_path)
    foreign_files.langgraph_database(tmp_path)
    foreign_files.mcp_memory_file(tmp_path)
    foreign_files.chatgpt_zip(tmp_path)
    foreign_files.claude_file(tmp_path)
    recollect = CommandLine(tmp_path, orchestrator.endpoint)
    with orchestrator.client() as client:
        client.add_memory("The brig sails at dawn")
    printed = []
    for kind, source in blocks:
        if kind == "python":
            env = recollect.environment(PYTHONPATH=str(ROOT))
            run = [sys.executable, "-c", source]
            ended = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=env)
            assert ended.returncode == 0, ended
            printed.append(ended.stdout)
            continue
        said = ""
        for line in source.splitlines():
            program, *args = shlex.split(line)
            told = recollect(*args)
            assert (program, told.code) == ("recollect", 0), (line, told)
            said += told.out
        printed.append(said)
    assert "Exported 1 memory" in printed[0]
    assert "Added 0 records; 1 were there already" in printed[0]
    assert printed[1] == "['Tides turn twice a day'] None\n1 there already\n"
    with orchestrator.client() as client:
        assert client.forget_source("import:mem0", dry_run=True)["forgotten"] == 4
        assert len(client.list_sessions("alice")["sessions"]) == 2
