"""The examples in the help of commands: each is a call that its own command takes."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import typer

from recollect.cli.app import app

EXAMPLE = re.compile(r"For example: `recollect (?P<call>.+?)`", re.S)
WITH_EXAMPLE = (
    "put",
    "namespaces",
    "audit",
    "conflicts",
    "consolidate",
    "migrate",
    "forget-source",
    "runs",
    "undo",
    *("context", "replay", "goals", "decisions", "patterns", "events", "snapshot"),
    *(f"tasks {name}" for name in ("list", "show")),
    *(f"documents {name}" for name in ("index", "sync", "list", "search", "delete")),
    *(f"sessions {name}" for name in ("list", "show", "events", "end")),
)


def command_of(path: list[str]) -> Any:
    """A command, through the groups that lead to it."""
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.get_command(None, name)
        assert command is not None, path
    return command


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_an_example_is_a_call_of_its_command(name: str) -> None:
    path = name.split()
    command = command_of(path)
    found = EXAMPLE.search(command.help or "")
    assert found is not None, f"{name} has no example"
    words = shlex.split(found["call"])
    assert words[: len(path)] == path
    # Parsing alone: an option or argument that there is not fails here.
    command.make_context(name, words[len(path) :])
