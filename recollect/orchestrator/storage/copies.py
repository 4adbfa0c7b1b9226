"""Copies of a store: a folder with one plain file and a manifest, which is written last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from recollect.protocol.errors import ShuttingDown

DATABASE_NAME = "recollect.db"
ROWS_NAME = "recollect.rows"
"""The file of a copy of what lies on a server."""
MANIFEST_NAME = "manifest.json"
PARTIAL_MANIFEST_NAME = f"{MANIFEST_NAME}.partial"


class Manifest(msgspec.Struct, frozen=True):
    """What a backup says of itself."""

    seq: int
    schema: int
    bytes: int
    sha256: str
    storage: str = "sqlite"


def never() -> bool:
    """Whoever makes a copy by itself is not told to stop."""
    return False


def go_on_unless(stopped: Callable[[], bool]) -> None:
    """Make no more of a copy whose orchestrator stops; whoever is at it removes what there is."""
    if stopped():
        raise ShuttingDown("The orchestrator is shutting down; no copy was made.")


def remove_copy(folder: Path) -> None:
    """Remove a folder that was just made here."""
    shutil.rmtree(folder, ignore_errors=True)


def write_manifest(folder: Path, manifest: Manifest) -> dict[str, Any]:
    """Finish a copy whose file is on disk: a folder without a manifest is one that is not."""
    told = {"path": str(folder), **msgspec.structs.asdict(manifest)}
    partial = folder / PARTIAL_MANIFEST_NAME
    with partial.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(told)))
        file.flush()
        os.fsync(file.fileno())
    partial.rename(folder / MANIFEST_NAME)
    for directory in (folder, folder.parent):
        _sync_directory(directory)
    return told


def _sync_directory(directory: Path) -> None:
    """Make the names in a folder durable, not only the files behind them."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a copy. Raises OSError and msgspec's errors."""
    return msgspec.json.decode((folder / MANIFEST_NAME).read_bytes(), type=Manifest)
