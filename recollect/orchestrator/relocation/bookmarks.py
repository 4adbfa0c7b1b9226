"""How far a copy has come, kept in the copy itself, in the transactions that bring it there.

While there are bookmarks, the database is marked as unfinished, and no orchestrator opens it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from recollect.orchestrator.relocation.places import Place
from recollect.orchestrator.relocation.side import Side
from recollect.orchestrator.relocation.tables import PROPERTIES, Key, Table
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.storage.migrations import UNFINISHED
from recollect.orchestrator.storage.properties import GET, REMOVE, SET
from recollect.protocol.errors import AlreadyExists

PREFIX = "copied:"
SOURCE = "SELECT name FROM schema_migrations WHERE number = ?"
MARK = "INSERT INTO schema_migrations (number, name) VALUES (?, ?)"
UNMARK = "DELETE FROM schema_migrations WHERE number = ?"
CLEAR = "DELETE FROM properties"


class Bookmark(msgspec.Struct, frozen=True):
    """How far one table is."""

    after: Key = ()
    rows: int = 0
    complete: bool = False


def claim(target: Side, source: Place, target_place: Place) -> bool:
    """Take a database as the copy of a source; whether the copying was begun before.

    One that holds anything else is refused.
    """
    session = target.session
    session.begin()
    try:
        begun = session.execute(SOURCE, (UNFINISHED,))
        if begun:
            if begun[0][0] != source.name:
                raise AlreadyExists(
                    f"{target_place.name} is an unfinished copy of {begun[0][0]}, not of "
                    f"{source.name}. Complete that one, or give a new database."
                )
            return True
        held = _held(session, target.tables().values())
        if held is not None:
            raise AlreadyExists(
                f"{target_place.name} holds something already ({held}); it was left as it is. "
                "Give a new database or an empty folder."
            )
        session.execute(CLEAR)
        session.execute(MARK, (UNFINISHED, source.name))
        session.commit()
        return False
    finally:
        session.recover()


def _held(session: Session, tables: Iterable[Table]) -> str | None:
    """A table that is not as the migrations made it."""
    for table in tables:
        if table.name == "ledger":
            if session.execute("SELECT 1 FROM ledger WHERE seq > 0"):
                return "changes in the journal"
        elif table.name != PROPERTIES and session.execute(f"SELECT 1 FROM {table.name} LIMIT 1"):
            return f"rows in {table.name}"
    return None


def bookmark(session: Session, name: str) -> Bookmark | None:
    found = session.execute(GET, (PREFIX + name,))
    return msgspec.json.decode(found[0][0], type=Bookmark) if found else None


def put_bookmark(session: Session, name: str, mark: Bookmark) -> None:
    session.execute(SET, (PREFIX + name, msgspec.json.encode(mark).decode()))


def drop_bookmark(session: Session, name: str) -> None:
    session.execute(REMOVE, (PREFIX + name,))


def unmark(session: Session) -> None:
    """Make it a store, with no bookmark left."""
    session.execute(CLEAR)
    session.execute(UNMARK, (UNFINISHED,))
