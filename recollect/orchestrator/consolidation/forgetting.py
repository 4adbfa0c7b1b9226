"""What a source wrote, what it changed and what was made from that: found, to be taken back.

A version of a memory is tainted if the source wrote it, or if it came after one that is: what
others change later may rest on it. A version that only goes back to an earlier one is as good or as
bad as that. What a run did in somebody's name is not what they wrote.

A memory says which agent wrote it, and anybody may call an agent what they like. Who it was, by
their key, only the journal says: so that is looked through as well, with what is kept of it once it
is trimmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal

import msgspec

from recollect.orchestrator.calls import Call
from recollect.orchestrator.consolidation.lineage import made_from, stood_for
from recollect.orchestrator.consolidation.runs import RUN_KINDS
from recollect.orchestrator.memories.rows import (
    SELECT_BY_NUM,
    SELECT_BY_NUMS,
    MemoryRow,
    encode_json,
    with_snapshot,
)
from recollect.orchestrator.memories.typed_columns import columns_in, columns_of
from recollect.orchestrator.search.filters import Condition, namespace_condition
from recollect.orchestrator.search.scope import readable_condition
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.storage.journal import READ_LEDGER
from recollect.protocol.errors import LimitExceeded

FATES_MAX = 200_000
"""Memories that one run may take back; beyond, it is done namespace by namespace."""
NUMS_AT_ONCE = 500
ENTRIES_AT_ONCE = 20_000
"""Entries of the journal that one statement looks through."""
GOING_BACK = frozenset({"forget_source", "undo", "restore", "restore_by_key"})
TOLD = (
    "memory_type",
    "tier",
    "content",
    "value",
    "metadata",
    "tags",
    "importance",
    "source",
    "trust",
    "valid_from_us",
    "valid_to_us",
)
"""What comes back with a version, whoever goes back to it."""

WRITTEN = """
SELECT num FROM memories
WHERE num > ? AND (source = ? OR created_by = ? OR updated_by = ?) AND {where}
ORDER BY num LIMIT ?
"""
# A version that names the source somewhere; whether it does in the right place is seen then.
NAMED = """
SELECT DISTINCT v.num FROM versions v JOIN memories m ON m.num = v.num
WHERE v.num > ? AND (v.snapshot LIKE ? ESCAPE '!' OR v.snapshot LIKE ? ESCAPE '!') AND {where}
ORDER BY v.num LIMIT ?
"""
# What somebody wrote under another name; under their own, the memory or its versions say it.
UNDER_ANOTHER_NAME = """
SELECT DISTINCT m.num FROM journal j JOIN memories m ON m.id = j.subject
WHERE j.seq > ? AND j.seq <= ? AND j.identity = ? AND j.agent <> j.identity
    AND j.version_after IS NOT NULL AND {where}
"""
# The same of what was trimmed from the journal.
UNDER_ANOTHER_NAME_ONCE = """
SELECT DISTINCT m.num FROM trimmed_writers w JOIN memories m ON m.num = w.num
WHERE w.num > ? AND w.identity = ? AND {where}
ORDER BY m.num LIMIT ?
"""
# What leaves the version as it is, as a reinforcement does, wrote nothing.
WRITTEN_BY = """
SELECT version_after FROM journal
WHERE subject = ? AND identity = ? AND version_after IS NOT NULL
    AND (version_before IS NULL OR version_before <> version_after)
"""
WRITTEN_BY_ONCE = "SELECT version FROM trimmed_writers WHERE num = ? AND identity = ?"
VERSIONS = "SELECT snapshot FROM versions WHERE num = ? ORDER BY version"
CHILDREN = """
SELECT num, version, namespace FROM memories
WHERE deleted_us IS NULL AND parent_id IN (SELECT id FROM memories WHERE num IN ({marks}))
"""

Action = Literal["detached", "deleted", "derived", "reverted", "revived"]
ORDER: tuple[Action, ...] = ("detached", "deleted", "derived", "reverted", "revived")


class Fate(msgspec.Struct, frozen=True):
    """What is to become of a memory."""

    num: int
    action: Action
    version: int
    """In which it was seen."""
    namespace: str
    target: int | None = None
    """The version that it goes back to."""
    tainted_us: int = 0
    """Since when; what was made from it before is none of the source's."""


def fates_of(session: Session, call: Call, source: str, namespace: str | None) -> list[Fate]:
    """All that is to be done to take a source back, in what the caller may write."""
    fates: dict[int, Fate] = {}
    for nums in _candidates(session, call, source, namespace):
        for num in nums:
            if num not in fates and (fate := _fate(session, num, source)) is not None:
                fates[num] = fate
                _check_count(fates)
    _add_derived(session, call, fates)
    _add_revived(session, call, fates)
    _add_detached(session, call, fates)
    return sorted(fates.values(), key=lambda fate: (ORDER.index(fate.action), fate.num))


def _candidates(session: Session, call: Call, source: str, namespace: str | None) -> Any:
    sql, params = _writable(call, namespace)
    written = WRITTEN.format(where=sql)
    yield from _pages(session, written, (source, source, source), params)
    sql, params = _writable(call, namespace, "m.namespace")
    quoted = _pattern(encode_json(source).decode())
    patterns = (f'%"updated!_by":{quoted}%', f'%"source":{quoted}%')
    yield from _pages(session, NAMED.format(where=sql), patterns, params)
    by_identity = UNDER_ANOTHER_NAME.format(where=sql)
    [(last_seq, _)] = session.execute(READ_LEDGER)
    for seq in range(0, last_seq, ENTRIES_AT_ONCE):
        found = session.execute(by_identity, (seq, seq + ENTRIES_AT_ONCE, source, *params))
        yield [num for (num,) in found]
    yield from _pages(session, UNDER_ANOTHER_NAME_ONCE.format(where=sql), (source,), params)


def _pages(session: Session, sql: str, given: Sequence[Any], params: Sequence[Any]) -> Any:
    last = 0
    while True:
        found = session.execute(sql, (last, *given, *params, NUMS_AT_ONCE))
        yield [num for (num,) in found]
        if len(found) < NUMS_AT_ONCE:
            return
        last = found[-1][0]


def _writable(call: Call, namespace: str | None, column: str = "namespace") -> Condition:
    patterns = call.grants.within(namespace, "write")
    if patterns is None:
        return ("TRUE", []) if namespace is None else namespace_condition(namespace, column)
    return readable_condition(patterns, column)


def _pattern(text: str) -> str:
    """A text in which LIKE finds nothing special."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _fate(session: Session, num: int, source: str) -> Fate | None:
    found = session.execute(SELECT_BY_NUM, (num,))
    if not found:
        return None
    row = MemoryRow(*found[0])
    snapshots = [snapshot for (snapshot,) in session.execute(VERSIONS, (num,))]
    states = [with_snapshot(row, snapshot) for snapshot in snapshots]
    columns = [columns_in(snapshot) for snapshot in snapshots]
    wrote = {version for (version,) in session.execute(WRITTEN_BY, (row.id, source))}
    wrote |= {version for (version,) in session.execute(WRITTEN_BY_ONCE, (num, source))}
    return fate_among([*states, row], source, wrote, [*columns, columns_of(session, row)])


def fate_among(
    states: Sequence[MemoryRow],
    source: str,
    wrote: AbstractSet[int] = frozenset(),
    columns: Sequence[dict[str, Any] | None] = (),
) -> Fate | None:
    """What is to become of a memory with these versions, the present one last; None if nothing.

    `wrote` are the versions that came with the source's key, under whatever name; `columns` are
    those of each version, if it has such.
    """
    by_source = [_by(states, at, source, wrote) for at in range(len(states))]
    origins = _origins(states, columns)
    tainted = _tainted(states, by_source, origins)
    row = states[-1]
    if not tainted[-1]:
        return None
    # What others have deleted since is gone already.
    if row.deleted_us is not None and not by_source[origins[-1]]:
        return None
    first = len(states) - 1
    while first > 0 and tainted[first - 1]:
        first -= 1
    since_us = next(s.updated_us for s, bad in zip(states, tainted, strict=True) if bad)
    if first == 0:
        if row.deleted_us is not None:
            return None
        return Fate(row.num, "deleted", row.version, row.namespace)
    target = states[first - 1].version
    return Fate(row.num, "reverted", row.version, row.namespace, target, since_us)


def _tainted(
    states: Sequence[MemoryRow], by_source: Sequence[bool], origins: Sequence[int]
) -> list[bool]:
    tainted: list[bool] = []
    for at, state in enumerate(states):
        if by_source[at]:
            tainted.append(True)
        elif at == 0:
            tainted.append(False)
        elif state.operation in GOING_BACK:
            tainted.append(tainted[origins[at]])
        else:
            tainted.append(tainted[-1])
    return tainted


def _origins(states: Sequence[MemoryRow], columns: Sequence[dict[str, Any] | None]) -> list[int]:
    """The version that each goes back to: itself if it does not; if to none, that before it."""
    told = [(_told(state), columns[at] if columns else None) for at, state in enumerate(states)]
    origins = list(range(len(states)))
    for at, state in enumerate(states):
        if at and state.operation in GOING_BACK:
            origins[at] = min(told.index(told[at]), at - 1)
    return origins


def _by(states: Sequence[MemoryRow], at: int, source: str, wrote: AbstractSet[int]) -> bool:
    """Whether the source wrote a version itself."""
    state = states[at]
    if state.operation in RUN_KINDS:
        return False
    if state.operation not in GOING_BACK and (state.updated_by == source or state.version in wrote):
        return True
    return state.source == source and (at == 0 or states[at - 1].source != source)


def _told(state: MemoryRow) -> tuple[Any, ...]:
    there = (state.archived_us is None, state.deleted_us is None)
    return (*(getattr(state, name) for name in TOLD), *there)


def _add_derived(session: Session, call: Call, fates: dict[int, Fate]) -> None:
    """What was made from what is taken back, and what was made from that."""
    frontier = list(fates)
    while frontier:
        links = made_from(session, frontier)
        fresh = {
            num
            for num, target, since_us in links
            if num not in fates and since_us >= fates[target].tainted_us
        }
        frontier = []
        for row in _rows(session, call, sorted(fresh)):
            if row.deleted_us is None:
                fates[row.num] = Fate(row.num, "derived", row.version, row.namespace)
                frontier.append(row.num)
        _check_count(fates)


def _add_revived(session: Session, call: Call, fates: dict[int, Fate]) -> None:
    """What was archived for what is taken back."""
    for num, before, after in stood_for(session, list(fates)):
        if num not in fates:
            for row in _rows(session, call, [num]):
                fates[num] = Fate(num, "revived", after, row.namespace, before)
    _check_count(fates)


def _add_detached(session: Session, call: Call, fates: dict[int, Fate]) -> None:
    """What hangs below what will be gone, and stays."""
    gone = [fate.num for fate in fates.values() if fate.action in ("deleted", "derived")]
    for start in range(0, len(gone), NUMS_AT_ONCE):
        part = gone[start : start + NUMS_AT_ONCE]
        marks = ", ".join("?" for _ in part)
        for num, version, namespace in session.execute(CHILDREN.format(marks=marks), part):
            if num not in fates and call.grants.allows(namespace, "write"):
                fates[num] = Fate(num, "detached", version, namespace)
    _check_count(fates)


def _rows(session: Session, call: Call, nums: Sequence[int]) -> list[MemoryRow]:
    """Those of some memories that the caller may write."""
    rows: list[MemoryRow] = []
    for start in range(0, len(nums), NUMS_AT_ONCE):
        part = nums[start : start + NUMS_AT_ONCE]
        sql = SELECT_BY_NUMS.format(marks=", ".join("?" for _ in part))
        rows += [MemoryRow(*row) for row in session.execute(sql, part)]
    return [row for row in rows if call.grants.allows(row.namespace, "write")]


def _check_count(fates: dict[int, Fate]) -> None:
    if len(fates) > FATES_MAX:
        raise LimitExceeded(
            f"More than {FATES_MAX:,} memories would be taken back at once: name a namespace, and "
            "do it one by one.",
            limit="memories of a run",
            maximum=FATES_MAX,
        )
