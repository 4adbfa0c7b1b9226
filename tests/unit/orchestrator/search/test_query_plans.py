"""Every statement on a hot path finds its rows by an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.orchestrator.analytics import statements as analytics
from recollect.orchestrator.consolidation import forgetting, runs
from recollect.orchestrator.context import belonging, receipts
from recollect.orchestrator.decay import faded
from recollect.orchestrator.decisions import rows as decision_rows
from recollect.orchestrator.exchange import (
    bringing,
    bringing_links,
    bringing_memories,
    bringing_sessions,
    reading_links,
    reading_memories,
    reading_sessions,
    tables,
)
from recollect.orchestrator.feed import pages
from recollect.orchestrator.feed.wanted import Wanted
from recollect.orchestrator.jobs import announced, fencing, leases
from recollect.orchestrator.jobs import rows as job_rows
from recollect.orchestrator.learning import executions, gathering, patterns, reuse
from recollect.orchestrator.longterm import rows as longterm_rows
from recollect.orchestrator.maintenance import agreement, checks
from recollect.orchestrator.maintenance import due as maintenance_due
from recollect.orchestrator.memories import accesses, counting, keys, memory_store, rows
from recollect.orchestrator.operational import critical, living
from recollect.orchestrator.search import authors, lexical, nearest, neighbours, past, scope, scopes
from recollect.orchestrator.search.filters import namespace_condition
from recollect.orchestrator.services import (
    audit,
    decisions,
    deletion,
    goals,
    groups,
    listing,
    namespaces,
    preferences,
    relationships,
    squashing,
    steps,
    tiers,
)
from recollect.orchestrator.services.session_reading import IS_OPEN
from recollect.orchestrator.serving import idempotency
from recollect.orchestrator.sessions import rows as session_rows
from recollect.orchestrator.sessions import state as session_state
from recollect.orchestrator.sessions.homes import readable_sessions
from recollect.orchestrator.storage import journal, journal_trimming, migrations
from recollect.orchestrator.storage.inserting import insert_sql
from recollect.orchestrator.storage.sqlite.schema import apply_migrations
from recollect.orchestrator.storage.sqlite.session import SqliteSession
from recollect.orchestrator.tiers import due, planning
from recollect.orchestrator.vectors import (
    faiss_indexes,
    late_embedding,
    memory_vectors,
    shadow_table,
)
from recollect.orchestrator.working import reading, summaries
from recollect.orchestrator.working import rows as working_rows
from recollect.protocol.errors import NotFound
from recollect.protocol.operation import Operation
from recollect.protocol.operations import (
    AppendEvent,
    CreateSession,
    GetByKey,
    GetSession,
    GetState,
    GetTask,
    HistoryByKey,
    Put,
    SavePreference,
    SaveStep,
    SaveTask,
    SearchNamespace,
    UpdateTaskStatus,
)
from tests.harness.worlds import World

# All that is written by a put, a new session, an event and what goes with each of them.
INSERTS = (
    rows.INSERT,
    rows.INSERT_VERSION,
    memory_vectors.INSERT_VECTOR,
    memory_vectors.EMBED_LATER,
    idempotency.KEEP,
    journal.APPEND,
    job_rows.INSERT,
    announced.INSERT,
    session_rows.INSERT,
    session_rows.INSERT_EVENT,
    critical.INSERT,
    working_rows.INSERT_GOAL,
    working_rows.INSERT_TASK,
    working_rows.INSERT_STEP,
)
ALIVE = "deleted_us IS NULL AND (expires_us IS NULL OR expires_us > 0)"
BELOW = namespace_condition("user:a", "m.namespace")[0]
STATEMENTS = {
    "living events": living.ALIVE.format(marks="?, ?"),
    "get by id": rows.SELECT_BY_ID,
    "get by number": rows.SELECT_BY_NUM,
    "update": rows.UPDATE,
    "reinforce": rows.UPDATE_FADING,
    "key holder": memory_store.KEY_HOLDER,
    "version at a time": memory_store.VERSION_AT,
    "version by number": memory_store.VERSION_BY_NUMBER,
    "vectors of memories": memory_vectors.SELECT_VECTORS.format(marks="?, ?"),
    "passages of memories": memory_vectors.SELECT_PASSAGES.format(marks="?, ?"),
    "rows of memories": rows.SELECT_BY_NUMS.format(marks="?, ?"),
    "authors": authors.FIND.format(condition=namespace_condition("user:a")[0]),
    "who fits a filter": nearest.SELECT_AMONG.format(marks="?, ?", condition=ALIVE),
    "what changed lately": scopes.SELECT_CHANGED.format(condition=ALIVE),
    "a sample": scopes.SAMPLE.format(marks="?, ?", condition=ALIVE),
    "turns before": neighbours.BEFORE.format(condition=ALIVE),
    "turns after": neighbours.AFTER.format(condition=ALIVE),
    "siblings": neighbours.SIBLINGS.format(condition=ALIVE),
    "what was superseded": past.CHANGED_SINCE.format(home="TRUE"),
    "what waits for a vector": late_embedding.WAITING,
    "a page without vectors": late_embedding.FORGOTTEN,
    "what is behind": shadow_table.BEHIND,
    "access": accesses.SELECT_FADING.format(marks="?, ?"),
    "access update": accesses.update_sql(2),
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
    "audit entries to be trimmed": journal_trimming.OLDEST,
    "writers to be kept": journal_trimming.KEEP_WRITERS,
    "trimming": journal_trimming.REMOVE,
    "who wrote what was trimmed": forgetting.WRITTEN_BY_ONCE,
    "what somebody wrote that was trimmed": forgetting.UNDER_ANOTHER_NAME_ONCE.format(where="TRUE"),
    "audit entries for the feed": pages.IN_STRETCH.format(
        condition=Wanted(("user:a",), subject="x").condition()[0]
    ),
    "audit entries for a feed of operations": pages.IN_STRETCH.format(
        condition=Wanted(None, frozenset(["put"]), agent="a").condition()[0]
    ),
    "vectors at start": faiss_indexes.PAGE.format(table="vectors", marks="?, ?"),
    "search by words": lexical.FIND.format(condition=ALIVE),
    **{f"erase {at}": statement for at, statement in enumerate(memory_store.ERASE)},
    "what a key holds": keys.HOLDER,
    "what a key held last": keys.DELETED_LAST,
    "what a key held then": keys.DELETED_SINCE,
    "memories of a namespace": namespaces.MEMORIES.format(of_type=namespaces.OF_TYPE),
    "namespaces": namespaces.NAMESPACES,
    "memories with versions": squashing.VERSIONED,
    "old versions": squashing.OLD.format(marks="?, ?"),
    "a memory to squash": squashing.PRESENT_ROW,
    "versions squashed": squashing.FORGET,
    "session": session_rows.FIND,
    "session changed": session_rows.CHANGE,
    "session activated": session_rows.ACTIVATE,
    "session moved": session_rows.SET_STATUS,
    "session with state and events": session_rows.WHOLE,
    "events": session_rows.EVENTS,
    "memories unlinked": session_rows.UNLINK_MEMORIES,
    **{f"session deleted {at}": sql for at, sql in enumerate(session_rows.DELETE)},
    "state set": session_state.SET_KEY,
    "state removed": session_state.REMOVE_KEY,
    "state measured": session_state.COUNT_KEYS,
    "all sessions": session_rows.LIST.format(condition="TRUE"),
    "sessions of a user": session_rows.LIST.format(condition="TRUE AND user_id = ?"),
    "sessions of who may be read": session_rows.LIST.format(
        condition=readable_sessions(("user:a", "user:b"))[0]
    ),
    "sessions in a status": session_rows.LIST.format(condition="TRUE AND status = ?"),
    "open sessions": session_rows.LIST.format(condition=f"{IS_OPEN} AND TRUE"),
    "open sessions of a user": session_rows.LIST.format(
        condition=f"{IS_OPEN} AND TRUE AND user_id = ?"
    ),
    "decisions": decision_rows.LIST.format(of="TRUE", readable="TRUE"),
    "decisions of a task": decision_rows.LIST.format(of="d.task_id = ?", readable="TRUE"),
    "decisions of a goal": decision_rows.LIST.format(of="d.goal_num = ?", readable="TRUE"),
    "columns of decisions": decision_rows.COLUMNS_OF.format(marks="?, ?"),
    "decisions with an outcome": nearest.SELECT_AMONG.format(
        marks="?, ?", condition=decision_rows.WITH_OUTCOME
    ),
    "an outcome": decision_rows.SET_OUTCOME,
    "executions of a task": executions.OF_TASK,
    "newest executions": executions.NEWEST.format(of="e.task_type = ?"),
    "columns of executions": executions.COLUMNS_OF.format(marks="?, ?"),
    "executions that went well": nearest.SELECT_AMONG.format(
        marks="?, ?", condition=executions.such_as("general", success_only=True)[0]
    ),
    "a reuse": reuse.COUNT,
    "texts of executions": gathering.TEXTS.format(marks="?, ?"),
    "patterns by what they proved": patterns.LIST.format(of="TRUE", readable="TRUE"),
    "types of patterns": patterns.TYPES.format(readable="TRUE"),
    "columns of patterns": patterns.COLUMNS_OF.format(marks="?, ?"),
    "evidence of a pattern": patterns.EVIDENCE,
    "what was learned from executions": patterns.LEARNED_FROM.format(marks="?, ?"),
    "a pattern changed": patterns.UPDATE,
    "a receipt": decisions.RECEIPT_OF,
    "a context given before": receipts.SELECT,
    "what was given": receipts.SELECT_ITEMS,
    "old receipts": receipts.TRIM,
    "what old receipts name": receipts.TRIM_ITEMS,
    "receipts of an identity": receipts.SURPLUS,
    "a receipt of what is gone": receipts.FORGET_TASK,
    **{f"forget a receipt {at}": sql for at, sql in enumerate(receipts.FORGET)},
    "what a task is recorded as": belonging.OWN_RECORD,
    "what belongs to a task": belonging.OF_TASK.format(condition=ALIVE),
    "what hangs on a task": belonging.OF_RECORD.format(condition=ALIVE),
    "critical events": belonging.BY_ID.format(marks="?, ?", condition=ALIVE),
    "a procedure": longterm_rows.PROCEDURE,
    "an incident": longterm_rows.INCIDENT,
    "an incident resolved": longterm_rows.RESOLVE,
    "changes of a component": longterm_rows.HISTORY.format(of_parameter="", readable="TRUE"),
    "changes of a setting": longterm_rows.HISTORY.format(
        of_parameter=longterm_rows.OF_PARAMETER, readable="TRUE"
    ),
    "what is due by its age": due.BY_AGE.format(home="TRUE", finished=due.FINISHED),
    "what is due in a namespace": due.BY_AGE.format(
        home=namespace_condition("user:a", "(m.namespace || '')")[0], finished="TRUE"
    ),
    "what has faded": faded.FADED.format(home="TRUE"),
    "what has faded in a namespace": faded.FADED.format(
        home=namespace_condition("user:a", "(m.namespace || '')")[0]
    ),
    "what decay archived": faded.ARCHIVED_SINCE,
    "put off": faded.PUT_OFF,
    **{f"{kind} long ago": maintenance_due.PAGES[kind] for kind in maintenance_due.PAGES},
    **{f"{kind} still": maintenance_due.STILL[kind] for kind in maintenance_due.STILL},
    "a stored vector and its memory": agreement.ONE,
    "records without their columns": checks.COUNT_BARE.format(table="goals"),
    "crowded namespaces": due.CROWDED.format(home="TRUE"),
    "what a crowd pushes out": due.OLDEST,
    "a namespace counted so far": planning.COUNT,
    "a run to go on with": runs.BROKEN_OFF,
    "summaries of a run": tiers.WRITTEN,
    "what a summary is of": tiers.SOURCES,
    "a task": reading.TASK_BY_KEY,
    "a goal": reading.GOAL_BY_NUM,
    "the last steps": reading.LAST_STEPS,
    "active goals": reading.ACTIVE_GOALS.format(readable=BELOW),
    "what a goal serves": goals.SERVES,
    "tasks of a goal": goals.TASKS_OF.format(readable=BELOW),
    "how tasks of a goal stand": goals.TASKS_BY_STATUS.format(readable=BELOW),
    "steps of a task": steps.STEPS_OF,
    "a step counted": steps.COUNT_STEP,
    "tasks summed up": summaries.SUMMED_UP,
    "tasks summed up lately": summaries.SUMMED_UP_LATELY.format(readable=summaries.WITHIN),
    "preferences": preferences.LIST,
    "a goal changed": working_rows.UPDATE_GOAL,
    "a task changed": working_rows.UPDATE_TASK,
    "memories in their order": reading_memories.MEMORIES.format(
        condition=namespace_condition("user:a", "(namespace || '')")[0]
    ),
    "a history in its order": reading_memories.VERSIONS,
    "links in their order": reading_links.RELATIONSHIPS.format(sources="TRUE", targets="TRUE"),
    "evidence in its order": reading_links.EVIDENCE.format(patterns="TRUE", executions="TRUE"),
    "groups in their order": reading_links.GROUPS.format(condition="TRUE"),
    "members to be exported": reading_links.MEMBERS.format(condition="TRUE"),
    "documents in their order": reading_links.DOCUMENTS.format(condition="TRUE"),
    "chunks to be exported": reading_links.CHUNKS,
    "sessions in their order": reading_sessions.SESSIONS.format(condition="TRUE"),
    "state of a session": reading_sessions.OWN_STATE,
    "events to be exported": reading_sessions.EVENTS,
    "shared state": reading_sessions.STATE,
    **{f"columns of {table}": tables.SELECT[table].format(marks="?") for table in tables.SELECT},
    "ids of memories": tables.IDS.format(marks="?, ?"),
    "memories that arrive": bringing.BY_IDS.format(marks="?, ?"),
    "versions that are there": bringing_memories.VERSIONS.format(marks="?, ?"),
    "a version completed": bringing_memories.REWRITE,
    "a reference filled": bringing_memories.FILL.format(table="tasks", column="goal_num"),
    "a link that is there": bringing_links.FIND_LINK,
    "evidence that is there": bringing_links.FIND_EVIDENCE,
    "members that are there": bringing_links.IS_MEMBER.format(marks="?, ?"),
    "events that are there": bringing_sessions.FIND_EVENTS,
    "state that is there": bringing_sessions.FIND_STATE,
    "a lease": leases.FIND,
    "a lease taken": leases.TAKE,
    "a lease renewed": leases.RENEW,
    "a fence": fencing.TOKEN,
    "a job": announced.FIND,
    "a run of a job": job_rows.BY_ID,
    "the run of a moment": job_rows.BY_MOMENT,
    "open runs of jobs": job_rows.OPEN,
    "a run that waits": job_rows.WAITING,
    "the last run of a job": job_rows.LAST,
    "the last moment of a job": job_rows.COVERED,
    "the first lost run of a job": job_rows.FIRST_LOST,
    "runs of all jobs": job_rows.PAGE,
    "runs of a job": job_rows.PAGE_OF_JOB,
    "a run begun": job_rows.BEGIN,
    "a run told of": job_rows.REPORT,
    "a run finished": job_rows.FINISH,
    "runs lost": job_rows.LOSE,
    "runs trimmed": job_rows.TRIM,
    **{f"insert {insert.table}": insert_sql(insert, 1) for insert in INSERTS},
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> SqliteSession:
    path = tmp_path_factory.mktemp("plans") / "recollect.db"
    session = SqliteSession(path, page_cache_mb=4, readonly=False)
    apply_migrations(session, migrations.FOLDER / "sqlite")
    return session


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_scans_a_table(session: SqliteSession, name: str) -> None:
    scans = scans_in(session, STATEMENTS[name])
    assert scans in ([], ["SCAN memories"]) if name == "newest first" else scans == []


def test_memories_are_counted_in_an_index_and_not_read(session: SqliteSession) -> None:
    plan = session.execute(f"EXPLAIN QUERY PLAN {counting.BY_NAMESPACE}", counting.OWN_PARAMS)
    steps = [str(row[3]) for row in plan]
    assert "SCAN memories USING COVERING INDEX memories_by_namespace" in steps
    assert not any("GROUP BY" in step for step in steps)


def scans_in(session: SqliteSession, sql: str) -> list[str]:
    """The steps of a statement that go through a whole table."""
    plan = session.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
    return [
        step
        for step in (str(row[3]) for row in plan)
        # Walking the primary key in order up to a LIMIT, a CTE or a virtual table is no full scan.
        if step.startswith("SCAN")
        and "VIRTUAL TABLE" not in step
        and "VALUES CLAUSE" not in step
        and "CONSTANT ROW" not in step
        and step not in ("SCAN tree", "SCAN up", "SCAN page", "SCAN found", "SCAN read")
        # That index holds the active goals alone, in the order in which they are listed.
        and step != "SCAN g USING INDEX goals_active"
    ]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World("sqlite", Path(tmp_path_factory.mktemp("paths")) / "data")
    for n in range(12):
        world(Put("user:a", "k", n))
        world(Put("user:a:b", f"k{n}", n))
    world(SaveTask("Read", "t"))
    yield world
    world.close()


def begun(world: World) -> str:
    session_id: str = world(CreateSession("a"))["session_id"]
    return session_id


DELTA = {"a": 1, "b": None, "user:c": 2, "app:d": 3, "temp:e": 4}
PATHS: dict[str, Callable[[World], Operation[Any]]] = {
    "create a session": lambda world: CreateSession("a", state=DELTA),
    "append an event": lambda world: AppendEvent(begun(world), {"said": "hello"}, DELTA),
    "read a session": lambda world: GetSession(begun(world)),
    "read its state": lambda world: GetState(begun(world)),
    "put a first version": lambda world: Put("user:a", begun(world), 1),
    "put the next version": lambda world: Put("user:a", "k", 2),
    "read the current version": lambda world: GetByKey("user:a", "k"),
    "read an old version": lambda world: GetByKey("user:a", "k", 3),
    "read the past": lambda world: GetByKey("user:a", "k", as_of=1_800_000_001),
    "read ten versions": lambda world: HistoryByKey("user:a", "k", 10),
    "save a task": lambda world: SaveTask("Write", begun(world)),
    "save a task again": lambda world: SaveTask("Write", "t"),
    "move a task on": lambda world: UpdateTaskStatus("t", "completed", begun(world)),
    "save a step": lambda world: SaveStep("t", 1, "search", {"a": 1}, "b"),
    "read a task": lambda world: GetTask("t"),
    "save a preference": lambda world: SavePreference("a", 1),
    "query a namespace": lambda world: SearchNamespace("user:a", limit=100),
}


@pytest.mark.parametrize("path", PATHS)
def test_no_statement_of_a_whole_path_scans_a_table(
    session: SqliteSession, world: World, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = PATHS[path](world)
    said: list[str] = []
    execute, executemany = SqliteSession.execute, SqliteSession.executemany

    def heard(self: SqliteSession, sql: str, params: Any = ()) -> Any:
        said.append(sql)
        return execute(self, sql, params)

    def heard_many(self: SqliteSession, sql: str, rows: Any) -> None:
        said.append(sql)
        executemany(self, sql, rows)

    monkeypatch.setattr(SqliteSession, "execute", heard)
    monkeypatch.setattr(SqliteSession, "executemany", heard_many)
    try:
        world(operation, key=path)
    except NotFound:
        assert path == "read the past"
    monkeypatch.undo()
    assert said
    scans = {sql: found for sql in said if (found := scans_in(session, sql))}
    assert scans == {}


# What is read page by page, however much there is of it.
IN_ORDER = (
    "memories of a namespace",
    "memories with versions",
    "events",
    "what a key held last",
    "history",
    "all sessions",
    "sessions of a user",
    "sessions in a status",
    "open sessions",
    "open sessions of a user",
    "the last steps",
    "active goals",
    "tasks of a goal",
    "steps of a task",
    "preferences",
    "what is due by its age",
    "what is due in a namespace",
    "what a crowd pushes out",
    "executions of a task",
    "newest executions",
    "patterns by what they proved",
    "evidence of a pattern",
    "decisions",
    "decisions of a task",
    "decisions of a goal",
    "changes of a component",
    "changes of a setting",
    "runs of all jobs",
    "runs of a job",
    "the last run of a job",
    "the last moment of a job",
)


@pytest.mark.parametrize("name", IN_ORDER)
def test_a_page_is_read_in_its_order_without_sorting(session: SqliteSession, name: str) -> None:
    sql = STATEMENTS[name]
    plan = session.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
    assert not any("TEMP B-TREE" in str(row[3]) for row in plan), plan


@pytest.mark.parametrize("home", ["", namespace_condition("user:a")[0] + " AND "])
@pytest.mark.parametrize("names", [["decisions"], ["incidents", "procedures", "documents"]])
def test_a_collection_is_listed_without_reading_memories(
    session: SqliteSession, names: list[str], home: str
) -> None:
    condition = home + scope.collections_condition(names)[0]
    sql = scopes.SELECT_NUMS.format(condition=condition)
    plan = session.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
    steps = [str(row[3]) for row in plan]
    assert steps == ["SEARCH memories USING COVERING INDEX memories_by_collection (collection=?)"]


def test_tasks_are_summed_up_without_reading_other_memories(session: SqliteSession) -> None:
    plans = {
        name: [
            str(row[3])
            for row in session.execute(
                f"EXPLAIN QUERY PLAN {STATEMENTS[name]}", [0] * STATEMENTS[name].count("?")
            )
        ]
        for name in ("tasks summed up", "tasks summed up lately")
    }
    assert any(
        "(collection=? AND namespace>? AND namespace<?)" in step
        for step in plans["tasks summed up"]
    ), plans
    assert any("tasks_summed_up" in step for step in plans["tasks summed up lately"]), plans


def test_namespaces_are_counted_without_reading_memories(session: SqliteSession) -> None:
    plan = session.execute(
        f"EXPLAIN QUERY PLAN {namespaces.NAMESPACES}", [0] * namespaces.NAMESPACES.count("?")
    )
    searches = [str(row[3]) for row in plan if str(row[3]).startswith("SEARCH")]
    assert len(searches) == 3
    assert all("USING COVERING INDEX memories_by_namespace (" in step for step in searches), plan


@pytest.mark.parametrize("name", ["what is due by its age", "crowded namespaces"])
def test_what_is_due_is_found_by_its_tier(session: SqliteSession, name: str) -> None:
    sql = STATEMENTS[name]
    plan = session.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
    assert any("INDEX memories_by_tier (tier=? AND updated_us" in str(row[3]) for row in plan), plan


def test_the_store_as_a_whole_is_judged_within_bounds(session: SqliteSession) -> None:
    for sql in (analytics.SAMPLE, analytics.FADING):
        assert "TEMP B-TREE" not in plan_of(session, sql)
    assert "memories_by_fading" in plan_of(session, analytics.FADING)


def plan_of(session: SqliteSession, sql: str) -> str:
    plan = session.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
    return "\n".join(str(step[3]) for step in plan)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("what has faded", "memories_by_fading (fades_us"),
        ("what decay archived", "memories_by_archiving (archived_us"),
        ("expired long ago", "memories_by_expiry (expires_us"),
        ("deleted long ago", "memories_by_deletion (deleted_us"),
        ("archived long ago", "memories_by_archiving (archived_us"),
    ],
)
def test_what_is_to_go_is_found_by_when(session: SqliteSession, name: str, index: str) -> None:
    sql = STATEMENTS[name]
    plan = session.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
    assert any(f"INDEX {index}" in str(row[3]) for row in plan), plan


def test_a_missing_index_would_be_noticed(session: SqliteSession) -> None:
    plan = session.execute("EXPLAIN QUERY PLAN SELECT num FROM memories WHERE content = ?", ["x"])
    assert str(plan[0][3]).startswith("SCAN")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_migrations_are_found(kind: str) -> None:
    assert [number for number, _, _ in migrations.available(migrations.FOLDER / kind)] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    ]


@pytest.mark.parametrize("name", [name for name in STATEMENTS if name.startswith("audit")])
def test_the_audit_is_read_in_its_order_without_sorting(session: SqliteSession, name: str) -> None:
    sql = STATEMENTS[name]
    plan = session.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
    steps = [str(row[3]) for row in plan]
    assert not any("TEMP B-TREE" in step for step in steps), steps
