"""What each error code means, why it happens and what to do: the one place that says so.

`recollect explain` shows it, and docs/errors.md is generated from it. The classes of the errors,
with whether a retry helps, are in `recollect.protocol.errors`.
"""

from __future__ import annotations

import difflib

from recollect.protocol.explanations.commands import COMMANDS
from recollect.protocol.explanations.explanation import Explanation
from recollect.protocol.explanations.families import FAMILIES
from recollect.protocol.explanations.requests import REQUESTS
from recollect.protocol.explanations.service import SERVICE
from recollect.protocol.explanations.starting import STARTING

CHAPTERS: dict[str, tuple[Explanation, ...]] = {
    "The request": REQUESTS,
    "The service, and the way to it": SERVICE,
    "Starting": STARTING,
    "The command line": COMMANDS,
    "Families": FAMILIES,
}
BY_CODE = {one.code: one for chapter in CHAPTERS.values() for one in chapter}
NEAR = 0.5
NEAREST_MAX = 3


def nearest(code: str) -> list[str]:
    """The codes that somebody may have meant who wrote this one."""
    begun = [known for known in BY_CODE if known.startswith(code)] if code else []
    alike = difflib.get_close_matches(code, BY_CODE, NEAREST_MAX, NEAR)
    return list(dict.fromkeys([*begun, *alike]))[:NEAREST_MAX]
