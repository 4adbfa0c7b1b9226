"""Every statement about documents finds its rows by an index."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.orchestrator.documents import purging, rows
from recollect.orchestrator.services import documents
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.sqlite.schema import apply_migrations
from recollect.orchestrator.storage.sqlite.session import SqliteSession

STATEMENTS = {
    "find": rows.FIND,
    "find by source": rows.FIND_BY_SOURCE,
    "below a folder": rows.BELOW,
    "a page": rows.LIST.format(condition="TRUE"),
    "update": rows.UPDATE,
    "chunks": rows.CHUNKS,
    "count": rows.COUNT_CHUNKS,
    "standing": rows.STANDING.format(marks="?, ?"),
    "forget a chunk": purging.FORGET_CHUNK,
    "title": purging.TITLE,
    "retitle": purging.RETITLE,
    "passages of one": f"SELECT num FROM memories WHERE {documents.IS_CHUNK_OF}",
    "is it a passage": f"SELECT 1 FROM memories WHERE num = ? AND {documents.IS_CHUNK}",
    **{f"delete {at}": statement for at, statement in enumerate(rows.DELETE)},
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_scans_a_table(tmp_path: Path, name: str) -> None:
    session = SqliteSession(tmp_path / "recollect.db", page_cache_mb=4, readonly=False)
    apply_migrations(session, migrations.FOLDER / "sqlite")
    sql = STATEMENTS[name]
    plan = session.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
    steps = [str(row[3]) for row in plan]
    assert not [step for step in steps if step.startswith("SCAN")], steps
