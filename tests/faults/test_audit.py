"""P22: a changed audit log is noticed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import pytest

from recollect.orchestrator.storage import journal
from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.interface import Change
from recollect.orchestrator.storage.journal_walk import JournalWalk
from recollect.orchestrator.storage.sqlite.session import SqliteSession
from recollect.protocol.errors import Forbidden
from recollect.protocol.operations import AddMemory, Put, TrimJournal, UpdateMemory, VerifyAudit
from tests.faults import counts, schema_dumps
from tests.faults.ledger import Trial
from tests.faults.walls import identity
from tests.harness.postgres import new_database
from tests.harness.processes import OrchestratorProcess
from tests.harness.worlds import World

ENTRIES = 300
COLUMNS = (*journal.FIELDS, "hash")
# What a column is made to hold: of its own type, of another, nothing, and what cannot be read.
NEVER_EMPTY = ("at_us", "identity", "operation", "subject")
EDITS: dict[str, list[Any]] = {
    name: ["forged", "", 7, b"\x80", *([] if name in NEVER_EMPTY else [None])]
    for name in journal.FIELDS[1:]
}
EDITS["hash"] = [bytes(32), b"", "text", 1 << 62]

Execute = Callable[..., list[tuple[Any, ...]]]
Tamper = Callable[[Execute, int], object]


def shift(execute: Execute, first: int, by: int) -> None:
    """Give all entries from a number on other numbers, without two having the same meanwhile."""
    execute("UPDATE journal SET seq = seq + 1000000 WHERE seq >= ?", (first,))
    execute("UPDATE journal SET seq = seq - 1000000 + ? WHERE seq >= 1000000", (by,))


def swap(execute: Execute, one: int, other: int) -> None:
    execute("UPDATE journal SET seq = 0 WHERE seq = ?", (one,))
    execute("UPDATE journal SET seq = ? WHERE seq = ?", (one, other))
    execute("UPDATE journal SET seq = ? WHERE seq = 0", (other,))


def swap_but_for_hashes(execute: Execute, one: int, other: int) -> None:
    hashes: dict[int, bytes] = dict(
        execute("SELECT seq, hash FROM journal WHERE seq IN (?, ?)", (one, other))
    )
    swap(execute, one, other)
    for seq in (one, other):
        execute("UPDATE journal SET hash = ? WHERE seq = ?", (hashes[seq], seq))


def insert(execute: Execute, seq: int, hashed: bytes = b"h" * 32) -> None:
    execute(
        "INSERT INTO journal (seq, at_us, identity, operation, subject, hash) "
        "VALUES (?, 1, 'local', 'forged', 'x', ?)",
        (seq, hashed),
    )


def forge_end(execute: Execute) -> None:
    """Make the recorded end fit what is there."""
    [(seq, head)] = execute("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1")
    execute("UPDATE ledger SET seq = ?, head = ?", (seq, head))


def forge_all(execute: Execute) -> None:
    """Number and chain all entries anew, so that the log fits itself again."""
    names = ", ".join(journal.FIELDS)
    head = journal.GENESIS
    rows = execute(f"SELECT {names} FROM journal ORDER BY seq")
    execute("DELETE FROM journal")
    for seq, (_, *rest) in enumerate(rows, 1):
        head = journal.chain(head, Change(seq, *rest))
        marks = ", ".join("?" for _ in COLUMNS)
        execute(f"INSERT INTO journal ({names}, hash) VALUES ({marks})", (seq, *rest, head))
    forge_end(execute)


def edited(name: str, value: Any) -> Tamper:
    def tamper(execute: Execute, at: int) -> None:
        execute(f"UPDATE journal SET {name} = ? WHERE seq = ?", (value, at))

    return tamper


def deleted(condition: str) -> Tamper:
    def tamper(execute: Execute, at: int) -> None:
        execute(f"DELETE FROM journal WHERE {condition}".replace(":at", str(at)))

    return tamper


def done(statement: str) -> Tamper:
    return lambda execute, at: execute(statement.replace(":at", str(at)))


def forged(*tamperings: Tamper) -> Tamper:
    """One after the other, and then all entries chained anew."""

    def tamper(execute: Execute, at: int) -> None:
        for each in tamperings:
            each(execute, at)
        forge_all(execute)

    return tamper


def renumbered(execute: Execute, at: int) -> None:
    deleted("seq = :at")(execute, at)
    shift(execute, at + 1, -1)


def inserted(execute: Execute, at: int) -> None:
    shift(execute, at, 1)
    insert(execute, at)


def replaced(execute: Execute, at: int) -> None:
    deleted("seq = :at")(execute, at)
    insert(execute, at)


def cut_and_forged(execute: Execute, at: int) -> None:
    deleted("seq > :at")(execute, at)
    forge_end(execute)


TAMPERINGS: dict[str, tuple[Tamper, str]] = {
    "an entry deleted": (deleted("seq = :at"), "deleted"),
    "several deleted": (deleted("seq >= :at AND seq < :at + 5"), "deleted"),
    "the first deleted": (deleted("seq = 1"), "deleted"),
    "one deleted, the rest renumbered": (renumbered, "deleted"),
    "neighbours exchanged": (lambda execute, at: swap(execute, at, at + 1), "reordered"),
    "distant ones exchanged": (lambda execute, at: swap(execute, at, at + 40), "reordered"),
    "exchanged but for their hashes": (
        lambda execute, at: swap_but_for_hashes(execute, at, at + 1),
        "reordered",
    ),
    "one moved to the end": (
        done("UPDATE journal SET seq = 900000 WHERE seq = :at"),
        "reordered",
    ),
    "one inserted": (inserted, "inserted"),
    "one inserted in front": (lambda execute, at: insert(execute, 0), "inserted"),
    "one inserted before all numbers": (
        lambda execute, at: insert(execute, -(1 << 63)),
        "inserted",
    ),
    "the tail cut": (deleted("seq > :at"), "truncated"),
    "the last entry cut": (deleted("seq = (SELECT max(seq) FROM journal)"), "truncated"),
    "everything deleted": (deleted("TRUE"), "truncated"),
    "the recorded end changed": (done("UPDATE ledger SET head = zeroblob(32)"), "end"),
    "the recorded end moved back": (done("UPDATE ledger SET seq = seq - 3"), "inserted"),
    "the recorded end deleted": (done("DELETE FROM ledger"), "end"),
    "one that cannot be read": (
        done("UPDATE journal SET subject = CAST(x'ff' AS TEXT) WHERE seq = :at"),
        "changed",
    ),
    **{
        f"{name} made {value!r}": (edited(name, value), "changed")
        for name, values in EDITS.items()
        for value in values
    },
}

# What the chain alone cannot show, and a head that was noted before can.
FORGERIES: dict[str, tuple[Tamper, str]] = {
    "the tail cut, and the end forged": (cut_and_forged, "truncated"),
    "an entry edited, and all chained anew": (forged(edited("subject", "x")), "rewritten"),
    "an entry deleted, and all chained anew": (forged(deleted("seq = :at")), "truncated"),
    "two exchanged, and all chained anew": (
        forged(lambda execute, at: swap(execute, at, at + 1)),
        "rewritten",
    ),
    "one inserted, and all chained anew": (forged(inserted), "rewritten"),
    "one replaced, and all chained anew": (forged(replaced), "rewritten"),
}


def anchored(statement: str) -> Tamper:
    return done(f"UPDATE ledger SET {statement}")


def cut_more(execute: Execute, at: int) -> None:
    """Take more away than was trimmed, and make the recorded beginning fit."""
    [(head,)] = execute("SELECT hash FROM journal WHERE seq = ?", (at,))
    execute("DELETE FROM journal WHERE seq <= ?", (at,))
    execute("UPDATE ledger SET trimmed_seq = ?, trimmed_head = ?", (at, head))


# What can be done to a log that was trimmed, beside all that can be done to any.
CUTS: dict[str, tuple[Tamper, str]] = {
    "more cut than was trimmed": (deleted("seq <= :at"), "deleted"),
    "the first kept entry deleted": (
        deleted("seq = (SELECT min(seq) FROM journal)"),
        "deleted",
    ),
    "more cut, and the beginning forged": (cut_more, "deleted"),
    "the beginning moved back": (anchored("trimmed_seq = trimmed_seq - 1"), "deleted"),
    "the beginning forgotten": (anchored("trimmed_seq = 0, trimmed_head = NULL"), "deleted"),
    "the beginning moved on": (anchored("trimmed_seq = trimmed_seq + 1"), "deleted"),
    "the hash of the beginning changed": (anchored("trimmed_head = zeroblob(32)"), "changed"),
    "the hash of the beginning gone": (anchored("trimmed_head = NULL"), "end"),
    "the number of the beginning made a text": (anchored("trimmed_seq = 'x'"), "end"),
    "the entry of the trimming changed": (
        done("UPDATE journal SET subject = 'x' WHERE operation = 'trim_journal'"),
        "changed",
    ),
    "one inserted before the beginning": (lambda execute, at: insert(execute, 3), "inserted"),
}


@contextmanager
def tampering(path: Path) -> Iterator[Execute]:
    """Statements on the database file, by somebody else than the orchestrator; then undone."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)

    def execute(sql: str, params: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return connection.execute(sql, params).fetchall()

    try:
        execute("BEGIN IMMEDIATE")
        yield execute
        if connection.in_transaction:
            execute("ROLLBACK")
    finally:
        connection.close()


def possible(execute: Execute, tamper: Tamper, at: int) -> bool:
    """Do it; whether the database lets anybody do it, and anything is other than before."""
    before = execute("SELECT * FROM journal ORDER BY seq"), execute("SELECT * FROM ledger")
    try:
        tamper(execute, at)
        after = execute("SELECT * FROM journal ORDER BY seq"), execute("SELECT * FROM ledger")
    except apsw.ConstraintError:
        return False
    except UnicodeDecodeError:
        return True
    return before != after


def walked(execute: Execute, seq: int | None = None, head: bytes | None = None) -> JournalWalk:
    class Reading:
        def execute(self, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
            return execute(sql, tuple(params))

        def executemany(self, sql: str, rows: Any) -> None:
            raise AssertionError("a walk only reads")

    walk = JournalWalk(seq, head)
    while walk.step(Reading()):
        pass
    return walk


def fill(world: World, entries: int) -> None:
    """So many entries of several kinds, with something in each of their fields."""
    stranger = identity("stranger", ("user:bob", "admin"))
    for number in range(entries // 3):
        said: dict[str, Any] = {}
        if number % 3:
            said = {"agent": "a", "session": "s", "trace": "t", "key": f"k{number}", "task": "x"}
        adding = AddMemory(f"Fact number {number}", namespace="user:alice")
        memory_id = world(adding, **said)["memory_id"]
        world(UpdateMemory(memory_id, {"importance": 0.9}))
        if number % 2:
            with pytest.raises(Forbidden):
                world(Put("user:alice", "k", "intruder"), stranger)
        else:
            world(Put("user:alice", "k", f"Value {number}"))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, bytes]:
    """A database at rest with some hundreds of entries, and the head of its log."""
    data = tmp_path_factory.mktemp("audit") / "data"
    world = World("sqlite", data)
    try:
        fill(world, ENTRIES)
        world(Put("user:alice", "last", "of all"))
        verified = world(VerifyAudit())
    finally:
        world.close()
    assert verified["valid"] and verified["entries"] > ENTRIES
    return data / DATABASE_NAME, verified["seq"], bytes.fromhex(verified["head"])


def places(last: int) -> Iterator[int]:
    """Entries to lay hands on: near both ends, and then anywhere."""
    yield from (2, last - 45)
    yield from random.Random(counts.SEED).sample(range(3, last - 45), last - 48)


def test_an_untouched_log_fits_itself_and_its_head(stopped: tuple[Path, int, bytes]) -> None:
    path, seq, head = stopped
    with Trial("P22") as trial, tampering(path) as execute:
        for expected in ((None, None), (seq, head), (seq, None), (None, head)):
            trial.case()
            walk = walked(execute, *expected)
            trial.check(walk.misfit is None, f"{expected}: {walk.misfit}")
            assert (walk.seq, walk.head) == (seq, head)
        earlier = execute("SELECT seq, hash FROM journal WHERE seq % 20 = 0")
        for noted in [(0, journal.GENESIS), *earlier]:
            trial.case()
            trial.check(walked(execute, *noted).misfit is None, f"not from {noted[0]} on")


@pytest.mark.timeout(counts.timeout_s(120))
@pytest.mark.parametrize("name", TAMPERINGS)
def test_whatever_is_done_to_the_log_at_rest_is_noticed(
    stopped: tuple[Path, int, bytes], name: str
) -> None:
    path, seq, head = stopped
    tamper, kind = TAMPERINGS[name]
    tried = 0
    with Trial("P22") as trial:
        for at in places(seq):
            with tampering(path) as execute:
                if not possible(execute, tamper, at):
                    continue  # it was so before
                tried += 1
                for expected in ((None, None), (seq, head)):
                    trial.case()
                    misfit = walked(execute, *expected).misfit
                    if misfit is None:
                        trial.violated(f"{name} at {at} was not noticed")
                    elif misfit.kind != kind:
                        trial.violated(f"{name} at {at} was taken for: {misfit.text}")
            if tried >= counts.AUDIT_PLACES:
                break


@pytest.mark.parametrize("name", FORGERIES)
def test_a_log_forged_as_a_whole_is_noticed_by_the_head(
    stopped: tuple[Path, int, bytes], name: str
) -> None:
    path, seq, head = stopped
    tamper, kind = FORGERIES[name]
    with Trial("P22") as trial:
        for at in islice(places(seq), counts.AUDIT_PLACES):
            with tampering(path) as execute:
                assert possible(execute, tamper, at)
                trial.case()
                assert walked(execute).misfit is None, "the forgery is not one"
                misfit = walked(execute, seq, head).misfit
                if misfit is None:
                    trial.violated(f"{name} at {at} was not noticed")
                elif misfit.kind != kind:
                    trial.violated(f"{name} at {at} was taken for: {misfit.text}")


@pytest.fixture(scope="module")
def trimmed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, bytes]:
    """The same of a log whose first entries were trimmed."""
    data = tmp_path_factory.mktemp("trimmed") / "data"
    world = World("sqlite", data)
    try:
        fill(world, 60)
        world.clock.advance(30 * 86_400)
        fill(world, 60)
        assert world(TrimJournal(7.0))["removed"] > 40
        verified = world(VerifyAudit())
    finally:
        world.close()
    assert verified["valid"] and verified["trimmed_seq"] > 40
    return data / DATABASE_NAME, verified["seq"], bytes.fromhex(verified["head"])


@pytest.mark.parametrize("name", [*CUTS, "an entry deleted", "the tail cut", "one inserted"])
def test_a_cut_that_is_no_trimming_is_noticed(trimmed: tuple[Path, int, bytes], name: str) -> None:
    path, seq, head = trimmed
    tamper, kind = (CUTS | TAMPERINGS)[name]
    with Trial("P22") as trial:
        for at in (seq - 20, seq - 30):
            with tampering(path) as execute:
                assert walked(execute, seq, head).misfit is None
                if not possible(execute, tamper, at):
                    continue
                for expected in ((None, None), (seq, head)):
                    trial.case()
                    misfit = walked(execute, *expected).misfit
                    if misfit is None:
                        trial.violated(f"{name} was not noticed")
                    elif misfit.kind != kind:
                        trial.violated(f"{name} was taken for {misfit.kind}: {misfit.text}")


def test_a_log_is_watched_while_it_is_written(tmp_path: Path) -> None:
    """Tampering beside a running orchestrator, which goes on writing and then is asked."""
    chosen = [
        "an entry deleted",
        "neighbours exchanged",
        "exchanged but for their hashes",
        "subject made 'forged'",
        "task_id made 'forged'",
        "outcome made 'forged'",
        "detail made 'forged'",
        "one inserted in front",
        "the tail cut",
        "the last entry cut",
    ]
    cases = {name: TAMPERINGS[name] for name in chosen} | FORGERIES
    with OrchestratorProcess(tmp_path / "data") as process, process.client() as client:
        for number in range(100):
            client.set_task_id(f"task-{number % 7}" if number % 3 else None)
            client.add_memory(f"Fact number {number}", namespace="user:alice")
        path = process.data / DATABASE_NAME
        with Trial("P22") as trial:
            for name, (tamper, _) in cases.items():
                trial.case()
                before = client.verify_audit()
                assert before["valid"], before
                with tampering(path) as execute:
                    whole = execute("SELECT * FROM journal"), execute("SELECT * FROM ledger")
                    assert possible(execute, tamper, 20)
                    execute("COMMIT")
                noticed = client.verify_audit(
                    expected_seq=before["seq"], expected_head=before["head"]
                )
                trial.check(not noticed["valid"], f"{name} was not noticed while running")
                with tampering(path) as execute:
                    for table, rows in zip(("journal", "ledger"), whole, strict=True):
                        execute(f"DELETE FROM {table}")
                        for row in rows:
                            marks = ", ".join("?" for _ in row)
                            execute(f"INSERT INTO {table} VALUES ({marks})", row)
                    execute("COMMIT")
                client.add_memory(f"Written after {name}")
        assert client.verify_audit()["valid"]


@pytest.fixture
def postgres_world(tmp_path: Path) -> Iterator[World]:
    world = World(new_database(), tmp_path / "data")
    yield world
    world.close()


def test_the_same_is_noticed_on_postgresql(postgres_world: World) -> None:
    world = postgres_world

    def execute(sql: str) -> None:
        async def write() -> None:
            await world.storage.write(lambda transaction: transaction.execute(sql))

        world.run(write())

    ids = [world(AddMemory(f"Fact {n}"), task=f"t{n}")["memory_id"] for n in range(20)]
    for memory_id in ids:
        world(UpdateMemory(memory_id, {"importance": 0.1}))
    before = world(VerifyAudit())
    assert before["valid"], before
    cases = {
        "UPDATE journal SET subject = 'forged' WHERE seq = 7": "changed",
        "UPDATE journal SET task_id = 'forged' WHERE seq = 7": "changed",
        "UPDATE journal SET version_after = 9 WHERE seq = 30": "changed",
        "UPDATE journal SET detail = '' WHERE seq = 7": "changed",
        "DELETE FROM journal WHERE seq = 7": "deleted",
        "UPDATE journal SET seq = 1000 WHERE seq = 7": "reordered",
        "DELETE FROM journal WHERE seq > 35": "truncated",
        "INSERT INTO journal SELECT -5, at_us, identity, agent, operation, subject, namespace, "
        "version_before, version_after, session_id, trace, request_key, hash, task_id, outcome, "
        "detail FROM journal WHERE seq = 7": "inserted",
    }
    execute("CREATE TABLE kept AS SELECT * FROM journal")
    with Trial("P22") as trial:
        for sql, kind in cases.items():
            trial.case()
            execute(sql)
            noticed = world(VerifyAudit(expected_seq=before["seq"], expected_head=before["head"]))
            if noticed["problem_kind"] != kind:
                trial.violated(f"{sql}: {noticed}")
            execute("DELETE FROM journal")
            execute("INSERT INTO journal SELECT * FROM kept")
    assert world(VerifyAudit())["valid"]


@pytest.mark.parametrize("number", schema_dumps.numbers())
def test_a_log_of_every_released_schema_still_fits_and_goes_on(number: int, tmp_path: Path) -> None:
    path = schema_dumps.load(number, tmp_path / "data")
    with OrchestratorProcess(path.parent) as process, process.client() as client:
        before = client.verify_audit()
        assert before["valid"] and before["entries"] > 10
        client.set_task_id("after the upgrade")
        client.add_memory("Written by the new program")
        after = client.verify_audit(expected_seq=before["seq"], expected_head=before["head"])
        assert after["valid"] and after["entries"] == before["entries"] + 1


def test_a_log_longer_than_one_step_is_walked_in_several(tmp_path: Path) -> None:
    path = schema_dumps.load(schema_dumps.numbers()[-1], tmp_path / "data")
    session = SqliteSession(path, page_cache_mb=4, readonly=False)
    try:
        [(seq, head)] = session.execute(journal.READ_LEDGER)
        for _ in range(1_200):
            seq += 1
            change = Change(seq, seq, "local", None, "x", "y", None, None, None, None, None, None)
            head = journal.chain(head, change)
            row = (*(getattr(change, name) for name in journal.FIELDS), head)
            marks = ", ".join("?" for _ in row)
            session.execute(f"INSERT INTO journal ({journal.COLUMNS}) VALUES ({marks})", row)
        session.execute(journal.CLOSE_LEDGER, (seq, head))
        walk, steps = JournalWalk(), 1
        while walk.step(session):
            steps += 1
        assert (walk.misfit, walk.head, steps) == (None, head, 3)
        session.execute("DELETE FROM journal WHERE seq = 1001")
        walk = JournalWalk()
        while walk.step(session):
            pass
        assert walk.misfit is not None and (walk.misfit.kind, walk.misfit.seq) == ("deleted", 1001)
    finally:
        session.connection.close()
