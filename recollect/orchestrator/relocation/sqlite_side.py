"""A data folder as an end of a copy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recollect.orchestrator.relocation.tables import DERIVED, Table
from recollect.orchestrator.running.data_folder import DataFolder, keep_to_owner
from recollect.orchestrator.search.lexical import Fts5Index
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.inserting import Insert, insert_sql
from recollect.orchestrator.storage.interface import Row
from recollect.orchestrator.storage.sqlite.schema import rewrite_once
from recollect.orchestrator.storage.sqlite.session import SqliteSession
from recollect.protocol.errors import NotFound

PAGE_CACHE_MB = 64
# What FTS5 keeps is in tables that begin with the name of its own.
TABLES = r"""
SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
    AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'memories\_fts%' ESCAPE '\'
"""
COLUMNS = "SELECT name, pk FROM pragma_table_info(?)"


class SqliteSide:
    """Held as an orchestrator would hold it."""

    def __init__(self, folder: Path, *, source: bool) -> None:
        database = folder / DATABASE_NAME
        if source and not database.exists():
            raise NotFound(f"There is no database in {folder}. Name its data folder with --data.")
        keep_to_owner()
        self._folder = DataFolder(folder)
        try:
            self.session = SqliteSession(database, page_cache_mb=PAGE_CACHE_MB, readonly=False)
        except BaseException:
            self._folder.release()
            raise
        self.lexical = Fts5Index()

    def migrate(self, *, unfinished: bool) -> None:
        self.session.begin()
        try:
            migrations.migrate(self.session, migrations.FOLDER / "sqlite", unfinished=unfinished)
            self.session.commit()
        finally:
            self.session.recover()
        rewrite_once(self.session)

    def tables(self) -> dict[str, Table]:
        found = {}
        for (name,) in self.session.execute(TABLES):
            if name not in DERIVED:
                columns = self.session.execute(COLUMNS, (name,))
                keyed = sorted((place, column) for column, place in columns if place)
                found[name] = Table(
                    name,
                    tuple(sorted(column for column, _ in columns)),
                    tuple(column for _, column in keyed),
                )
        return found

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        self.session.executemany(insert_sql(Insert(table.name, table.columns), 1), rows)

    def settle(self) -> None:
        self.session.execute("PRAGMA optimize = 0x10002")

    def close(self) -> None:
        self.session.connection.close()
        self._folder.release()
