"""The indexes of vectors in PostgreSQL: made where the vectors are stored, kept by the server."""

from __future__ import annotations

from functools import partial

import structlog

from recollect.orchestrator.embedding.choosing import MODEL
from recollect.orchestrator.embedding.interface import Embedder
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.search.vectors.pgvector import (
    INDEX_PREFIX,
    INDEXED_DIMENSIONS_MAX,
    TABLES,
    PgvectorIndex,
    index_name,
)
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.storage.properties import get_property
from recollect.orchestrator.troubles.trouble import Trouble
from recollect.orchestrator.vectors.memory_vectors import EMBED_LATER_AGAIN

log = structlog.get_logger()

INDEXED_MIN = 12_000
"""Fewer vectors have no index. Comparing them all takes some milliseconds, where putting each into
the graph as it is stored would take most of the time of storing it."""
COUNT_SOME = """
SELECT count(*) FROM (SELECT 1 FROM {table} WHERE model = ? LIMIT ?) AS counted
"""
HAS_INDEX = "SELECT to_regclass(?) IS NOT NULL"
DROP_MISFITS = """
DELETE FROM {table} WHERE model <> ? OR vector_dims(vector) <> ? RETURNING num
"""
# Only vectors of one length can be in an index.
CREATE_INDEX = """
CREATE INDEX IF NOT EXISTS {name} ON {table}
USING hnsw (CAST(vector AS halfvec({dimensions})) halfvec_ip_ops)
WHERE vector_dims(vector) = {dimensions}
"""
# A graph that does not fit into memory while it is built takes many times as long.
MEMORY_KB = 262_144
ALLOW_MEMORY = """
SELECT set_config('maintenance_work_mem', CAST(? AS TEXT), TRUE) FROM pg_settings
WHERE name = 'maintenance_work_mem' AND CAST(setting AS BIGINT) < CAST(? AS BIGINT)
"""
INDEXES = """
SELECT indexname FROM pg_indexes
WHERE schemaname = current_schema() AND tablename = ? AND left(indexname, ?) = ?
"""


class PgvectorIndexes:
    """Those of one database."""

    def make(self, embedder: Embedder, trouble: Trouble) -> PgvectorIndex:
        return PgvectorIndex(embedder.model, embedder.dimensions)

    async def load(self, storage: Storage, meaning: Meaning, table: str = "vectors") -> int:
        assert table in TABLES
        misfits = await storage.write(partial(_put_in_order, table, meaning))
        if misfits:
            log.warning("Vectors of no use were dropped.", action="load_index", count=misfits)
        return 0

    async def keep_up(self, storage: Storage, meaning: Meaning) -> None:
        index = meaning.index
        assert isinstance(index, PgvectorIndex)
        if not index.indexed:
            index.indexed, due = await storage.read(partial(_looked_at, meaning))
            if due:
                log.info("The vectors get an index.", action="index_vectors", model=index.model)
                await storage.write(partial(_put_in_order, TABLES[0], meaning))

    async def discard(self, storage: Storage, meaning: Meaning) -> None:
        await storage.write(partial(_drop_indexes, TABLES[1], None))

    def forget_others(self, model: str) -> None:
        """There are no files."""


def _put_in_order(table: str, meaning: Meaning, transaction: WriteTransaction) -> int:
    dimensions = meaning.embedding.dimensions
    if table == TABLES[0] and get_property(transaction, MODEL) not in (None, meaning.model):
        # Another orchestrator has just exchanged the model: these are its vectors.
        return 0
    misfits = transaction.execute(DROP_MISFITS.format(table=table), (meaning.model, dimensions))
    if table == TABLES[0]:
        transaction.executemany(EMBED_LATER_AGAIN, misfits)
    name = index_name(transaction, table, dimensions)
    _drop_indexes(table, name, transaction)
    if _is_due(table, meaning, transaction):
        transaction.execute(ALLOW_MEMORY, (str(MEMORY_KB), MEMORY_KB))
        transaction.execute(CREATE_INDEX.format(name=name, table=table, dimensions=dimensions))
    return len(misfits)


def _is_due(table: str, meaning: Meaning, session: Session) -> bool:
    """Whether there are so many vectors that they should have an index, and can."""
    if meaning.embedding.dimensions > INDEXED_DIMENSIONS_MAX:
        return False
    [(count,)] = session.execute(COUNT_SOME.format(table=table), (meaning.model, INDEXED_MIN))
    return bool(count >= INDEXED_MIN)


def _looked_at(meaning: Meaning, session: Session) -> tuple[bool, bool]:
    """Whether the vectors in use have their index, and whether they should get one."""
    name = index_name(session, TABLES[0], meaning.embedding.dimensions)
    [(has,)] = session.execute(HAS_INDEX, (name,))
    return bool(has), not has and _is_due(TABLES[0], meaning, session)


def _drop_indexes(table: str, but: str | None, transaction: WriteTransaction) -> None:
    """Drop the indexes of a table for vectors of other lengths."""
    for (name,) in transaction.execute(INDEXES, (table, len(INDEX_PREFIX), INDEX_PREFIX)):
        if name != but:
            transaction.execute(f"DROP INDEX {name}")
