"""P19: an upgrade is old or new, never between."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import apsw
import pytest

from recollect import MemoryClient
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.copies import DATABASE_NAME
from tests.faults import counts, schema_dumps
from tests.faults.ledger import Trial
from tests.faults.migrating import migrate
from tests.faults.tools import database
from tests.faults.tools.acknowledgements import Acknowledged, AcknowledgementLog
from tests.harness.processes import OrchestratorProcess

NEXT = """
-- What a next release could do: new and renamed columns, rewritten rows, a table made and one gone.
ALTER TABLE memories ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm';
UPDATE memories SET mood = 'rewritten', content = content || '!';
CREATE TABLE moods (mood TEXT PRIMARY KEY, memories INTEGER NOT NULL);
INSERT INTO moods SELECT mood, count(*) FROM memories GROUP BY mood;
CREATE INDEX memories_by_mood ON memories (mood, num);
ALTER TABLE sessions RENAME COLUMN user_id TO owner_id;
DELETE FROM versions;
DROP TABLE idempotency;
"""
MEMORIES = "SELECT id, version, content, deleted_us IS NOT NULL FROM memories ORDER BY num"
SCHEMA = "SELECT max(number) FROM schema_migrations"


def next_migrations(folder: Path) -> tuple[Path, int]:
    """The migrations of a release after this one, and its number."""
    shutil.copytree(schema_dumps.MIGRATIONS, folder)
    number = schema_dumps.numbers()[-1] + 1
    (folder / f"{number:04}_next.sql").write_text(NEXT)
    return folder, number


def test_every_schema_has_a_dump() -> None:
    dumped = sorted(int(path.stem) for path in schema_dumps.FOLDER.glob("*.sql"))
    assert dumped == schema_dumps.numbers(), "run python -m tests.faults.schema_dumps"


def test_a_first_start_killed_on_its_way_is_followed_by_a_good_one(tmp_path: Path) -> None:
    """The real orchestrator, killed while it makes its first database."""
    statements = [
        statement
        for _, _, sql in migrations.available(schema_dumps.MIGRATIONS)
        for statement in migrations.statements(sql)
    ]
    places = range(1, len(statements) + 1)
    if not counts.FULL:
        between = random.Random(counts.SEED).sample(places[1:-1], 3)
        places = [places[0], *sorted(between), places[-1]]  # type: ignore[assignment]
    with Trial("P19") as trial:
        for place in places:
            process = OrchestratorProcess(tmp_path / f"data-{place}")
            process.start(wait=False, RECOLLECT_FAILPOINTS=f"mid_migration:{place}")
            assert process.wait_ended() == -9, process.log()
            tables = database.rows(
                process.data / DATABASE_NAME, "SELECT name FROM sqlite_schema WHERE type = 'table'"
            )
            trial.check(not tables, f"killed at statement {place}, it left {tables}")
            with process.start(), process.client() as client:
                client.add_memory(f"stored after the kill at {place}")
                trial.check(client.count()["count"] == 1, "it does not work after the kill")
            trial.case()


def test_an_upgrade_killed_at_any_statement_leaves_the_old_schema_and_all_data(
    tmp_path: Path,
) -> None:
    newest = schema_dumps.numbers()[-1]
    folder, number = next_migrations(tmp_path / "migrations")
    path = schema_dumps.load(newest, tmp_path / "data")
    before = schema_dumps.dump(path, tmp_path / "copy")
    with Trial("P19") as trial:
        for place in range(1, len(migrations.statements(NEXT)) + 1):
            assert migrate(path, folder, die_at=place) == -9
            after = schema_dumps.dump(path, tmp_path / "copy")
            trial.check(after == before, f"killed at statement {place}, it is not as before")
            trial.case()
        memories = database.rows(path, MEMORIES)
        assert migrate(path, folder) == 0
        assert database.rows(path, SCHEMA) == [(number,)]
        upgraded = database.rows(path, MEMORIES)
        trial.check(
            upgraded == [(i, v, f"{content}!", d) for i, v, content, d in memories],
            "the upgrade lost or left rows",
        )
        trial.check(
            database.rows(path, "SELECT * FROM moods") == [("rewritten", len(memories))],
            "the upgrade is not whole",
        )
        for problem in database.problems(path.parent, tmp_path / "copy"):
            trial.violated(problem)
        trial.case()


@pytest.mark.parametrize("number", schema_dumps.numbers())
def test_a_database_of_every_release_is_upgraded_with_all_its_data(
    number: int, tmp_path: Path
) -> None:
    path = schema_dumps.load(number, tmp_path / "data")
    log = AcknowledgementLog()
    for memory_id, version, content, deleted in database.rows(path, MEMORIES):
        log.add(Acknowledged(memory_id, version, content, bool(deleted)))
    with Trial("P19") as trial:
        with OrchestratorProcess(path.parent) as process:
            for complaint in log.check(process.endpoint):
                trial.violated(complaint)
            with process.client() as client:
                [mission] = client.list_memories(filters={"key": "mission"})["memories"]
                related = client.get_related_memories(mission["id"], "led_to")["related"]
                trial.check(
                    [link["memory"]["content"] for link in related] == ["The Eagle has landed"],
                    f"relationships: {related}",
                )
                trial.check(
                    (mission["metadata"], mission["tags"], mission["value"])
                    == ({"crew": {"size": 3}}, ["space", "history"], [1, {"two": 2.5}]),
                    f"fields: {mission}",
                )
                for way, found in searched(client).items():
                    trial.check(found == mission["id"], f"by {way} it finds {found}")
                stats = client.stats()
                trial.check(
                    (stats["index"]["vectors"], stats["embedding"]["waiting"])
                    == (stats["memories"]["total"], 0),
                    f"vectors are missing: {stats}",
                )
                client.update_memory(mission["id"], {"importance": 1.0})
            assert process.stop() == 0
        assert database.rows(path, SCHEMA) == [(schema_dumps.numbers()[-1],)]
        for problem in database.problems(path.parent, tmp_path / "copy"):
            trial.violated(problem)
        trial.case()


def searched(client: MemoryClient) -> dict[str, str | None]:
    """What is found first by a tag, by a text without words in common, and by a question."""
    answers = {
        "a tag": client.search_memory("history"),
        "its spelling": client.semantic_search("Apollos flights", 1, threshold=0.2),
        "a question": client.recall("Where does Apollo fly?", 1),
    }
    return {
        way: answer["results"][0]["id"] if answer["results"] else None
        for way, answer in answers.items()
    }


def test_a_database_of_a_newer_release_is_refused_and_left_alone(tmp_path: Path) -> None:
    newest = schema_dumps.numbers()[-1]
    path = schema_dumps.load(newest, tmp_path / "data")
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO schema_migrations VALUES (?, 'later')", (newest + 1,))
    connection.close()
    before, content = path.read_bytes(), schema_dumps.dump(path, tmp_path / "copy")
    process = OrchestratorProcess(path.parent)
    with Trial("P19") as trial:
        try:
            code = process.start(wait=False).wait_ended()
        finally:
            process.close()
        trial.check(code not in (0, -9), f"it ended with {code}")
        said = process.log()
        trial.check(f"has schema {newest + 1}" in said, f"it said {said!r}")
        trial.check("Install the version that wrote it" in said, "it does not say what to do")
        after = schema_dumps.dump(path, tmp_path / "copy")
        trial.check(after == content, "its content was changed")
        trial.check(path.read_bytes() == before, "its bytes were changed")
        trial.case()
