"""Where a store is: a data folder with SQLite, or a database on a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import msgspec

from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.protocol.errors import InvalidArgument

POSTGRES_SCHEMES = ("postgresql", "postgres")
SQLITE_SCHEME = "sqlite"


class Place(msgspec.Struct, frozen=True):
    """One storage."""

    kind: Literal["sqlite", "postgresql"]
    address: str
    """The data folder, or the URL with whatever secret is in it."""
    name: str
    """What it is called where others may read it; the same place always has the same name."""


def place_of(text: str) -> Place:
    """A place as it is written: `postgresql://…`, `sqlite:///folder`, or a data folder."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _folder(text)
    if scheme == SQLITE_SCHEME and rest:
        return _folder(unquote(rest))
    if scheme in POSTGRES_SCHEMES:
        return _database(text)
    raise InvalidArgument(
        f"{scheme}:// is no storage. Give postgresql://user@host/name, sqlite:///folder, or a data "
        "folder.",
        field="to",
    )


def _folder(text: str) -> Place:
    folder = Path(text).absolute()
    if folder.name == DATABASE_NAME:
        folder = folder.parent
    return Place("sqlite", str(folder), str(folder.resolve()))


def _database(url: str) -> Place:
    from recollect.orchestrator.relocation.postgres_side import name_of  # needs its extra

    return Place("postgresql", url, name_of(url))
