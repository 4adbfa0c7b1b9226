"""A file in which deleted rows were not overwritten is rewritten once, and then never again."""

from __future__ import annotations

from pathlib import Path

from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.sqlite.schema import LEFTOVERS, apply_migrations, rewrite_once
from recollect.orchestrator.storage.sqlite.session import SqliteSession

PROPERTIES = "SELECT name FROM properties"
KEEP = "INSERT INTO authors (namespace, author) VALUES (?, ?)"
NAME = "zanzibar"


def released(path: Path, tmp_path: Path) -> None:
    """A store of the schema before, with rows that are gone but not overwritten."""
    folder = tmp_path / "released"
    folder.mkdir()
    for number in ("0001", "0002"):
        [file] = (migrations.FOLDER / "sqlite").glob(f"{number}_*.sql")
        (folder / file.name).write_text(file.read_text())
    session = SqliteSession(path, page_cache_mb=1, readonly=False)
    session.connection.pragma("secure_delete", False)
    apply_migrations(session, folder)
    session.execute("UPDATE ledger SET seq = 9")
    # The rest of a text on the last of its pages, over which a shorter one is written.
    session.execute(KEEP, ("app:a", NAME * 1_500))
    session.execute("DELETE FROM authors")
    session.execute(KEEP, ("app:a", "x" * 9_000))
    session.connection.close()


def test_what_was_deleted_before_the_upgrade_is_gone_after_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    released(path, tmp_path)
    assert NAME.encode() in path.read_bytes()
    session = SqliteSession(path, page_cache_mb=1, readonly=False)
    apply_migrations(session, migrations.FOLDER / "sqlite")
    assert (LEFTOVERS,) in session.execute(PROPERTIES)
    assert rewrite_once(session)
    assert (LEFTOVERS,) not in session.execute(PROPERTIES)
    assert session.execute("SELECT length(author) FROM authors") == [(9_000,)]
    assert session.execute("PRAGMA integrity_check") == [("ok",)]
    session.connection.close()
    assert NAME.encode() not in path.read_bytes()


def test_a_new_store_is_not_rewritten(tmp_path: Path) -> None:
    session = SqliteSession(tmp_path / "a.db", page_cache_mb=1, readonly=False)
    apply_migrations(session, migrations.FOLDER / "sqlite")
    assert (LEFTOVERS,) not in session.execute(PROPERTIES)
    before = session.execute("PRAGMA schema_version")
    assert rewrite_once(session)
    assert session.execute("PRAGMA schema_version") == before
    session.connection.close()
