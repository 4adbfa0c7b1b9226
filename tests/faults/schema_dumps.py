"""A database of every released schema, as SQL text in schemas/NNNN.sql.

`python -m tests.faults.schema_dumps` writes the dump of the newest schema, once: it is made by the
program of that release, and must stay as that program left it.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

import apsw
import apsw.shell

from recollect import MemoryClient
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.copies import DATABASE_NAME
from tests.harness.processes import OrchestratorProcess

FOLDER = Path(__file__).with_name("schemas")
MIGRATIONS = migrations.FOLDER / "sqlite"


def numbers() -> list[int]:
    """The schemas that there are migrations to."""
    return [number for number, _, _ in migrations.available(MIGRATIONS)]


def path_of(number: int) -> Path:
    return FOLDER / f"{number:04}.sql"


def dump(database: Path, scratch: Path) -> str:
    """All that a database at rest holds, as SQL; taken from a copy."""
    scratch.mkdir()
    for suffix in ("", "-wal"):
        if (source := database.with_name(database.name + suffix)).exists():
            shutil.copyfile(source, scratch / source.name)
    text = io.StringIO()
    connection = apsw.Connection(str(scratch / database.name))
    try:
        shell = apsw.shell.Shell(stdout=text, db=connection)
        shell.process_command(".dump")  # type: ignore[no-untyped-call]
    finally:
        connection.close()
        shutil.rmtree(scratch)
    return "".join(line for line in text.getvalue().splitlines(True) if not line.startswith("--"))


def load(number: int, data: Path) -> Path:
    """The database of a release in a new data folder; returns its path."""
    data.mkdir(parents=True)
    connection = apsw.Connection(str(data / DATABASE_NAME))
    try:
        connection.pragma("journal_mode", "wal")
        connection.execute(path_of(number).read_text())
    finally:
        connection.close()
    return data / DATABASE_NAME


def fill(client: MemoryClient) -> None:
    """Some of everything that can be stored."""
    client.set_agent_id("archivist")
    session = client.create_session("alice", session_metadata={"topic": "upgrades"})
    client.set_session_id(session["session_id"])
    parent = client.add_memory(
        "Apollo flies to the moon",
        "semantic",
        "long",
        0.9,
        {"crew": {"size": 3}},
        ["space", "history"],
        namespace="project:apollo",
        key="mission",
        value=[1, {"two": 2.5}],
        source="archive",
    )["memory_id"]
    child = client.add_memory("Eagle has landed", parent_id=parent, namespace="project:apollo")
    client.update_memory(child["memory_id"], {"content": "The Eagle has landed", "tags": ["moon"]})
    gone = client.add_memory("Rumours of a green cheese", namespace="user:bob")["memory_id"]
    client.delete_memory(gone)
    back = client.add_memory("Ein Grüßchen 月", namespace="user:bob")["memory_id"]
    client.delete_memory(back)
    client.restore(back)
    client.add_relationship(parent, child["memory_id"], "led_to", 0.75)
    client.reinforce_memory(parent, 2.0)
    group = client.create_context_group("Moon", "All about it", namespace="project:apollo")
    client.add_to_group(parent, group["group_id"])
    client.add_to_group(child["memory_id"], group["group_id"])
    fill_working(client)
    fill_learned(client)
    fill_access(client)


def fill_access(client: MemoryClient) -> None:
    """Somebody who is known by a bearer key, and one of its keys that was revoked."""
    client.create_identity("baker", memories_max=100)
    client.grant_access("baker", "project:kitchen", "write")
    for key_hash, label in (("0d" * 32, "oven"), ("0e" * 32, "mixer")):
        client.create_bearer_key("baker", key_hash, label)
    client.revoke_bearer_key("baker", "0e" * 6)


def fill_working(client: MemoryClient) -> None:
    """What is to be reached, what is done for it, and what was decided on the way.

    Few texts here have an article: the first word of each is what it is searched by.
    """
    home = "project:kitchen"
    meal = client.store_goal("Serve a warm meal", 0.6, namespace=home)["goal_id"]
    goal = client.store_goal(
        "Bake some bread", 0.8, "2027-01-01", parent_goal_id=meal, tags=["oven"], namespace=home
    )["goal_id"]
    client.update_goal(goal, progress=0.5)
    client.save_task("Knead a dough", "knead", goal, "craft", namespace=home)
    client.save_step("knead", 1, "mixer", {"minutes": 8}, "It is smooth.", namespace=home)
    client.set_task_phase("knead", "requirements", "Flour is there", namespace=home)
    client.update_task_status("knead", "completed", "It rises under a cloth.", namespace=home)
    client.save_agent_state("baker", {"shelf": 2}, namespace=home)
    client.save_preference("flour", "rye", namespace=home, confidence=0.9)
    client.save_persona("chef", {"tone": "calm"}, namespace=home)
    decision = client.log_decision(
        "Which yeast for this dough?",
        ["fresh", "dry"],
        "fresh",
        "it tastes better",
        0.7,
        goal_id=goal,
        task_id="knead",
        namespace=home,
    )["decision_id"]
    client.record_outcome(decision, "a light loaf", True)
    client.push_event("oven", {"celsius": 240}, True, namespace=home)
    client.assemble_context("Knead a dough", 300, task_id="knead", namespace=home)


def fill_learned(client: MemoryClient) -> None:
    """What is known for long, and what was learned from what was done."""
    home = "project:kitchen"
    client.index_document(title="Ovens", namespace=home, text="Ovens are heated for an hour.")
    client.store_procedure("bake", ["heat an oven", "wait"], "For a loaf", namespace=home)
    incident = client.store_incident("A loaf burned", severity="high", namespace=home)
    client.resolve_incident(incident["memory_id"], "A timer was bought", "Nobody looked")
    client.record_config_change("oven", "celsius", 240, 220, "It burned", namespace=home)
    client.store_knowledge("Rye", "It needs sourdough", namespace=home)
    # Said at length, for by this alone are they and what is learned from them found.
    task = "Shape two round loaves of rye, rest them on floured linen, score and steam them"
    for success, summary in ((True, "Heated it first"), (False, "Put it in cold")):
        client.store_execution(
            "shape",
            summary,
            success,
            ["flat loaf"],
            namespace=home,
            task_description=task,
        )


def main() -> None:
    """Write the dump of the newest schema, unless it is there."""
    path = path_of(numbers()[-1])
    if path.exists():
        raise SystemExit(f"{path} is there already; a released schema does not change.")
    with tempfile.TemporaryDirectory() as folder:
        with OrchestratorProcess(Path(folder) / "data") as process:
            with process.client() as client:
                fill(client)
            process.stop()
        path.parent.mkdir(exist_ok=True)
        path.write_text(dump(process.data / DATABASE_NAME, Path(folder) / "copy"))


if __name__ == "__main__":
    main()
