"""Every statement on a hot path finds its rows by an index."""

from __future__ import annotations

import pytest

from recollect.orchestrator import (
    accesses,
    idempotency,
    index_loading,
    late_embedding,
    memory_store,
    reembedding,
    rows,
)
from recollect.orchestrator.search import authors, lexical, nearest, neighbours, past
from recollect.orchestrator.search.filters import namespace_condition
from recollect.orchestrator.services import audit, deletion, groups, listing, relationships
from recollect.orchestrator.storage import journal, migrations
from recollect.orchestrator.storage.sqlite import SqliteSession, apply_migrations

ALIVE = "deleted_us IS NULL AND (expires_us IS NULL OR expires_us > 0)"
STATEMENTS = {
    "get by id": rows.SELECT_BY_ID,
    "get by number": rows.SELECT_BY_NUM,
    "update": rows.UPDATE,
    "reinforce": rows.UPDATE_FADING,
    "key holder": memory_store.KEY_HOLDER,
    "version at a time": memory_store.VERSION_AT,
    "version by number": memory_store.VERSION_BY_NUMBER,
    "vectors of memories": memory_store.SELECT_VECTORS.format(marks="?, ?"),
    "passages of memories": memory_store.SELECT_PASSAGES.format(marks="?, ?"),
    "rows of memories": rows.SELECT_BY_NUMS.format(marks="?, ?"),
    "authors": authors.FIND.format(condition=namespace_condition("user:a")[0]),
    "who fits a filter": nearest.SELECT_AMONG.format(marks="?, ?", condition=ALIVE),
    "a sample": nearest.SAMPLE.format(marks="?, ?", condition=ALIVE),
    "turns before": neighbours.BEFORE.format(condition=ALIVE),
    "turns after": neighbours.AFTER.format(condition=ALIVE),
    "siblings": neighbours.SIBLINGS.format(condition=ALIVE),
    "what was superseded": past.CHANGED_SINCE.format(home="TRUE"),
    "what waits for a vector": late_embedding.WAITING,
    "a page without vectors": late_embedding.FORGOTTEN,
    "what is behind": reembedding.BEHIND,
    "access": accesses.SELECT_FADING,
    "access update": accesses.UPDATE_ACCESS,
    "idempotency": idempotency.FIND.format(keys="?, ?"),
    "old answers": idempotency.TRIM,
    "history": listing.OLD_VERSIONS,
    "children": listing.CHILDREN.format(
        after="", column="created_us", order="desc", readable="TRUE"
    ),
    "newest first": listing.LIST.format(condition=ALIVE),
    "a namespace": "SELECT num FROM memories WHERE " + namespace_condition("user:a")[0],
    "living children": deletion.LIVING_CHILDREN,
    "tree": deletion.LIVING_TREE,
    "links out": relationships.LINKS_OUT.format(of_type="", readable="TRUE"),
    "links in": relationships.LINKS_IN.format(of_type="", readable="TRUE"),
    "links of a type": relationships.LINKS_IN.format(
        of_type="AND r.relationship_type = ?", readable="TRUE"
    ),
    "members": groups.MEMBERS.format(readable="TRUE"),
    "group": groups.FIND_GROUP,
    "feed": journal.SCAN,
    "audit of a subject": audit.FOUND.format(condition="TRUE AND subject = ? AND seq < ?"),
    "audit of a task": audit.FOUND.format(condition="TRUE AND task_id = ? AND seq < ?"),
    "audit of a request": audit.FOUND.format(condition="TRUE AND trace = ? AND seq < ?"),
    "audit of what was denied": audit.FOUND.format(
        condition=f"TRUE AND {namespace_condition('user:a')[0]} AND outcome = 'denied' AND seq < ?"
    ),
    "audit": audit.BY_NUMBER.format(condition=namespace_condition("user:a")[0]),
    "audit by time": audit.BY_TIME.format(condition=namespace_condition("user:a")[0]),
    "a stretch of time": audit.TIME_MARK,
    "vectors at start": index_loading.PAGE.format(table="vectors", marks="?, ?"),
    "search by words": lexical.FIND.format(condition=ALIVE),
    "what has faded": "SELECT num FROM memories WHERE fades_us < ? AND deleted_us IS NULL "
    "AND archived_us IS NULL",
    "what has expired": "SELECT num FROM memories WHERE expires_us < ?",
    **{f"erase {at}": statement for at, statement in enumerate(memory_store.ERASE)},
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> SqliteSession:
    path = tmp_path_factory.mktemp("plans") / "recollect.db"
    session = SqliteSession(path, page_cache_mb=4, readonly=False)
    apply_migrations(session, migrations.FOLDER / "sqlite")
    return session


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_scans_a_table(session: SqliteSession, name: str) -> None:
    sql = STATEMENTS[name]
    plan = session.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
    steps = [str(row[3]) for row in plan]
    scans = [
        step
        for step in steps
        # Walking the primary key in order up to a LIMIT, a CTE or a virtual table is no full scan.
        if step.startswith("SCAN")
        and "VIRTUAL TABLE" not in step
        and step not in ("SCAN tree", "SCAN up", "SCAN page")
        and not (name == "newest first" and step == "SCAN memories")
    ]
    assert scans == [], steps


def test_a_missing_index_would_be_noticed(session: SqliteSession) -> None:
    plan = session.execute("EXPLAIN QUERY PLAN SELECT num FROM memories WHERE content = ?", ["x"])
    assert str(plan[0][3]).startswith("SCAN")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_migrations_are_found(kind: str) -> None:
    assert [number for number, _, _ in migrations.available(migrations.FOLDER / kind)] == [1, 2, 3]


@pytest.mark.parametrize("name", [name for name in STATEMENTS if name.startswith("audit")])
def test_the_audit_is_read_in_its_order_without_sorting(session: SqliteSession, name: str) -> None:
    sql = STATEMENTS[name]
    plan = session.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
    steps = [str(row[3]) for row in plan]
    assert not any("TEMP B-TREE" in step for step in steps), steps
