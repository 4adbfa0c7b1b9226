"""Readers of what other programs have written, one a file; each yields facts, links and turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from recollect.exchange.importers import chatgpt, claude, langgraph, mcp_memory, mem0
from recollect.exchange.items import Items
from recollect.exchange.problems import BadFile

READERS: dict[str, ModuleType] = {
    "mem0": mem0,
    "langgraph": langgraph,
    "mcp-memory": mcp_memory,
    "chatgpt": chatgpt,
    "claude": claude,
}


def reader_of(name: str) -> Callable[[str], Items]:
    """The reader of a program's files."""
    read: Callable[[str], Items] = READERS[name].read
    return read


def found_in(path: str) -> str:
    """Which program wrote a file or folder, told from what is in it."""
    place = Path(path)
    if not place.exists():
        raise BadFile(
            path,
            "there is no such file or folder.",
            "Name what `recollect export` or another program wrote, or - for what is piped in.",
        )
    for name, reader in READERS.items():
        if reader.wrote(place):
            return name
    raise BadFile(
        path,
        "it is neither an export of Recollect nor of a program that is known.",
        f"If it is from one of {', '.join(READERS)}, say so with --from.",
    )
