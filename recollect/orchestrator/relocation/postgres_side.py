"""A PostgreSQL database as an end of a copy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import psycopg
from psycopg import conninfo

from recollect.orchestrator.relocation.tables import DERIVED, Table
from recollect.orchestrator.search.lexical import TsvectorIndex
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.interface import Row
from recollect.orchestrator.storage.postgres.claims import claim_alone
from recollect.orchestrator.storage.postgres.errors import translate
from recollect.orchestrator.storage.postgres.schema import has_table, migrate_alone
from recollect.orchestrator.storage.postgres.session import PostgresWriterSession
from recollect.orchestrator.storage.postgres.values import adapt
from recollect.protocol.errors import AlreadyExists, InvalidArgument

# A column that the server computes is no part of what is stored.
COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, NULL),
    coalesce(array_position(CAST(i.indkey AS SMALLINT[]), a.attnum), -1)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    AND NOT a.attisdropped AND a.attgenerated = ''
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relnamespace = CAST(current_schema() AS regnamespace)
    AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname, a.attname
"""
FOREIGN = f"SELECT {has_table('schema_migrations')} AND NOT ({has_table('ledger')})"


def name_of(url: str) -> str:
    """What a store is called: its server, its database and the schema if one is named, and nothing
    of who comes in or how."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # Its words would quote the URL, with the password in it.
        raise InvalidArgument(
            "That is no address of PostgreSQL. Write postgresql://user@host:port/name.", field="to"
        ) from None
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    name = parts.get("dbname") or parts.get("user") or "postgres"
    schema = f"?options={parts['options']}" if parts.get("options") else ""
    return f"postgresql://{host}:{parts.get('port') or 5432}/{name}{schema}"


class PostgresSide:
    """Claimed, so that no orchestrator writes to it meanwhile."""

    def __init__(self, url: str) -> None:
        self.session = PostgresWriterSession(url, claim_alone)
        self.lexical = TsvectorIndex()

    def migrate(self, *, unfinished: bool) -> None:
        [(foreign,)] = self.session.execute(FOREIGN)
        if foreign:
            raise AlreadyExists(
                "The database holds the tables of another program. Make a new one with createdb."
            )
        migrate_alone(self.session, migrations.FOLDER / "postgres", unfinished=unfinished)
        # The migrations may have brought new types.
        adapt(self.session.connection)

    def tables(self) -> dict[str, Table]:
        found = {}
        self._vectors: dict[str, list[str]] = {}
        columns = self.session.execute(COLUMNS)
        for name, group in groupby(columns, key=lambda row: str(row[0])):
            if name not in DERIVED:
                listed = list(group)
                keyed = sorted((place, column) for _, column, _, place in listed if place >= 0)
                found[name] = Table(
                    name,
                    tuple(sorted(column for _, column, _, _ in listed)),
                    tuple(column for _, column in keyed),
                )
                self._vectors[name] = [column for _, column, kind, _ in listed if kind == "vector"]
        return found

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        vectors = {table.columns.index(name) for name in self._vectors.get(table.name, ())}
        sql = f"COPY {table.name} ({', '.join(table.columns)}) FROM STDIN"
        try:
            with self.session.connection.cursor() as cursor, cursor.copy(sql) as copy:
                for row in rows:
                    copy.write_row(_with_vectors(row, vectors) if vectors else row)
        except psycopg.Error as error:
            raise translate(error) or error from error

    def settle(self) -> None:
        self.session.execute("ANALYZE")

    def close(self) -> None:
        self.session.connection.close()


def _with_vectors(row: Row, places: set[int]) -> Row:
    """Packed floats as pgvector reads them."""
    return tuple(_listed(value) if at in places else value for at, value in enumerate(row))


def _listed(packed: bytes) -> str:
    return f"[{','.join(map(str, np.frombuffer(packed, dtype=np.float32).tolist()))}]"
