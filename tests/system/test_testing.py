"""`recollect.testing` as other people's tests use it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

CONFTEST = 'pytest_plugins = ["recollect.testing"]\n'


@pytest.fixture(autouse=True)
def without_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other people's projects have not those of this one, which take long to come in."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_a_test_has_a_memory_of_its_own_that_survives_a_kill(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        """
        def test_remembers(memory_client):
            assert memory_client.count()["count"] == 0
            memory_client.add_memory("Anna prefers green tea")
            assert memory_client.recall("green tea")["count"] == 1

        def test_begins_anew_and_survives(memory_client, recollect_orchestrator):
            assert memory_client.count()["count"] == 0
            memory_client.add_memory("Anna prefers black tea")
            before = recollect_orchestrator.endpoint
            recollect_orchestrator.kill()
            recollect_orchestrator.start()
            assert recollect_orchestrator.endpoint == before
            assert memory_client.count()["count"] == 1
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_settings_are_those_that_a_project_gives_and_wrong_ones_are_named(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        """
        import pytest
        import recollect

        @pytest.fixture
        def recollect_settings(request):
            return {f"limits.{request.function.__name__[5:]}": 10}

        def test_content_chars_max(memory_client):
            with pytest.raises(recollect.errors.LimitExceeded, match="content_chars_max"):
                memory_client.add_memory("Anna prefers green tea")

        def test_content_char_max(memory_client):
            raise AssertionError("it does not come so far")
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*did you mean*content_chars_max*"])


@pytest.mark.parametrize(
    ("missing", "advice"), [("pytest", "pip install pytest"), ("apsw", "recollect[server]")]
)
def test_without_what_it_needs_it_says_what_to_install(missing: str, advice: str) -> None:
    script = f"""
import sys, importlib.abc
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {missing!r}:
            raise ModuleNotFoundError("no such module", name=name)
sys.meta_path.insert(0, Absent())
import pathlib
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == {missing!r} else found(name)
from recollect.testing import OrchestratorForTests
OrchestratorForTests(pathlib.Path("data"))
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ)
    )
    assert ended.returncode == 1
    assert advice in ended.stderr.splitlines()[-1], ended.stderr
