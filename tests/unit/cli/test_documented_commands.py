"""What the pages say of commands in passing exists: the command, and each option it is given."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from recollect.cli.app import command
from tests.harness.pages import PAGES

NAMED = re.compile(r"(?<!`)`(?:\S+/)?recollect ([a-z][^`]*)`(?!`)")
EVERYWHERE = {"--help", "-h"}


def named_in(name: str) -> list[str]:
    """The commands that a page names within its sentences."""
    text = re.sub(r"^```.*?^```", "", PAGES[name].path.read_text(), flags=re.S | re.M)
    return NAMED.findall(text)


def wrong_with(words: list[str]) -> str | None:
    """What of a command is not there."""
    here: Any = command()
    context = here.make_context("recollect", [], resilient_parsing=True)
    options = set(EVERYWHERE)
    for word in words:
        if word.startswith("-"):
            if word.partition("=")[0] not in options:
                return f"no option {word}"
        elif hasattr(here, "get_command"):
            here = here.get_command(context, word)
            if here is None:
                return f"no command {word}"
            # Commands are brought in when they are called.
            here = getattr(here, "real", here)
            options |= {name for param in here.params for name in param.opts}
    return None


# The changelog tells what was, and shortens it.
@pytest.mark.parametrize("name", [n for n in PAGES if named_in(n) and n != "CHANGELOG.md"])
def test_every_command_in_a_sentence_is_one(name: str) -> None:
    wrong = []
    for said in named_in(name):
        problem = wrong_with(shlex.split(said.replace("…", "")))
        wrong += [f"recollect {said}: {problem}"] if problem else []
    assert wrong == []


def test_a_command_or_an_option_that_is_not_there_is_noticed() -> None:
    assert wrong_with(["recal", "x"]) == "no command recal"
    assert wrong_with(["jobs", "stroll"]) == "no command stroll"
    assert wrong_with(["add", "text", "--taggg", "x"]) == "no option --taggg"
    assert wrong_with(["keys", "new", "bob", "--bearer"]) is None
