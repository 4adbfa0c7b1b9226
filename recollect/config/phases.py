"""The phases of a workflow, as they are written in the settings: `design > testing, blocked`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

PHASES_MAX = 64
PHASES = (
    "backlog > requirements, blocked",
    "requirements > design, backlog, blocked",
    "design > implementation, requirements, blocked",
    "implementation > testing, design, blocked",
    "testing > deployment, implementation, blocked",
    "deployment > done, testing, implementation, blocked",
    "done > backlog",
    "blocked > backlog, requirements, design, implementation, testing, deployment",
)
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


class BadPhases(ValueError):
    """Lines that are no workflow; it says why and, as `advice`, what to write."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


def read_phases(lines: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """For each phase those that may follow it, in the order of the lines. Raises BadPhases."""
    if not 1 <= len(lines) <= PHASES_MAX:
        raise BadPhases(
            f"needs 1 to {PHASES_MAX} phases, not {len(lines)}",
            "write a line a phase, such as `design > implementation, blocked`",
        )
    following: dict[str, tuple[str, ...]] = {}
    for line in lines:
        phase, _, rest = line.partition(">")
        name = _named(phase)
        if name in following:
            raise BadPhases(f"has the phase `{name}` twice", "put what may follow it on one line")
        after = (
            tuple(dict.fromkeys(_named(part) for part in rest.split(","))) if rest.strip() else ()
        )
        following[name] = after
    for name, after in following.items():
        for next_name in after:
            if next_name == name:
                raise BadPhases(f"lets `{name}` follow itself", "leave it out of its own line")
            if next_name not in following:
                raise BadPhases(
                    f"leads from `{name}` to `{next_name}`, which has no line of its own",
                    f"add the line `{next_name} >`, with what may follow it",
                )
    return following


def _named(text: str) -> str:
    name = text.strip()
    if not _NAME.fullmatch(name):
        raise BadPhases(
            f"has `{name[:40]}` where the name of a phase should be",
            "write lower-case names, such as `design > implementation, blocked`",
        )
    return name
