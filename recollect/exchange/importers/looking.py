"""A look at the beginning of a file, to tell what it is."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from recollect.exchange.json_items import items_in
from recollect.exchange.problems import BadFile

HEAD_BYTES = 65_536
CONVERSATIONS = "conversations.json"


def head_of(path: Path) -> bytes:
    """The first bytes of a file; nothing of a folder."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def conversations_at(path: Path) -> Path | None:
    """Where conversations would be: the file itself, the one in a folder, or a zip that has one."""
    if path.is_dir():
        inside = path / CONVERSATIONS
        return inside if inside.is_file() else None
    if path.suffix == ".zip" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            has = any(n.rsplit("/", 1)[-1] == CONVERSATIONS for n in archive.namelist())
        return path if has else None
    return path if path.suffix == ".json" and path.is_file() else None


def first_conversation(path: Path) -> dict[str, Any]:
    """The first item of a list of conversations; an empty one if there is none."""
    place = conversations_at(path)
    if place is None:
        return {}
    try:
        for _, item in items_in(str(place), CONVERSATIONS, ""):
            return item if isinstance(item, dict) else {}
    except BadFile:
        pass
    return {}
