"""What can be said of an error code beyond its message."""

from __future__ import annotations

from typing import NamedTuple


class Explanation(NamedTuple):
    """One code: what it means, why it happens, what to do, and how it looks."""

    code: str
    meaning: str
    causes: tuple[str, ...]
    steps: tuple[str, ...]
    """What to do, the likeliest first."""
    example: str
    """A call and what became of it, as somebody at a terminal or in a program sees it."""
