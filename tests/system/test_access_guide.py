"""docs/access.md, word for word: its commands in their order, and its Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.harness.forks import ROOT
from tests.harness.processes import ASK_FOR_KEYS, LIGHT, OrchestratorProcess

GUIDE = ROOT / "docs" / "access.md"
BLOCK = re.compile(r"```(sh|sh up|python)\n(.*?)```", re.S)
ENDS_WITHIN_S = 120


def test_the_commands_and_the_python_of_the_access_guide_work_word_for_word(
    tmp_path: Path,
) -> None:
    blocks = BLOCK.findall(GUIDE.read_text())
    kinds = [kind for kind, _ in blocks]
    assert kinds[:2] == ["sh", "sh up"] and kinds.count("sh") >= 4 and "python" in kinds
    process = OrchestratorProcess(tmp_path / "recollect-data", env={ASK_FOR_KEYS: "true"})
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("RECOLLECT_")}
    env = {**inherited, **LIGHT, "PYTHONPATH": str(ROOT)}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    try:
        for kind, source in blocks:
            if kind == "sh up":
                # `recollect up` stays; the orchestrator alone, at a free port, does the same here.
                process.start()
                env["RECOLLECT_ENDPOINT"] = process.endpoint
                continue
            command = ["bash", "-e"] if kind == "sh" else [sys.executable, "-"]
            ended = subprocess.run(
                command,
                input=source,
                capture_output=True,
                text=True,
                timeout=ENDS_WITHIN_S,
                cwd=tmp_path,
                env=env,
            )
            assert ended.returncode == 0, (source, ended.stdout, ended.stderr)
        with process.client() as client:
            listed = {i["name"]: i for i in client.list_identities()["identities"]}
        assert listed.keys() == {"alice", "bob", "carol", "planner", "crawler"}
        assert listed["bob"]["revoked_at"] and not listed["alice"]["revoked_at"]
        labels = {k["label"]: k["revoked_at"] is None for k in listed["carol"]["bearer_keys"]}
        assert labels == {"laptop": False, "server": True}
        assert (listed["crawler"]["requests_per_s"], listed["crawler"]["memories_max"]) == (
            20,
            10_000,
        )
        with process.client(key_file=tmp_path / "alice.key") as alice:
            assert alice.count(namespace="user:alice")["count"] == 2
    finally:
        process.close()
