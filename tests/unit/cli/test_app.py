"""The command line as a whole: what it brings in, and what it says where packages are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.cli.app import command
from recollect.cli.command_table import BY_NAME, EXIT_CODES
from recollect.cli.failures import Failure, explained
from recollect.cli.top_help import top_help
from recollect.protocol.errors import Unreachable


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def test_help_comes_without_the_server_and_its_heavy_packages() -> None:
    ended = run(
        "import sys; sys.argv = ['recollect', '--help']\n"
        "from recollect.cli.app import run\n"
        "assert run() == 0\n"
        "heavy = {'apsw', 'faiss', 'numpy', 'yaml', 'structlog', 'redis', 'rich', 'zmq',\n"
        "         'msgspec', 'onnxruntime', 'tokenizers', 'httpx', 'asyncio'}\n"
        "found = heavy & set(sys.modules)\n"
        "ours = ('recollect.orchestrator', 'recollect.models', 'recollect.client',\n"
        "        'recollect.protocol')\n"
        "found |= {m for m in sys.modules if m.startswith(ours)}\n"
        "print('brought in:', sorted(found))"
    )
    assert "brought in: []" in ended.stdout, ended


def test_the_line_that_the_whole_help_has_of_a_command_is_the_first_of_its_own() -> None:
    assert BY_NAME.keys() == command().commands.keys()
    for name, entry in BY_NAME.items():
        first, *_ = (command().commands[name].real.help or "").split("\n\n")
        assert " ".join(first.split()) == entry.summary, name


def test_the_help_of_the_whole_names_every_command_and_every_exit_code() -> None:
    shown = top_help(coloured=False, width=80)
    assert max(map(len, shown.splitlines())) <= 80
    for name in BY_NAME:
        assert f"\n  {name} " in shown
    for code in EXIT_CODES:
        assert f"\n  {code} " in shown
    assert "\x1b" not in shown and "\x1b" in top_help(coloured=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "recollect", "--show-completion", shell],
        capture_output=True,
        text=True,
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert ended.returncode == 0 and "_RECOLLECT_COMPLETE" in ended.stdout, ended


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("recollect con", "consolidate"),
        ("recollect sessions e", "events"),
        ("recollect add --imp", "--importance"),
    ],
)
def test_commands_options_and_groups_complete(typed: str, offered: str) -> None:
    words = typed.split()
    ended = subprocess.run(
        [sys.executable, "-c", "from recollect.cli import main; main()"],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "_RECOLLECT_COMPLETE": "complete_bash",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(words) - 1),
        },
    )
    assert offered in ended.stdout.split(), ended


def test_a_group_that_comes_late_has_its_commands() -> None:
    ended = run(
        "import sys; sys.argv = ['recollect', 'models', '--help']\n"
        "from recollect.cli.app import run\n"
        "assert run() == 0"
    )
    assert ended.returncode == 0, ended
    for name in ("install", "list", "path"):
        assert name in ended.stdout
    assert "<bool>" not in ended.stdout


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        ("typer", "--help", "server"),
        ("rich", "list", "server"),
        ("faiss", "orchestrator --data {folder}", "server"),
        ("apscheduler", "scheduler --data {folder}", "server"),
        ("uvicorn", "gateway --data {folder}", "server"),
        ("psycopg", "orchestrator --data {folder}", "postgres"),
        ("mcp", "mcp --data {folder}", "gateway"),
    ],
)
def test_without_an_extra_it_says_what_to_install(
    tmp_path: Path, missing: str, arguments: str, extra: str
) -> None:
    ended = run(
        f"import os, sys; sys.modules['{missing}'] = None\n"
        "os.environ['RECOLLECT_STORAGE_URL'] = 'postgresql://127.0.0.1:1/none'"
        f" if '{missing}' == 'psycopg' else 'sqlite'\n"
        f"sys.argv = ['recollect', *'{arguments.format(folder=tmp_path)}'.split()]\n"
        "from recollect.cli import main\nmain()"
    )
    assert ended.returncode == 2, ended
    assert f"recollect[{extra}]" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_error_of_a_call_keeps_its_code_and_details() -> None:
    failure = explained(Unreachable("Nobody is there.", endpoint="tcp://x:1"))
    assert failure is not None
    assert failure.reply() == Unreachable("Nobody is there.", endpoint="tcp://x:1").reply()


def test_a_defect_keeps_its_traceback() -> None:
    assert explained(ZeroDivisionError()) is None
    failure = Failure("some_code", "It failed.")
    assert explained(failure) is failure
