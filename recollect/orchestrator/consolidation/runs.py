"""Runs and what they did, as they lie in their tables.

A run is written down before its first change and after its last; every change has an item in the
same transaction. So whatever happens in between, it is known what to take back, or where to go on.
"""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.orchestrator.access.grants import covers
from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.clock import to_iso, to_iso_or_none
from recollect.orchestrator.memories.rows import decode_json, encode_json
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol import records
from recollect.protocol.errors import IdempotencyConflict, NotFound, Overloaded
from recollect.protocol.operations import Consolidate, FadeMemories, ForgetSource, Migrate, Undo

RUNNING = "running"
UNDOING = "undoing"
DONE = "done"
UNDONE = "undone"
FAILED = "failed"
INTERRUPTED = "interrupted"
"""Broken off, and to be gone on with: what it did is done, and can be undone."""

BUSY_RETRY_MS = 1_000
RUN_KINDS = frozenset(
    kind.spec.name for kind in (Consolidate, FadeMemories, ForgetSource, Migrate, Undo)
)
"""What changes memories by rule, in whoever's name: nobody wrote the versions that it makes."""


class Run(msgspec.Struct, frozen=True):
    """One row of `runs`, in the order of its columns."""

    id: str
    kind: str
    namespace: str | None
    status: str
    started_us: int
    beat_us: int
    ended_us: int | None
    started_by: str | None
    namespaces: str
    identity: str
    request_key: str | None
    payload_hash: bytes | None
    report: str
    scope: str | None = None
    """What it is about, for a kind of run that is gone on with when it was broken off by the next
    that is about the same; without one, it is taken back."""
    resumed: int = 0
    """How often it was gone on with: whoever began it before that is no longer at it."""

    @property
    def places(self) -> list[str]:
        """Where its changes are; there is no run without any."""
        return self.namespaces.splitlines()

    @property
    def told(self) -> dict[str, Any]:
        """Its report."""
        told: dict[str, Any] = decode_json(self.report)
        return told


class Item(msgspec.Struct, frozen=True):
    """What a run did to one memory."""

    position: int
    num: int
    action: str
    version_before: int | None
    version_after: int


COLUMNS = ", ".join(Run.__struct_fields__)
INSERT_RUN = Insert("runs", Run.__struct_fields__)
INSERT_ITEM = Insert(
    "run_items",
    ("run_id", "position", "num", "action", "version_before", "version_after", "undone"),
)
BY_ID = f"SELECT {COLUMNS} FROM runs WHERE id = ?"
BY_REQUEST = f"SELECT {COLUMNS} FROM runs WHERE identity = ? AND request_key = ?"
UNFINISHED = f"SELECT {COLUMNS} FROM runs WHERE status IN ('running', 'undoing')"
# Also the fence: a run that was given up and taken back or taken over meanwhile changes nothing
# more in these hands.
BEAT = "UPDATE runs SET beat_us = ? WHERE id = ? AND status = ? AND resumed = ? RETURNING id"
MOVE = """
UPDATE runs SET status = ?, beat_us = ?, ended_us = ?, report = ?
WHERE id = ? AND status = ? AND resumed = ?
RETURNING id
"""
BROKEN_OFF = f"""
SELECT {COLUMNS} FROM runs WHERE status = 'interrupted' AND identity = ? AND kind = ? AND scope = ?
ORDER BY started_us, id LIMIT 1
"""
RESUME = """
UPDATE runs SET status = 'running', beat_us = ?, ended_us = NULL, namespaces = ?, request_key = ?,
    payload_hash = ?, resumed = resumed + 1
WHERE id = ? AND status = 'interrupted' AND resumed = ?
"""
LAST_POSITION = "SELECT coalesce(max(position), 0) FROM run_items WHERE run_id = ?"
COUNTED = """
SELECT action, count(*) FROM run_items WHERE run_id = ? AND undone = 0 GROUP BY action
"""
RELEASE = "UPDATE runs SET request_key = NULL WHERE identity = ? AND request_key = ?"
# What is passed over is only counted, so it is read from the index alone.
PAGE = f"""
SELECT {COLUMNS} FROM runs WHERE id IN (
    SELECT id FROM runs
    WHERE started_us <= ? AND (started_us, id) < (?, ?) AND {{condition}}
    ORDER BY started_us DESC, id DESC LIMIT ? OFFSET ?
)
ORDER BY started_us DESC, id DESC
"""


def found_by_request(session: Session, call: Call, payload_hash: bytes | None) -> Run | None:
    """The run that the same request began before, if it did and may still be told of it."""
    if call.key is None:
        return None
    found = session.execute(BY_REQUEST, (call.identity, call.key))
    if not found:
        return None
    run = Run(*found[0])
    if run.payload_hash is None or bytes(run.payload_hash) != payload_hash:
        raise IdempotencyConflict(
            f"The idempotency key {call.key!r} was used before with another operation or payload; "
            "use a new key for a new write.",
            key=call.key,
            operation=run.kind,
        )
    for place in run.places:
        call.require(place, call.key)
    if run.status in (RUNNING, UNDOING):
        raise busy(call, run)
    # One that failed has done nothing, and may be tried again; an interrupted one is gone on with.
    return None if run.status in (FAILED, INTERRUPTED) else run


def begin(
    call: Call,
    transaction: WriteTransaction,
    run_id: str,
    *,
    namespace: str | None,
    places: list[str],
    payload_hash: bytes | None,
    now_us: int,
    scope: str | None = None,
) -> None:
    """Enter a run that is about to change something in some places.

    The caller has seen to it that the same request has not begun one before.
    """
    _make_way(call, transaction, places)
    transaction.insert(
        INSERT_RUN,
        [
            msgspec.structs.astuple(
                Run(
                    id=run_id,
                    kind=call.operation,
                    namespace=namespace,
                    status=RUNNING,
                    started_us=now_us,
                    beat_us=now_us,
                    ended_us=None,
                    started_by=call.author,
                    namespaces="\n".join(places),
                    identity=call.identity,
                    request_key=call.key,
                    payload_hash=payload_hash,
                    report="{}",
                    scope=scope,
                )
            )
        ],
    )
    record(call, transaction, subject=run_id, namespace=namespace, detail="begun")


def _make_way(call: Call, transaction: WriteTransaction, places: list[str]) -> None:
    """Free the key of a request from what failed, and refuse to begin where a run is at work."""
    assert places, "who may see a run is known by where it changes something"
    if call.key is not None:
        transaction.execute(RELEASE, (call.identity, call.key))
    for row in transaction.execute(UNFINISHED):
        if _overlap((other := Run(*row)).places, places):
            raise busy(call, other)


def broken_off(session: Session, call: Call, scope: str) -> Run | None:
    """The caller's own run about the same that was broken off, if they may still go on with it."""
    found = session.execute(BROKEN_OFF, (call.identity, call.operation, scope))
    if not found:
        return None
    run = Run(*found[0])
    return run if all(call.grants.allows(place, call.access) for place in run.places) else None


def resume(
    call: Call,
    transaction: WriteTransaction,
    run: Run,
    *,
    places: list[str],
    payload_hash: bytes | None,
    now_us: int,
) -> None:
    """Take up a run that was broken off, as what the present request does."""
    places = sorted({*run.places, *places})
    _make_way(call, transaction, places)
    where = "\n".join(places)
    transaction.execute(RESUME, (now_us, where, call.key, payload_hash, run.id, run.resumed))
    record(call, transaction, subject=run.id, namespace=run.namespace, detail="resumed")


def last_position(session: Session, run_id: str) -> int:
    """How many items a run has."""
    [(position,)] = session.execute(LAST_POSITION, (run_id,))
    return int(position)


def counted(session: Session, run_id: str) -> dict[str, int]:
    """How often a run did what."""
    return {action: count for action, count in session.execute(COUNTED, (run_id,))}


def beat(
    transaction: WriteTransaction,
    run_id: str,
    now_us: int,
    status: str = RUNNING,
    resumed: int = 0,
) -> None:
    """Show that a run is at work; refuses to go on if somebody has taken it over."""
    if not transaction.execute(BEAT, (now_us, run_id, status, resumed)):
        raise Overloaded(
            f"The run {run_id} was taken for dead and taken over by another orchestrator; begin "
            "it anew.",
            run_id=run_id,
            retry_after_ms=BUSY_RETRY_MS,
        )


def enter(transaction: WriteTransaction, run_id: str, items: list[Item]) -> None:
    """Note what was done."""
    transaction.insert(
        INSERT_ITEM,
        [
            (run_id, i.position, i.num, i.action, i.version_before, i.version_after, 0)
            for i in items
        ],
    )


def move(
    call: Call,
    transaction: WriteTransaction,
    run: Run,
    status: str,
    report: dict[str, Any],
    *,
    now_us: int,
    ended_us: int | None,
) -> int | None:
    """Give a run another status; None if it has one already that it was not expected to have."""
    moved = transaction.execute(
        MOVE,
        (status, now_us, ended_us, encode_json(report).decode(), run.id, run.status, run.resumed),
    )
    if not moved:
        return None
    return record(call, transaction, subject=run.id, namespace=run.namespace, detail=status)


def find(call: Call, session: Session, run_id: str, *, changes: bool = False) -> Run:
    """A run that the caller may see and, if it is to be changed, may change in all its places."""
    found = session.execute(BY_ID, (run_id,))
    run = Run(*found[0]) if found else None
    if run is None or not all(call.sees(place, run_id) for place in run.places):
        raise NotFound(f"There is no run {run_id!r}.", run_id=run_id)
    if changes:
        for place in run.places:
            call.require(place, run_id)
    return run


def readable(call: Call, run: Run) -> bool:
    """Whether a caller may be told of a run."""
    return all(call.grants.allows(place, "read") for place in run.places)


def record_of(run: Run) -> records.RunRecord:
    """A run as callers see it."""
    return {
        "run_id": run.id,
        "kind": run.kind,
        "namespace": run.namespace,
        "run_status": RUNNING if run.status == UNDOING else run.status,
        "started_at": to_iso(run.started_us),
        "ended_at": to_iso_or_none(run.ended_us),
        "started_by": run.started_by,
        "report": run.told,
    }


def _overlap(some: list[str], others: list[str]) -> bool:
    return any(covers(one, other) or covers(other, one) for one in some for other in others)


def busy(call: Call, run: Run) -> Overloaded:
    """Why one run waits for another; for which, only if the caller may know of it."""
    if not readable(call, run):
        return Overloaded(
            "Another run is at work there; try again shortly.", retry_after_ms=BUSY_RETRY_MS
        )
    return Overloaded(
        f"The run {run.id} is at work there; try again shortly.",
        run_id=run.id,
        retry_after_ms=BUSY_RETRY_MS,
    )
