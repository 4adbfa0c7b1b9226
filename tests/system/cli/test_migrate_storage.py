"""migrate-storage: everything goes along, there and back, also when it is killed on its way."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from recollect import MemoryClient
from recollect.orchestrator.storage.copies import DATABASE_NAME
from tests.harness.clients import Recording
from tests.harness.every_call import documents_of, use_everything
from tests.harness.ports import free_port
from tests.harness.postgres import bare_database, new_database
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine, Result

KILLED = -signal.SIGKILL
KEY = "a request that is repeated"
WORDS_OF_QUESTIONS = ("brig sails at dawn", "green tea", "deploy of the website", "canary")
TABLES = """
SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
    AND name NOT LIKE 'memories_fts%' AND name NOT LIKE 'sqlite_%'
    AND name NOT IN ('schema_migrations', 'properties')
"""
# What a store has only for a while, or after years.
PASSING = (
    "INSERT INTO owned (num, identity) VALUES (999999, 'guest')",
    "INSERT INTO unembedded (num) VALUES (999999)",
    "INSERT INTO trimmed_writers (num, version, identity) VALUES (999999, 1, 'guest')",
    "INSERT OR IGNORE INTO shadow_vectors SELECT * FROM vectors ORDER BY num LIMIT 3",
)
PROPERTIES = "SELECT name, value FROM properties WHERE name NOT IN ('store_id') ORDER BY name"


def fill_further(client: MemoryClient) -> None:
    """What every operation leaves is little, since many of them delete; this stays."""
    items: list[Any] = [
        {"content": f"Anna drinks green tea on day {day}", "namespace": "user:anna"}
        for day in range(700)
    ]
    client.batch_add_memories(items)
    client.put("user:anna", "theme", {"colour": "dark"}, idempotency_key=KEY)
    client.put("user:anna", "theme", {"colour": "light"})
    first, second = client.list_memories(limit=2)["memories"]
    client.add_relationship(first["id"], second["id"], "precedes")
    group = client.create_context_group("pair")["group_id"]
    client.add_to_group(first["id"], group)
    session = client.create_session("anna", state={"step": 1})["session_id"]
    client.append_event(session, {"said": "good morning"})
    client.create_identity("guest", None, None, 5)
    client.grant_access("guest", "user:anna", "read")
    client.create_bearer_key("guest", "2e" * 32, "the desk")
    client.acquire_lease("harvest", "me", 600.0)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a store, left in order, in which every operation was used."""
    folder = tmp_path_factory.mktemp("filled")
    documents = documents_of(folder)
    with OrchestratorProcess(
        folder / "data", env={"RECOLLECT_DOCUMENTS_ROOTS": str(documents)}
    ) as process:
        with process.client() as client:
            use_everything(Recording(client, None), folder)
            fill_further(client)
        assert process.stop() == 0
    connection = apsw.Connection(str(process.data / DATABASE_NAME))
    for statement in PASSING:
        connection.execute(statement)
    connection.close()
    return process.data


@pytest.fixture
def data(filled: Path, tmp_path: Path) -> Path:
    """A copy of that folder, for one test."""
    shutil.copytree(filled, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def recollect(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, f"tcp://127.0.0.1:{free_port()}")


def rows_of(data: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in a database, read without any of the code that copies it."""
    connection = apsw.Connection(str(data / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        found: dict[str, list[tuple[Any, ...]]] = {}
        for (name,) in connection.execute(TABLES).fetchall():
            rows = connection.execute(f"SELECT * FROM {name}").fetchall()
            # Values of all kinds cannot be compared with each other.
            found[str(name)] = sorted(rows, key=repr)
        found["properties"] = connection.execute(PROPERTIES).fetchall()
        return found
    finally:
        connection.close()


def answers(process: OrchestratorProcess) -> dict[str, Any]:
    """What a store says to the same questions, as far as two storages can say the same."""
    with process.client() as client:
        asked: dict[str, Any] = {}
        for words in WORDS_OF_QUESTIONS:
            ways: dict[str, Callable[..., Any]] = {
                "words": client.search_memory,
                "meaning": client.semantic_search,
                "recall": client.recall,
            }
            for way, search in ways.items():
                found = search(words, **{"limit" if way == "words" else "k": 5})
                results = found["results"]
                # Those that are alike may come in either order.
                asked[f"{words} by {way}"] = sorted(round(r["score"], 3) for r in results)
                asked[f"best for {words} by {way}"] = [r["id"] for r in results[:1]]
        theme = client.get_by_key("user:anna", "theme")["memory"]
        asked["history"] = [
            (version["version"], version["operation"], version["changed_at"])
            for version in client.history(theme["id"])["versions"]
        ]
        asked["audit"] = client.verify_audit()
        asked["feed"] = client.read_changes(0, 50)
        asked["identities"] = client.list_identities()["identities"]
        asked["sessions"] = client.list_sessions("anna")["sessions"]
        again = client.put("user:anna", "theme", {"colour": "dark"}, idempotency_key=KEY)
        asked["repeated"] = again
    return asked


def migrated(recollect: CommandLine, source: str | Path, target: str | Path) -> dict[str, Any]:
    result = recollect("migrate-storage", "--from", source, "--to", target, "--json")
    assert result.code == 0, result
    return result.json()


def test_everything_goes_to_postgresql_and_back(
    recollect: CommandLine, data: Path, tmp_path: Path
) -> None:
    before = rows_of(data)
    empty = sorted(name for name, rows in before.items() if not rows)
    assert empty == []
    url, back = bare_database(), tmp_path / "back"
    there = migrated(recollect, data, url)
    home = migrated(recollect, url, f"sqlite://{back}")
    assert there["tables"] == home["tables"]
    assert there["tables"].keys() | {"properties"} == before.keys()
    assert there["tables"]["memories"]["rows"] == len(before["memories"])
    assert rows_of(data) == rows_of(back) == before

    said = []
    for folder, env in (
        (data, {}),
        (tmp_path / "beside", {"RECOLLECT_STORAGE_URL": url}),
        (back, {}),
    ):
        with OrchestratorProcess(folder, env=env) as process:
            said.append(answers(process))
    assert said[0]["audit"]["valid"] is True
    assert said[0] == said[2]
    assert said[0] == said[1]


def test_what_was_killed_goes_on_where_it_was(
    recollect: CommandLine, data: Path, tmp_path: Path
) -> None:
    url, back = bare_database(), tmp_path / "back"
    before = rows_of(data)
    for source, target in ((data, url), (url, back)):
        command = ("migrate-storage", "--from", source, "--to", target, "--json")
        for place in ("copying_rows:3", "copying_rows:20", "copying_words:1"):
            assert recollect(*command, RECOLLECT_FAILPOINTS=place).code == KILLED
        refused = served(target, tmp_path)
        assert refused.code == 1 and "unfinished copy" in refused.err, refused
        completed = recollect(*command)
        assert completed.code == 0, completed
        assert completed.json()["resumed"] is True
    assert rows_of(back) == before


def served(place: str | Path, folder: Path) -> Result:
    """What an orchestrator says that is started there, and must not serve it."""
    recollect = CommandLine(folder, f"tcp://127.0.0.1:{free_port()}")
    bind = ("--bind", str(recollect.endpoint))
    if isinstance(place, Path):
        return recollect("orchestrator", "--data", place, *bind)
    return recollect(
        "orchestrator", "--data", folder / "served", *bind, RECOLLECT_STORAGE_URL=place
    )


def test_what_the_source_has_written_between_two_tries_is_in_the_copy(
    recollect: CommandLine, data: Path, tmp_path: Path
) -> None:
    url, back = bare_database(), tmp_path / "back"
    command = ("migrate-storage", "--data", data, "--to", url)
    assert recollect(*command, RECOLLECT_FAILPOINTS="copying_words:1").code == KILLED
    with OrchestratorProcess(data) as process, process.client() as client:
        kept = client.get_by_key("user:anna", "theme")["memory"]["id"]
        client.update_memory(kept, {"content": "Anna has changed her mind"})
        client.add_memory("The tide came in meanwhile")
        assert process.stop() == 0
    result = recollect(*command)
    assert result.code == 0, result
    assert "Every table was read again" in result.out
    migrated(recollect, url, back)
    assert rows_of(back) == rows_of(data)
    with (
        OrchestratorProcess(tmp_path / "beside", env={"RECOLLECT_STORAGE_URL": url}) as process,
        process.client() as client,
    ):
        found, *_ = client.search_memory("tide meanwhile")["results"]
        assert found["content"] == "The tide came in meanwhile"


def test_a_target_that_holds_something_else_is_left_as_it_is(
    recollect: CommandLine, data: Path, tmp_path: Path
) -> None:
    url = bare_database()
    migrated(recollect, data, url)
    for source, target in ((data, url), (url, data)):
        refused = recollect("migrate-storage", "--from", source, "--to", target, "--json")
        assert refused.code == 1
        error = refused.json()["error"]
        assert error["code"] == "already_exists"
        assert "holds something already" in error["message"]

    other, unfinished = tmp_path / "other", bare_database()
    shutil.copytree(data, other)
    killed = recollect(
        "migrate-storage", "--from", other, "--to", unfinished, RECOLLECT_FAILPOINTS="copying_rows"
    )
    assert killed.code == KILLED
    refused = recollect("migrate-storage", "--from", data, "--to", unfinished)
    assert refused.code == 1
    assert f"unfinished copy of {other}" in refused.err


def test_what_an_orchestrator_has_open_is_not_copied(
    recollect: CommandLine, data: Path, tmp_path: Path
) -> None:
    url = new_database()
    env = {"RECOLLECT_STORAGE_URL": url}
    with OrchestratorProcess(data), OrchestratorProcess(tmp_path / "beside", env=env):
        in_use = recollect("migrate-storage", "--from", data, "--to", bare_database())
        assert in_use.code == 1 and "is in use by another orchestrator" in in_use.err, in_use
        for source, target in ((url, tmp_path / "new"), (tmp_path / "other", url)):
            if source != url:
                shutil.copytree(data, source)
            opened = recollect("migrate-storage", "--from", source, "--to", target)
            assert opened.code == 1 and "has this database open" in opened.err, opened


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mysql://somebody@somewhere/else", "mysql:// is no storage"),
        ("postgresql://somebody:secret@[/else", "no address of PostgreSQL"),
        ("{data}", "is where the store is already"),
        ("{data}/recollect.db", "is where the store is already"),
    ],
)
def test_a_wrong_place_is_refused_with_what_to_give(
    recollect: CommandLine, data: Path, target: str, said: str
) -> None:
    refused = recollect("migrate-storage", "--from", data, "--to", target.format(data=data))
    assert refused.code in (1, 2)
    assert said in refused.err
    assert "secret" not in refused.err


def test_a_source_that_is_not_there_is_not_made(recollect: CommandLine, tmp_path: Path) -> None:
    missing = recollect("migrate-storage", "--data", tmp_path / "no", "--to", tmp_path / "new")
    assert missing.code == 1
    assert "There is no database in" in missing.err
    assert not (tmp_path / "no").exists()
    assert not (tmp_path / "new").exists()
