"""The command line as a whole: what it brings in, and what it says where packages are missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recollect.cli.failures import Failure, explained
from recollect.protocol.errors import Unreachable


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def test_help_comes_without_the_server_and_its_heavy_packages() -> None:
    ended = run(
        "import sys; sys.argv = ['recollect', '--help']\n"
        "from recollect.cli.app import run\n"
        "assert run() == 0\n"
        "heavy = {'apsw', 'faiss', 'numpy', 'yaml', 'structlog', 'redis', 'rich.progress',\n"
        "         'onnxruntime', 'tokenizers', 'httpx'}\n"
        "found = heavy & set(sys.modules)\n"
        "ours = ('recollect.orchestrator', 'recollect.models')\n"
        "found |= {m for m in sys.modules if m.startswith(ours)}\n"
        "print('brought in:', sorted(found))"
    )
    assert "brought in: []" in ended.stdout, ended


def test_a_group_that_comes_late_has_its_commands() -> None:
    ended = run(
        "import sys; sys.argv = ['recollect', 'models', '--help']\n"
        "from recollect.cli.app import run\n"
        "assert run() == 0"
    )
    assert ended.returncode == 0, ended
    for command in ("install", "list", "path"):
        assert command in ended.stdout


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_it_says_what_to_install(missing: str) -> None:
    ended = run(
        f"import sys; sys.modules['{missing}'] = None\nfrom recollect.cli import main\nmain()"
    )
    assert ended.returncode == 2
    assert "recollect[server]" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_error_of_a_call_keeps_its_code_and_details() -> None:
    failure = explained(Unreachable("Nobody is there.", endpoint="tcp://x:1"))
    assert failure is not None
    assert failure.reply() == Unreachable("Nobody is there.", endpoint="tcp://x:1").reply()


def test_a_defect_keeps_its_traceback() -> None:
    assert explained(ZeroDivisionError()) is None
    failure = Failure("some_code", "It failed.")
    assert explained(failure) is failure
