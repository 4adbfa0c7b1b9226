"""Copies of a PostgreSQL database: all rows as they are at one moment, in one file and a manifest.

The file holds each table with the names of its columns, then its rows as the server gives and takes
them (`COPY` in binary). It is read back into a database that holds no store, in one transaction: it
is there as a whole, or not at all.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, LiteralString

import msgspec
import psycopg
from psycopg import sql

from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.copies import (
    ROWS_NAME,
    Manifest,
    go_on_unless,
    never,
    remove_copy,
    write_manifest,
)
from recollect.orchestrator.storage.postgres.schema import has_table, prepare_alone
from recollect.orchestrator.storage.postgres.session import PostgresWriterSession, connect
from recollect.orchestrator.storage.properties import REMOVE, STORE_ID

RESTORING = (
    "Stop the orchestrators and restore a backup into an empty database: recollect restore BACKUP "
    "--storage postgresql://…"
)
MAGIC = b"recollect rows of postgresql 1\n"
CHUNK_BYTES_MAX = 64 * 1024 * 1024
_length = struct.Struct(">I")

ONE_MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
TABLES = """
SELECT table_name, array_agg(CAST(column_name AS TEXT) ORDER BY ordinal_position)
FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'
    AND table_name <> 'schema_migrations'
GROUP BY table_name ORDER BY table_name
"""
SCHEMA = "SELECT max(number) FROM schema_migrations"
SEQ = "SELECT seq FROM ledger WHERE id = 1"
HOLDS_STORE = f"SELECT {has_table('ledger')} OR {has_table('memories')}"


class Damaged(Exception):
    """A copy is not what it was when it was made."""


class NotEmpty(Exception):
    """A database that is to take a copy holds a store already."""


class Table(msgspec.Struct, frozen=True):
    """What stands before the rows of a table."""

    table: str
    columns: list[str]


def back_up(url: str, folder: Path, stopped: Callable[[], bool] = never) -> dict[str, Any]:
    """Copy a database, also while it is written, into a new folder with a manifest, unless
    somebody says meanwhile that it is to be stopped."""
    folder.mkdir(parents=True, exist_ok=False)
    try:
        with connect(url) as connection, (folder / ROWS_NAME).open("xb") as file:
            seq, schema, digest = _write(connection, file, stopped)
            file.flush()
            os.fsync(file.fileno())
            manifest = Manifest(seq, schema, file.tell(), digest, storage="postgresql")
        return write_manifest(folder, manifest)
    except BaseException:
        remove_copy(folder)
        raise


def _write(
    connection: psycopg.Connection[Any], file: BinaryIO, stopped: Callable[[], bool]
) -> tuple[int, int, str]:
    """Write all tables; the last change, the schema and the hash of the file."""
    digest = hashlib.sha256()

    def put(content: bytes) -> None:
        digest.update(content)
        file.write(content)

    connection.execute(ONE_MOMENT)
    tables = [Table(*row) for row in connection.execute(TABLES).fetchall()]
    # Held until the end, so that none of them is exchanged for another meanwhile.
    names = sql.SQL(", ").join(sql.Identifier(table.table) for table in tables)
    connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(names))
    [(schema,)] = connection.execute(SCHEMA).fetchall()
    [(seq,)] = connection.execute(SEQ).fetchall()
    put(MAGIC)
    for table in tables:
        put(_framed(msgspec.json.encode(table)))
        with connection.cursor() as cursor, cursor.copy(_copying(table, "TO STDOUT")) as rows:
            for chunk in rows:
                go_on_unless(stopped)
                # The server gives a row at a time, however large it is.
                for start in range(0, len(chunk), CHUNK_BYTES_MAX):
                    put(_framed(bytes(chunk[start : start + CHUNK_BYTES_MAX])))
        put(_framed(b""))
    put(_framed(b""))
    connection.execute("COMMIT")
    return int(seq), int(schema), digest.hexdigest()


def _framed(content: bytes) -> bytes:
    return _length.pack(len(content)) + content


def _copying(table: Table, way: LiteralString) -> sql.Composed:
    columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
    return sql.SQL("COPY {} ({}) {} (FORMAT binary)").format(
        sql.Identifier(table.table), columns, sql.SQL(way)
    )


def problems_of(folder: Path, manifest: Manifest) -> list[str]:
    """What is wrong with a copy that was made; nothing if it is as it was."""
    with (folder / ROWS_NAME).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [] if digest == manifest.sha256 else ["its rows are not those that were written"]


def restore(folder: Path, manifest: Manifest, url: str, copied: Callable[[int], object]) -> None:
    """Make the store of a copy in a database that has none. Raises Damaged, NotEmpty, SchemaError
    and what psycopg does; then nothing was written."""
    session = PostgresWriterSession(url)
    try:
        session.begin()
        prepare_alone(session)
        if session.execute(HOLDS_STORE)[0][0]:
            raise NotEmpty
        migrations.migrate(session, migrations.FOLDER / "postgres", manifest.schema)
        with (folder / ROWS_NAME).open("rb") as file:
            _read(session, _Checked(file, copied), manifest)
        # It may be served beside its original, and what they share by their name is not one.
        session.execute(REMOVE, (STORE_ID,))
        session.commit()
        session.execute("ANALYZE")
    finally:
        session.recover()
        session.connection.close()


class _Checked:
    """The frames of a file, hashed as they are read."""

    def __init__(self, file: BinaryIO, copied: Callable[[int], object]) -> None:
        self._file = file
        self._copied = copied
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        content = self._file.read(size)
        if len(content) != size:
            raise Damaged("its rows end too early")
        self._digest.update(content)
        self._copied(size)
        return content

    def frame(self) -> bytes:
        [size] = _length.unpack(self.read(_length.size))
        if size > CHUNK_BYTES_MAX:
            raise Damaged("its rows are none")
        return self.read(size)

    def frames(self) -> Iterator[bytes]:
        """Up to the next empty one."""
        while content := self.frame():
            yield content

    def end(self) -> str:
        """The hash, if nothing is left."""
        if self._file.read(1):
            raise Damaged("its rows go on behind their end")
        return self._digest.hexdigest()


def _read(session: PostgresWriterSession, file: _Checked, manifest: Manifest) -> None:
    connection = session.connection
    known = {Table(*row).table: set(row[1]) for row in session.execute(TABLES)}
    try:
        if file.read(len(MAGIC)) != MAGIC:
            raise Damaged("it does not begin as a copy does")
        for heading in file.frames():
            table = msgspec.json.decode(heading, type=Table)
            if not set(table.columns) <= known.get(table.table, set()):
                raise Damaged(f"it has a table {table.table!r} that its schema has not")
            # The migrations leave a first row in some.
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.table)))
            with connection.cursor() as cursor, cursor.copy(_copying(table, "FROM STDIN")) as rows:
                for chunk in file.frames():
                    rows.write(chunk)
    except (msgspec.MsgspecError, psycopg.DataError, psycopg.IntegrityError) as error:
        raise Damaged("its rows cannot be read") from error
    if file.end() != manifest.sha256:
        raise Damaged("it was changed after it was made")
    [(seq,)] = session.execute(SEQ)
    if seq != manifest.seq:
        raise Damaged("its manifest is of another moment")
