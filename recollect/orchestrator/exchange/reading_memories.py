"""Memories on their way out: each with its typed columns and all its versions.

A memory and its versions are read in one transaction, so that none is torn by a change. Only a
history that does not fit into a page goes on in the next; what has become of the memory since is
then left out of it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.orchestrator.exchange import tables
from recollect.orchestrator.exchange.pages import Extent, Page
from recollect.orchestrator.exchange.positions import Position
from recollect.orchestrator.memories import rows, typed_columns
from recollect.orchestrator.memories.rows import MemoryRow, decode_json
from recollect.orchestrator.storage.interface import Row, Session

ROWS_AT_ONCE = 64
VERSIONS_AT_ONCE = 64
MEMORIES = f"""
SELECT {rows.COLUMNS} FROM memories
WHERE num > ? AND num <= ? AND {{condition}} ORDER BY num LIMIT ?
"""
VERSIONS = """
SELECT version, superseded_us, snapshot FROM versions
WHERE num = ? AND version > ? AND version < ? ORDER BY version LIMIT ?
"""
WHOSE = "SELECT id, collection FROM memories WHERE num = ?"
# What is made anew in another store, or told in another way.
_OWN = frozenset({"num", "seq", "value", "metadata", "tags"})
_JSON = ("value", "metadata", "tags")


def read_memories(session: Session, extent: Extent, at: Position, page: Page) -> Position | None:
    """Fill a page with memories; where it ended, or None behind the last."""
    if at.bound:
        at = _go_on(session, extent, at, page)
    condition, params = extent.condition()
    sql = MEMORIES.format(condition=condition)
    while not page.full:
        most = page.rows(ROWS_AT_ONCE)
        found = session.execute(sql, (at.number, at.until, *params, most))
        memories = [MemoryRow(*row) for row in found]
        told = _columns_of(session, memories)
        for row in memories:
            at = _add(session, extent, row, told.get(row.num), at, page)
            if page.full:
                return at
        if len(memories) < most:
            return None
    return at


def _columns_of(session: Session, memories: list[MemoryRow]) -> dict[int, tables.Stored]:
    told: dict[int, tables.Stored] = {}
    for table in {row.collection for row in memories} & tables.COLUMNS.keys():
        told |= tables.read(session, table, [r.num for r in memories if r.collection == table])
    return told


def _add(
    session: Session,
    extent: Extent,
    row: MemoryRow,
    columns: tables.Stored | None,
    at: Position,
    page: Page,
) -> Position:
    """Add a memory with as much of its history as one record takes."""
    versions = _versions(session, row.num, 0, row.version) if row.version > 1 else []
    references = [
        *tables.references_in(columns),
        *(n for _, _, kept in versions for n in tables.references_in(kept.get("columns"))),
    ]
    ids = _ids(session, extent, references)
    record = {k: v for k, v in msgspec.structs.asdict(row).items() if k not in _OWN}
    record |= _parsed(row.value, row.metadata, row.tags)
    if columns is not None:
        record["columns"] = tables.shown(row.collection, columns, ids)
    record["versions"] = [_shown(row.collection, version, ids) for version in versions]
    page.add("memory", record, _size(row) + sum(_size_of(kept) for _, _, kept in versions))
    at = Position(stage=at.stage, until=at.until, number=row.num)
    if len(versions) < VERSIONS_AT_ONCE:
        return at
    last = versions[-1][0]
    at = msgspec.structs.replace(at, other_number=last, bound=row.version)
    return at if page.full else _go_on(session, extent, at, page)


def _go_on(session: Session, extent: Extent, at: Position, page: Page) -> Position:
    """Go on with a long history, up to the version that was the present one."""
    whose = session.execute(WHOSE, (at.number,))
    while whose and not page.full:
        [(memory_id, collection)] = whose
        versions = _versions(session, at.number, at.other_number, at.bound)
        if versions:
            references = [n for v in versions for n in tables.references_in(v[2].get("columns"))]
            ids = _ids(session, extent, references)
            shown = [_shown(collection, version, ids) for version in versions]
            size = sum(_size_of(kept) for _, _, kept in versions)
            page.add("versions", {"memory_id": memory_id, "versions": shown}, size)
            at = msgspec.structs.replace(at, other_number=versions[-1][0])
        if len(versions) < VERSIONS_AT_ONCE:
            break
    else:
        if whose:
            return at
    return Position(stage=at.stage, until=at.until, number=at.number)


def _versions(session: Session, num: int, after: int, before: int) -> list[Row]:
    """Earlier versions: number, until when, and what was kept of each."""
    found = session.execute(VERSIONS, (num, after, before, VERSIONS_AT_ONCE))
    return [(version, until_us, decode_json(snapshot)) for version, until_us, snapshot in found]


def _shown(collection: str, version: Row, ids: dict[int, str]) -> dict[str, Any]:
    _, superseded_us, kept = version
    told = {
        name: kept[name] for name in rows.VERSIONED if name in kept and name not in _OWN
    } | _parsed(kept.get("value"), kept["metadata"], kept["tags"])
    if (columns := kept.get("columns")) is not None and collection in typed_columns.VERSIONED:
        told["columns"] = tables.shown(collection, columns, ids)
    return {**told, "superseded_us": superseded_us}


def _parsed(value: str | None, metadata: str, tags: str) -> dict[str, Any]:
    """JSON as JSON. A value that is null is there, and one that there is not is left out."""
    told = {"metadata": decode_json(metadata), "tags": decode_json(tags)}
    return told if value is None else {**told, "value": decode_json(value)}


def _ids(session: Session, extent: Extent, nums: list[int]) -> dict[int, str]:
    """The ids of what is referred to, as far as that is exported too."""
    places = tables.places_of(session, sorted(set(nums)))
    return {num: memory_id for num, (memory_id, ns) in places.items() if extent.holds(ns)}


def _size(row: MemoryRow) -> int:
    return 600 + len(row.content) + len(row.metadata) + len(row.value or "")


def _size_of(kept: dict[str, Any]) -> int:
    return 400 + len(kept["content"]) + len(kept["metadata"]) + len(kept.get("value") or "")
