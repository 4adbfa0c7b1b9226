"""ping, stats and version."""

from __future__ import annotations

from tests.harness.storages import CHOSEN, SQLITE
from tests.system.cli.commands import CommandLine


def test_ping_stats_and_version_speak_to_people(recollect: CommandLine) -> None:
    assert recollect("add", "One.").code == 0
    ping, stats = recollect("ping"), recollect("stats")
    assert recollect.endpoint is not None
    assert recollect.endpoint in ping.out and "answers" in ping.out
    assert "short 1" in stats.out and CHOSEN.kind in stats.out
    assert "256 dimensions" in stats.out and "unknown" not in stats.out
    assert "1 in the head" in stats.out or CHOSEN.kind != SQLITE
    version = recollect("version", "--json").json()["recollect"]
    assert recollect("--version").out == f"recollect {version}\n"
    assert recollect("version").out.startswith(f"recollect {version}\n")
