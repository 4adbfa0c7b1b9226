"""The audit log: who did what, and whether the log is as it was written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.clock import Clock, parse_moment, to_iso
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.storage.interface import Row, Session, Storage
from recollect.orchestrator.storage.journal import COLUMNS, FIELDS
from recollect.orchestrator.storage.journal_walk import JournalWalk
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import DeadlineExceeded, InvalidArgument
from recollect.protocol.operations import AuditLog, VerifyAudit

FOUND = f"SELECT {COLUMNS} FROM journal WHERE {{condition}} ORDER BY seq DESC LIMIT ?"
"""For what an index finds: the entries of a subject, task or request, and the denied ones."""
BY_NUMBER = f"""
SELECT {COLUMNS} FROM journal WHERE seq < ? AND seq >= ? AND {{condition}}
ORDER BY seq DESC LIMIT ?
"""
BY_TIME = f"""
SELECT {COLUMNS} FROM journal
WHERE at_us <= ? AND (at_us, seq) < (?, ?) AND at_us >= ? AND (at_us, seq) >= (?, ?)
    AND {{condition}}
ORDER BY at_us DESC, seq DESC LIMIT ?
"""
TIME_MARK = """
SELECT at_us, seq FROM journal WHERE at_us <= ? AND (at_us, seq) < (?, ?) AND at_us >= ?
ORDER BY at_us DESC, seq DESC LIMIT 1 OFFSET ?
"""
ENDS = "SELECT seq, trimmed_seq FROM ledger WHERE id = 1"
INDEXED = ("subject", "task_id", "trace")
COMPARED = (*INDEXED, "identity", "agent", "operation")
STRETCH_ENTRIES = 20_000
STRETCHES_MAX = 10
"""So many stretches of the log are looked through in one call, if few entries fit."""
SEQ_MAX = (1 << 63) - 1
HEAD_BYTES = 32

Condition = tuple[str, list[Any]]


class Page(msgspec.Struct, frozen=True):
    """What one call has found, and where it stopped if there may be more."""

    rows: list[Row]
    end: list[int] | None


class AuditService:
    """Reads of the journal."""

    def __init__(
        self, storage: Storage, scoping: Scoping, validator: Validator, clock: Clock
    ) -> None:
        self._storage = storage
        self._scoping = scoping
        self._validator = validator
        self._clock = clock
        # A walk over the whole log takes a reader for long: one at a time.
        self._verifying = asyncio.Lock()

    @reads(AuditLog)
    async def audit_log(self, call: Call, operation: AuditLog) -> records.AuditListed:
        limit = self._validator.page(operation.limit)
        since_us = parse_moment("since", operation.since)
        until_us = parse_moment("until", operation.until)
        condition = self._condition(call, operation)
        indexed = any(getattr(operation, name) is not None for name in INDEXED)
        if indexed or operation.outcome == "denied":
            position = read_cursor(operation, operation.cursor, 1)
            before = position[0] if position else SEQ_MAX
            narrowed = _narrowed(condition, since_us, until_us, before)
            page = await self._storage.read(lambda session: _found(session, narrowed, limit))
        elif since_us is not None or until_us is not None:
            position = read_cursor(operation, operation.cursor, 2)
            start = position or [(until_us if until_us is not None else SEQ_MAX), -SEQ_MAX]
            lowest_us = since_us if since_us is not None else -SEQ_MAX
            page = await self._storage.read(
                lambda session: _by_time(session, condition, start, lowest_us, limit)
            )
        else:
            position = read_cursor(operation, operation.cursor, 1)
            start = position or [SEQ_MAX]
            page = await self._storage.read(
                lambda session: _by_number(session, condition, start[0], limit)
            )
        entries = [_entry(row) for row in page.rows]
        return {
            "status": "success",
            "entries": entries,
            "count": len(entries),
            "cursor": None if page.end is None else make_cursor(operation, page.end),
        }

    def _condition(self, call: Call, operation: AuditLog) -> Condition:
        """What of the log is asked for, and of that what the caller may see."""
        parts, params = ["TRUE"], list[Any]()
        # What belongs to no namespace fits none, and is left to those who may read everything.
        home = self._scoping.home(call, operation.namespace)
        if home is not None:
            parts.append(home[0])
            params += home[1]
        for name in COMPARED:
            value = getattr(operation, name)
            if value is not None:
                self._validator.asked(name, value, "key_chars_max")
                parts.append(f"{name} = ?")
                params.append(value)
        if operation.outcome is not None:
            parts.append("outcome IS NULL" if operation.outcome == "done" else "outcome = 'denied'")
        return " AND ".join(parts), params

    @reads(VerifyAudit)
    async def verify_audit(self, call: Call, operation: VerifyAudit) -> records.AuditVerified:
        walk = JournalWalk(operation.expected_seq, _head(operation.expected_head))
        async with self._verifying:
            while await self._storage.read(walk.step):
                if self._clock.now_us() >= call.deadline_us:
                    raise DeadlineExceeded(
                        f"The first {walk.entries:,} entries fit, but there was no time for the "
                        "rest: ask with a longer timeout.",
                        entries=walk.entries,
                    )
        misfit = walk.misfit
        return {
            "status": "success",
            "valid": misfit is None,
            "problem": None if misfit is None else misfit.text,
            "problem_kind": None if misfit is None else misfit.kind,
            "problem_seq": None if misfit is None else misfit.seq,
            "entries": walk.entries,
            "trimmed_seq": walk.trimmed_seq,
            "seq": walk.seq,
            "head": walk.head.hex(),
        }


def _head(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        head = bytes.fromhex(text)
    except ValueError:
        head = b""
    if len(head) != HEAD_BYTES:
        raise InvalidArgument(
            f"expected_head is not a hash: give the `head` of an earlier check, {2 * HEAD_BYTES} "
            "hexadecimal digits.",
            field="expected_head",
        )
    return head


def _narrowed(
    condition: Condition, since_us: int | None, until_us: int | None, before: int
) -> Condition:
    parts, params = [condition[0], "seq < ?"], [*condition[1], before]
    for sql, moment_us in (("at_us >= ?", since_us), ("at_us < ?", until_us)):
        if moment_us is not None:
            parts.append(sql)
            params.append(moment_us)
    return " AND ".join(parts), params


def _found(session: Session, condition: Condition, limit: int) -> Page:
    sql, params = condition
    rows = session.execute(FOUND.format(condition=sql), (*params, limit + 1))
    return _cut(rows, limit)


def _by_number(session: Session, condition: Condition, before: int, limit: int) -> Page:
    """From an entry on to the older ones, one stretch of numbers at a time."""
    sql, params = condition
    [(last, trimmed)] = session.execute(ENDS)
    high, rows = min(before, last + 1), list[Row]()
    for _ in range(STRETCHES_MAX):
        low = high - STRETCH_ENTRIES
        missing = limit + 1 - len(rows)
        rows += session.execute(BY_NUMBER.format(condition=sql), (high, low, *params, missing))
        if len(rows) > limit or low <= trimmed + 1:
            return _cut(rows, limit)
        high = low
    return Page(rows, [high])


def _by_time(
    session: Session, condition: Condition, start: list[int], lowest_us: int, limit: int
) -> Page:
    """From a moment on to the earlier ones, so many entries at a time."""
    sql, params = condition
    high, rows = tuple(start), list[Row]()
    for _ in range(STRETCHES_MAX):
        marks = session.execute(TIME_MARK, (high[0], *high, lowest_us, STRETCH_ENTRIES - 1))
        low = tuple(marks[0]) if marks else (lowest_us, -SEQ_MAX)
        missing = limit + 1 - len(rows)
        rows += session.execute(
            BY_TIME.format(condition=sql), (high[0], *high, low[0], *low, *params, missing)
        )
        if len(rows) > limit or not marks:
            return _cut(rows, limit, timed=True)
        high = low
    return Page(rows, list(high))


def _cut(rows: list[Row], limit: int, *, timed: bool = False) -> Page:
    """A page of the first so many; one more shows that there is another page."""
    if len(rows) <= limit:
        return Page(rows, None)
    seq, at_us = rows[limit - 1][0], rows[limit - 1][1]
    return Page(rows[:limit], [at_us, seq] if timed else [seq])


def _entry(row: Row) -> records.AuditEntry:
    entry: Any = dict(zip((*FIELDS, "hash"), row, strict=True))
    entry["at"], entry["hash"] = _shown(to_iso, entry["at_us"]), _shown(bytes.hex, entry["hash"])
    entry["outcome"] = entry["outcome"] or "done"
    shown: Any = {name: entry[name] for name in records.AuditEntry.__annotations__}
    return shown  # type: ignore[no-any-return]


def _shown(shape: Callable[[Any], str], value: Any) -> str:
    """A value for people; as it is, if somebody made of it what it cannot be."""
    try:
        return shape(value)
    except (TypeError, ValueError, OverflowError, OSError):
        return str(value)
