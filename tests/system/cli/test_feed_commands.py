"""feed and errors over a real orchestrator, for people and for programs."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from recollect.protocol.operations import ErrorReport
from tests.harness.forks import FORKS
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import ENDS_WITHIN_S, CommandLine, wait_for


def test_changes_are_followed_until_interrupted(
    recollect: CommandLine, orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    out, err = tmp_path / "feed.out", tmp_path / "feed.err"
    with orchestrator.client(agent_id="planner") as client:
        first = client.add_memory("Anna prefers tea", namespace="user:anna")
        client.add_memory("Bob prefers coffee", namespace="user:bob")
        following = FORKS.start(
            ["feed", "--from", "0", "--namespace", "user:anna", "--json"],
            folder=tmp_path,
            env=recollect.environment(),
            out=out,
            err=err,
        )
        try:
            wait_for(lambda: out.exists() and len(out.read_text().splitlines()) == 1, err.read_text)
            client.update_memory(first["memory_id"], {"content": "Anna prefers green tea"})
            wait_for(lambda: len(out.read_text().splitlines()) == 2, err.read_text)
            following.send_signal(signal.SIGINT)
            assert following.wait(ENDS_WITHIN_S) == 0, err.read_text()
        finally:
            following.kill()
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert [change["operation"] for change in told] == ["add_memory", "update_memory"]
    assert {change["subject"] for change in told} == {first["memory_id"]}
    shown = recollect("feed", "--from", "0", "--count", "3")
    assert shown.code == 0, shown
    for text in ("add_memory new → 1", "update_memory 1 → 2", first["memory_id"], "user:bob"):
        assert text in shown.out
    ahead = recollect("feed", "--from", "1000", "--json")
    assert (ahead.code, ahead.json()["error"]["code"]) == (1, "changes_ahead")


def test_errors_are_shown_with_who_reported_them(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    assert "No error" in recollect("errors").err
    with orchestrator.client() as client:
        error = ErrorReport("bad_row", "no date", 3, {"row": "7\x1b[2J"})
        client.report_errors("importer", [error])
    shown = recollect("errors")
    assert shown.code == 0, shown
    for text in ("bad_row", "importer", "by local", "no date", "row=7"):
        assert text in shown.out
    assert "\x1b" not in shown.out
    [kept] = recollect("errors", "--source", "importer", "--json").json()["errors"]
    assert (kept["count"], kept["identity"]) == (3, "local")
    assert recollect("errors", "--code", "other", "--json").json()["count"] == 0
