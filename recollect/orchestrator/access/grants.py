"""What an identity may do: a list of namespace patterns, each with a level of access.

A pattern is `*`, a prefix such as `user`, or a namespace; it covers all that is below it. Levels
include those beneath them: who may write may read.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import msgspec

from recollect.protocol.operation import Access

EVERYWHERE = "*"
PREFIXES = ("temp", "session", "user", "app", "project")
LEVELS: dict[Access, int] = {"open": 0, "read": 1, "write": 2, "admin": 3}
PATTERN_RULE = (
    "a pattern is * for everything, or one of temp, session, user, app and project, or a namespace "
    "such as user:alice; it covers all that is below it, and a * in its middle means nothing"
)
_PATTERN = re.compile(rf"({'|'.join(PREFIXES)})(:[^:*\s\x00]+)*")

Condition = tuple[str, list[Any]]


class Grant(msgspec.Struct, frozen=True):
    """One pattern and the level that it gives."""

    pattern: str
    access: Access


class Grants(msgspec.Struct, frozen=True, dict=True):
    """All grants of one identity."""

    grants: tuple[Grant, ...] = ()

    @cached_property
    def _patterns(self) -> dict[Access, tuple[str, ...]]:
        return {
            level: tuple(g.pattern for g in self.grants if LEVELS[g.access] >= LEVELS[level])
            for level in LEVELS
        }

    def everywhere(self, level: Access) -> bool:
        """Whether the level is given to everything."""
        return level == "open" or EVERYWHERE in self._patterns[level]

    def allows(self, namespace: str | None, level: Access) -> bool:
        """Whether the level is given in a namespace; None is what belongs to no namespace."""
        patterns = self._patterns[level]
        if level == "open" or EVERYWHERE in patterns:
            return True
        return namespace is not None and any(covers(pattern, namespace) for pattern in patterns)

    def within(self, namespace: str | None, level: Access = "read") -> tuple[str, ...] | None:
        """The part of a namespace and what is below it to which a level is given: None for all of
        it, otherwise the patterns that make it up."""
        patterns = self._patterns[level]
        if EVERYWHERE in patterns:
            return None
        if namespace is None:
            return patterns
        if any(covers(pattern, namespace) for pattern in patterns):
            return None
        return tuple(pattern for pattern in patterns if covers(namespace, pattern))


EVERYTHING = Grants((Grant(EVERYWHERE, "admin"),))
"""For who owns the machine: anything, anywhere."""
NOTHING = Grants()


def covers(pattern: str, namespace: str) -> bool:
    """Whether a pattern other than `*` covers a namespace."""
    return namespace == pattern or namespace.startswith(f"{pattern}:")


def normalised(pattern: str) -> str:
    """The one spelling of a pattern: `user:*` means `user`.

    A colon at the end is left alone, and then is no pattern: it is what remains of `user:$NAME` if
    the name was empty, and must not mean everybody.
    """
    return pattern.strip().removesuffix(":*")


def is_pattern(pattern: str) -> bool:
    """Whether a text, in that spelling, is a pattern."""
    return pattern == EVERYWHERE or _PATTERN.fullmatch(pattern) is not None
