"""Runs and what they did, as they lie in their tables.

A run is written down before its first change and after its last; every change has an item in the
same transaction. So whatever happens in between, it is known what to take back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.orchestrator.access.grants import covers
from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.clock import to_iso, to_iso_or_none
from recollect.orchestrator.rows import decode_json, encode_json
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol import records
from recollect.protocol.errors import IdempotencyConflict, NotFound, Overloaded

RUNNING = "running"
UNDOING = "undoing"
DONE = "done"
UNDONE = "undone"
FAILED = "failed"

BUSY_RETRY_MS = 1_000


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
# Also the fence: a run that was given up and taken back meanwhile changes nothing more.
BEAT = "UPDATE runs SET beat_us = ? WHERE id = ? AND status = ? RETURNING id"
MOVE = """
UPDATE runs SET status = ?, beat_us = ?, ended_us = ?, report = ? WHERE id = ? AND status = ?
RETURNING id
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
    # One that failed has done nothing, and may be tried again.
    return None if run.status == FAILED else run


def begin(
    call: Call,
    transaction: WriteTransaction,
    run_id: str,
    *,
    namespace: str | None,
    places: list[str],
    payload_hash: bytes | None,
    now_us: int,
) -> None:
    """Enter a run that is about to change something in some places.

    The caller has seen to it that the same request has not begun one before.
    """
    assert places, "who may see a run is known by where it changes something"
    if call.key is not None:
        transaction.execute(RELEASE, (call.identity, call.key))
    for row in transaction.execute(UNFINISHED):
        if _overlap((other := Run(*row)).places, places):
            raise busy(call, other)
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
                )
            )
        ],
    )
    record(call, transaction, subject=run_id, namespace=namespace, detail="begun")


def beat(transaction: WriteTransaction, run_id: str, now_us: int, status: str = RUNNING) -> None:
    """Show that a run is at work; refuses to go on if somebody has taken it over."""
    if not transaction.execute(BEAT, (now_us, run_id, status)):
        raise Overloaded(
            f"The run {run_id} was taken for dead and taken back by another orchestrator; begin "
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
        MOVE, (status, now_us, ended_us, encode_json(report).decode(), run.id, run.status)
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
