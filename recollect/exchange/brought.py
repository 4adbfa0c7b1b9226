"""The report of an import from another program: what was added, was there, or was refused."""

from __future__ import annotations

from collections import Counter

import msgspec

PROBLEMS_KEPT = 100


class Trouble(msgspec.Struct, frozen=True):
    """Something that was not brought: where it is in the file, and why."""

    where: str
    outcome: str
    """conflict if something else has its name, refused if it cannot be stored."""
    message: str


class Brought(msgspec.Struct):
    """What became of the items of a file, by kind."""

    source: str
    namespace: str
    dry_run: bool
    added: Counter[str] = msgspec.field(default_factory=Counter)
    present: Counter[str] = msgspec.field(default_factory=Counter)
    conflicts: int = 0
    refused: int = 0
    problems: list[Trouble] = msgspec.field(default_factory=list)
    """The first of them."""

    @property
    def items(self) -> int:
        """How many were seen to."""
        return self.added.total() + self.present.total() + self.conflicts + self.refused

    def trouble(self, where: str, message: str, *, conflict: bool = False) -> None:
        """Count something that was not brought."""
        if conflict:
            self.conflicts += 1
        else:
            self.refused += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(Trouble(where, "conflict" if conflict else "refused", message))
