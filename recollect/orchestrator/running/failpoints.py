"""Named places at which a test may have the process die, as if the power went.

`RECOLLECT_FAILPOINTS=before_commit:3` kills the process, with no clean-up of any kind, at the third
time it passes `before_commit`. Nothing is armed unless the variable was set at start.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "RECOLLECT_FAILPOINTS"
NAMES = frozenset(
    {
        "before_commit",
        "after_commit",
        "before_reply",
        "mid_migration",
        "while_sealing",
        "while_scrubbing",
        "consolidation_written",
        "consolidation_archived",
        "forgetting",
        "undoing",
        "migrating",
        "copying_rows",
        "copying_words",
    }
)

_countdown: dict[str, int] = {}


def arm(text: str) -> None:
    """Arm failpoints from `name:count` pairs separated by commas."""
    for part in filter(None, text.split(",")):
        name, _, count = part.partition(":")
        if name not in NAMES:
            raise ValueError(f"no failpoint {name!r}; there are {', '.join(sorted(NAMES))}")
        _countdown[name] = int(count or 1)


def arm_from_environment() -> None:
    """Arm what the variable asks for."""
    arm(os.environ.get(VARIABLE, ""))


def failpoint(name: str) -> None:
    """Die here if this place is armed and its count has run down."""
    if _countdown and name in _countdown:
        _countdown[name] -= 1
        if _countdown[name] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
