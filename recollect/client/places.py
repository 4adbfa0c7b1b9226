"""Where an orchestrator is, for processes that follow it when it comes back elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Place(NamedTuple):
    """Where the orchestrator is, and the key file to come in with."""

    endpoint: str
    """One endpoint, or several with commas in between."""
    key_file: str | None


Find = Callable[[], Place]
"""Says where the orchestrator is right now; it looks into a file at most."""
