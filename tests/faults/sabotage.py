"""Builds that are broken on purpose, each in one place, so that a promise no longer holds.

What ships has no switch for any of this. A sabotage puts something else in the place of one
function or value, in the process of a test or, named by a variable, in the processes that the test
starts, before they begin.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

Put = Callable[[Any, str, Any], None]
Sabotage = Callable[[Put], None]

VARIABLE = "SABOTAGE"
BEGIN = f"{__name__}:begin"
EARLY_S = 0.05


def begin() -> None:
    """To be called in a process before anything else: what the variable names is done to it."""
    SABOTAGES[os.environ[VARIABLE]](setattr)


def acknowledge_before_commit(put: Put) -> None:
    """Who writes is answered while the commit is still to come."""
    from recollect.orchestrator.storage.group_commit import GroupCommitWriter
    from recollect.orchestrator.storage.sqlite.session import SqliteSession

    write, commit = GroupCommitWriter._write, SqliteSession.commit

    def writing(self: Any, batch: Any) -> None:
        self._session.answer = lambda: self._settle_on_loop(batch, [])
        write(self, batch)

    def committing(self: Any) -> None:
        if (answer := getattr(self, "answer", None)) is not None:
            answer()
            time.sleep(EARLY_S)
        commit(self)

    put(GroupCommitWriter, "_write", writing)
    put(SqliteSession, "commit", committing)


def do_not_sync(put: Put) -> None:
    """A commit is left to the system to write when it likes."""
    from recollect.orchestrator.storage.sqlite.session import SqliteSession

    made = SqliteSession.__init__

    def making(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self.connection.pragma("synchronous", "off")

    put(SqliteSession, "__init__", making)


def keep_no_answers(put: Put) -> None:
    """Nothing is known of the keys of earlier writes."""
    from recollect.orchestrator.serving.idempotency import Once

    made = Once.__init__

    def making(self: Any, *args: Any) -> None:
        made(self, *args)
        self.mark = None

    put(Once, "__init__", making)


def cache_without_versions(put: Put) -> None:
    """What is at hand stays there when it is changed."""
    from recollect.orchestrator.cache.local import LocalCache

    put(LocalCache, "drop", lambda self, key: None)


def filter_after_the_best(put: Put) -> None:
    """The k nearest of all are taken, and then those of the scope among them."""
    from recollect.orchestrator.search import nearest

    def find(self: Any, session: Any, index: Any, vector: Any, k: int, scope: Any) -> Any:
        hits = index.seen_by(session).search(vector, k, None)
        fitting = nearest.among(session, [num for num, _ in hits], scope.condition)
        return [(num, score) for num, score in hits if num in fitting]

    put(nearest.NearestInProcess, "find", find)


def trust_redis(put: Put) -> None:
    """Without Redis nothing is taken."""
    from recollect.orchestrator.operational.redis import RedisMemory
    from recollect.protocol.errors import StorageFailed

    push = RedisMemory.push

    def pushing(self: Any, event: Any) -> Any:
        if self.degraded():
            raise StorageFailed("Redis does not answer.")
        return push(self, event)

    put(RedisMemory, "push", pushing)


def believe_segments(put: Put) -> None:
    """The files of a segment are taken as they are, and not compared with what is stored."""
    from recollect.orchestrator.search.vectors import snapshots
    from recollect.orchestrator.vectors import faiss_indexes

    class Whatever:
        def __eq__(self, other: object) -> bool:
            return True

        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = None  # type: ignore[assignment]

    def believed(path: Path) -> Any:
        path.stat()
        return Whatever()

    def manifest(path: Path) -> Any:
        body, _, _ = path.read_bytes().rpartition(b"\n")
        return msgspec.json.decode(body, type=snapshots.Manifest)

    made = snapshots.Draft.finish

    def finished(self: Any, *args: Any) -> Any:
        put(snapshots, "_facts", facts)
        try:
            return made(self, *args)
        finally:
            put(snapshots, "_facts", believed)

    facts = snapshots._facts
    put(snapshots, "_facts", believed)
    put(snapshots, "_read_manifest", manifest)
    put(faiss_indexes, "_agrees", lambda table, meaning, nums, seqs, session: True)
    put(snapshots.Draft, "finish", finished)


def call_a_full_disk_something_else(put: Put) -> None:
    """Whoever writes to a full disk is told of a defect."""
    from recollect.orchestrator.storage.sqlite import session
    from recollect.protocol.errors import StorageFailed

    put(session, "StorageFull", StorageFailed)


def serve_what_is_there(put: Put) -> None:
    """A database is opened without a look at it."""
    from recollect.orchestrator.storage.sqlite import damage, storage

    put(damage.DamageCheck, "run", lambda self, connection: None)
    put(storage, "refuse_lost", lambda path: None)


def keep_all_answers(put: Put) -> None:
    """There is no bound to what is kept for those who do not take it."""
    from recollect.orchestrator.serving.server import Server

    kept: list[bytes] = []
    send = Server._send

    def sending(self: Any, envelope: Any, reply: bytes) -> None:
        kept.append(bytes(bytearray(reply)))
        send(self, envelope, reply)

    put(Server, "_send", sending)


def believe_what_comes(put: Put) -> None:
    """What a request says is taken as it is said."""
    from recollect.orchestrator.serving import dispatch
    from recollect.protocol.operations import REGISTRY

    def read(decode: Any, request: Any) -> Any:
        given = msgspec.msgpack.decode(request.body)
        operation = REGISTRY[request.op]
        return operation(**given)

    put(dispatch, "read_operation", read)


def have_no_limits(put: Put) -> None:
    """Sizes are not looked at."""
    from recollect.orchestrator.validation import Validator

    put(Validator, "at_most", lambda self, name, field, size, what: None)


def follow_the_wall_clock(put: Put) -> None:
    """Whatever the wall clock says is so."""
    from recollect.orchestrator import clock

    put(clock, "JUMP_NS", 1 << 62)
    put(clock, "SLEW_NS", 1 << 62)


def know_everybody(put: Put) -> None:
    """Any key is that of the machine itself."""
    from recollect.orchestrator.access.identities import LOCAL
    from recollect.orchestrator.access.keyring import Keyring

    known = Keyring.identity
    put(Keyring, "identity", lambda self, credential: known(self, credential) or LOCAL)


def search_everywhere(put: Put) -> None:
    """Where somebody may read is not asked where several places are read at once."""
    from recollect.orchestrator.access.grants import Grants

    put(Grants, "within", lambda self, namespace, level="read": None)


def let_all_probe(put: Put) -> None:
    """Each call is the one that may probe."""
    from recollect.client.breaker import CircuitGuard

    probe = CircuitGuard._probe

    def probing(self: Any) -> Any:
        self._live = None
        return probe(self)

    put(CircuitGuard, "_probe", probing)


def stay_away(put: Put) -> None:
    """A client that has lost its line takes its time."""
    from recollect.client import sockets

    put(sockets, "RECONNECT_IVL_MS", 60_000)
    put(sockets, "RECONNECT_IVL_MS_MAX", 60_000)


def do_not_compare_tokens(put: Put) -> None:
    """Whose lease it is by now is not asked in the write."""
    from recollect.orchestrator.serving import dispatch, idempotency

    put(idempotency, "check_fence", lambda call, session: None)
    if hasattr(dispatch, "check_fence"):
        put(dispatch, "check_fence", lambda call, session: None)


def back_up_what_was(put: Put) -> None:
    """A backup lacks what was written last."""
    import apsw

    from recollect.orchestrator.storage import copies
    from recollect.orchestrator.storage.sqlite import storage
    from recollect.orchestrator.storage.sqlite.copies import back_up

    def backing_up(database: Path, folder: Path) -> dict[str, Any]:
        back_up(database, folder)
        copied = folder / copies.DATABASE_NAME
        connection = apsw.Connection(str(copied))
        connection.execute("DELETE FROM memories WHERE num > (SELECT max(num) - 50 FROM memories)")
        connection.close()
        manifest = msgspec.structs.replace(
            copies.read_manifest(folder),
            bytes=copied.stat().st_size,
            sha256=hashlib.sha256(copied.read_bytes()).hexdigest(),
        )
        return copies.write_manifest(folder, manifest)

    put(storage, "back_up", backing_up)


def migrate_statement_by_statement(put: Put) -> None:
    """An upgrade is no transaction."""
    from recollect.orchestrator.storage import migrations
    from recollect.orchestrator.storage.sqlite import storage

    def apply(session: Any, folder: Path) -> int:
        return migrations.migrate(session, folder)[1]

    put(storage, "apply_migrations", apply)


def stop_at_once(put: Put) -> None:
    """SIGTERM ends it, whoever waits."""
    from recollect.orchestrator.running.lifecycle import Orchestrator

    async def stop(self: Any) -> bool:
        os._exit(0)

    put(Orchestrator, "stop", stop)


def leave_the_words(put: Put) -> None:
    """What is purged stays in the full text until something else takes its place."""
    from recollect.orchestrator.memories.scrubbing import Scrubbing
    from recollect.orchestrator.storage.sqlite.storage import SqliteStorage

    async def nothing(self: Any) -> None:
        return None

    put(Scrubbing, "_expunge_words", nothing)
    put(SqliteStorage, "_scrub", lambda self: True)


def chain_nothing(put: Put) -> None:
    """The hash of an entry says nothing of the entry."""
    from recollect.orchestrator.storage import journal, journal_walk

    def chain(head: bytes, change: Any) -> bytes:
        return bytes(32)

    put(journal, "_chain", chain)
    put(journal_walk, "chain", chain)


def forget_no_summaries(put: Put) -> None:
    """What was made from what is taken back stays."""
    from recollect.orchestrator.consolidation import forgetting

    put(forgetting, "_add_derived", lambda session, call, fates: None)


def answer_to_any_name(put: Put) -> None:
    """Whatever a browser calls it, it is meant."""
    from recollect.web.hosts import Hosts

    put(Hosts, "is_ours", lambda self, authority: True)


def undo_half(put: Put) -> None:
    """Undoing leaves out every other thing."""
    from recollect.orchestrator.consolidation.undoing import Undoing

    undo = Undoing._undo_item

    def undoing(self: Any, call: Any, item: Any, *rest: Any) -> bool:
        return bool(item.position % 2) or undo(self, call, item, *rest)

    put(Undoing, "_undo_item", undoing)


SABOTAGES: dict[str, Sabotage] = {
    sabotage.__name__: sabotage
    for sabotage in (
        acknowledge_before_commit,
        do_not_sync,
        keep_no_answers,
        cache_without_versions,
        filter_after_the_best,
        trust_redis,
        believe_segments,
        call_a_full_disk_something_else,
        serve_what_is_there,
        keep_all_answers,
        believe_what_comes,
        have_no_limits,
        follow_the_wall_clock,
        know_everybody,
        search_everywhere,
        let_all_probe,
        stay_away,
        do_not_compare_tokens,
        back_up_what_was,
        migrate_statement_by_statement,
        stop_at_once,
        leave_the_words,
        chain_nothing,
        forget_no_summaries,
        answer_to_any_name,
        undo_half,
    )
}
