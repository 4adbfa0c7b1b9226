"""Numbered SQL files, each applied once, all of them in one transaction at start.

A database is at the old schema or at the new one, never between. A database that is newer than
this program is refused, because an older program cannot know what it would break. So is one that
is the copy of another and not complete yet: half of a store would be served as if it were all.
"""

from __future__ import annotations

from pathlib import Path

from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.storage.interface import Session

FOLDER = Path(__file__).with_name("migrations")

CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL
)
"""
UNFINISHED = 0
"""In place of a migration's number: what this database is to become a copy of."""


class SchemaError(Exception):
    """The database's schema is not one that this program can work with."""


def available(folder: Path) -> list[tuple[int, str, str]]:
    """Number, name and SQL of each migration, in order."""
    found = []
    for path in sorted(folder.glob("*.sql")):
        number, _, name = path.stem.partition("_")
        found.append((int(number), name, path.read_text()))
    numbers = [number for number, _, _ in found]
    assert numbers == list(range(1, len(numbers) + 1)), (
        f"migrations are not numbered 1…n: {numbers}"
    )
    return found


def statements(sql: str) -> list[str]:
    """The single statements of a migration: separated by a semicolon at a line's end."""
    lines = [line for line in sql.splitlines() if not line.lstrip().startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";\n") if part.strip(" \n;")]


def migrate(
    session: Session, folder: Path, upto: int | None = None, *, unfinished: bool = False
) -> tuple[int, int]:
    """Bring the schema up to date, or to an older number, inside the caller's transaction; numbers
    before and after.

    Only who is about to complete it takes a copy that is `unfinished`.
    """
    session.execute(CREATE_TABLE)
    found = session.execute("SELECT number, name FROM schema_migrations")
    applied = {int(number): str(name) for number, name in found}
    source = applied.pop(UNFINISHED, None)
    if source is not None and not unfinished:
        raise SchemaError(
            f"The database is an unfinished copy of {source}. Give the same `recollect "
            "migrate-storage` again to complete it, or use another database."
        )
    migrations = available(folder)
    newest, present = len(migrations), max(applied, default=0)
    wanted = newest if upto is None else upto
    if present > newest:
        raise SchemaError(
            f"The database has schema {present}, but this version of Recollect knows only up to "
            f"{newest}. Install the version that wrote it, or a newer one."
        )
    for number, name, sql in migrations:
        if number not in applied and number <= wanted:
            for statement in statements(sql):
                session.execute(statement)
                failpoint("mid_migration")
            session.execute(
                "INSERT INTO schema_migrations (number, name) VALUES (?, ?)", (number, name)
            )
    return present, wanted
