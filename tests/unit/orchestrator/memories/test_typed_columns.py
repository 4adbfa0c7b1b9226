"""Which typed columns belong to a version, and which do not."""

from __future__ import annotations

from pathlib import Path

from recollect.orchestrator.memories.memory_store import TYPED
from recollect.orchestrator.memories.typed_columns import SETTLED, VERSIONED
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.sqlite.schema import apply_migrations
from recollect.orchestrator.storage.sqlite.session import SqliteSession

# Written once with the record, counted while it is used, or of no version alone.
UNVERSIONED = {
    "goals": {"parent_num"},
    "tasks": {"steps"},
    "decisions": {
        "task_id",
        "goal_num",
        "receipt_id",
        "context",
        "options",
        "choice",
        "reasoning",
        "confidence",
    },
    "procedures": set(),
    "incidents": {"title", "description", "severity", "occurred_us"},
    "patterns": {"usage_count"},
}


def test_every_typed_column_is_in_the_versions_or_left_out_for_a_reason(tmp_path: Path) -> None:
    session = SqliteSession(tmp_path / "recollect.db", page_cache_mb=4, readonly=False)
    apply_migrations(session, migrations.FOLDER / "sqlite")
    assert set(TYPED) == {*VERSIONED, *SETTLED}
    for table, versioned in VERSIONED.items():
        columns = {row[1] for row in session.execute(f"PRAGMA table_info ({table})")}
        assert columns == {"num", *versioned, *UNVERSIONED[table]}, table
