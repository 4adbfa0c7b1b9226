"""The examples in the help of commands: each is a call that its own command takes."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from recollect.cli.app import command as top_command

EXAMPLE = re.compile(r"For example: `recollect (?P<call>.+?)`", re.S)


def every_command() -> dict[str, Any]:
    """Each command that can be called, also those of groups, by its whole name."""
    found: dict[str, Any] = {}
    for name, late in top_command().commands.items():
        real = late.real
        for below, command in getattr(real, "commands", {"": real}).items():
            found[f"{name} {below}".strip()] = command
    return found


COMMANDS = every_command()


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_is_a_call_of_its_command(name: str) -> None:
    path = name.split()
    command = COMMANDS[name]
    found = EXAMPLE.search(command.help or "")
    assert found is not None, f"{name} has no example"
    words = shlex.split(found["call"])
    assert words[: len(path)] == path
    # Parsing alone: an option or argument that there is not fails here.
    command.make_context(name, words[len(path) :])
