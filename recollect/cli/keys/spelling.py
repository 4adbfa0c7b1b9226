"""What is given to `recollect keys` in its one spelling; refused before anything is made."""

from __future__ import annotations

from typing import Literal, cast

import msgspec

from recollect.cli.failures import USAGE, Failure
from recollect.orchestrator.access.grants import PATTERN_RULE, is_pattern, normalised
from recollect.protocol.operations.access import Name as IdentityName

Access = Literal["read", "write", "admin"]
ACCESSES = ("read", "write", "admin")


def check_name(name: str) -> None:
    """Refuse what is no name before a file is called by it."""
    try:
        msgspec.convert(name, IdentityName)
    except msgspec.ValidationError:
        raise misspelt(
            f"{name!r} is no name: it has letters, digits and _ . @ -, and begins with one of the "
            "first two.",
            "alice",
        ) from None


def grant_from(text: str) -> tuple[str, Access]:
    """The pattern and the access in a text such as user:alice=write."""
    pattern, equals, access = text.rpartition("=")
    if not equals:
        raise misspelt(f"--grant {text!r} has no =.", "--grant user:alice=write")
    return checked_grant(pattern, access)


def checked_grant(pattern: str, access: str) -> tuple[str, Access]:
    """A pattern in its one spelling, and an access."""
    if access not in ACCESSES:
        raise misspelt(f"{access!r} is no access: it is read, write or admin.", "user:alice write")
    if not is_pattern(normalised(pattern)):
        raise misspelt(f"{pattern!r} is not a pattern: {PATTERN_RULE}.", "user:alice")
    return normalised(pattern), cast(Access, access)


def misspelt(message: str, example: str) -> Failure:
    """Why a command is not begun, and how it would be."""
    return Failure("invalid_argument", message, f"Write it as {example}.", exit_code=USAGE)
