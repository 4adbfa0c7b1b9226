"""What docs/trust.md says of secrets, on a real orchestrator."""

from __future__ import annotations

from pathlib import Path

from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine


def test_what_the_guide_says_of_secrets_is_so(tmp_path: Path) -> None:
    key = f"sk-proj-{'q7Zk2Vw9Xb4Lm1Rt' * 3}"
    for mode, printed in (("mask", "The key is [masked OpenAI key]"), ("refuse", "secret_refused")):
        env = {"RECOLLECT_TRUST_SECRETS": mode}
        with OrchestratorProcess(tmp_path / mode, env=env) as process:
            recollect = CommandLine(tmp_path, process.endpoint)
            added = recollect("add", f"The key is {key}", "--json")
            shown = recollect("list").out if added.code == 0 else added.out
            assert printed in shown and key not in shown + process.log()
