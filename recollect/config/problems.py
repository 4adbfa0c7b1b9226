"""What can be wrong with a configuration, and the one exception that reports all of it.

Exception
 └── ConfigError      carries every `Problem` found, in the order of their sources
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from msgspec import Struct


class Problem(Struct, frozen=True):
    """One thing that is wrong, where it stands and what may have been meant."""

    source: str  # `memory_config.yaml:12`, the name of a variable, or `command line`
    key: str  # dotted, such as `network.bind`; empty when the problem concerns no single key
    message: str
    suggestion: str = ""

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.source, self.key) if part)
        hint = f"; {self.suggestion}" if self.suggestion else ""
        return f"{where}: {self.message}{hint}"


class ConfigError(Exception):
    """The configuration was refused. `problems` lists everything that has to be put right."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        count = len(self.problems)
        heading = "one problem" if count == 1 else f"{count} problems"
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        return f"The configuration was refused because of {heading}:{lines}"

    def __reduce__(self) -> tuple[type[ConfigError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


def nearest(word: str, possibilities: Iterable[str]) -> str | None:
    """The possibility that is spelled most like `word`, or None when none is near."""
    near = difflib.get_close_matches(word, list(possibilities), n=1)
    return near[0] if near else None


def did_you_mean(possibility: str | None) -> str:
    """The suggestion that asks whether `possibility` was meant; nothing for None."""
    return f"did you mean `{possibility}`?" if possibility else ""
