"""Memories on their way in: stored as they were, compared with what is there.

A memory that is there in the same version and says the same is present, and so is one that has gone
on since, if that version is in its history. Anything else under the same id or key is a conflict
and left alone.
"""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.access import quotas
from recollect.orchestrator.calls import record
from recollect.orchestrator.exchange import tables
from recollect.orchestrator.exchange.bringing import ADDED, COMPLETED, PRESENT, Arrivals
from recollect.orchestrator.exchange.checking import Checking, Earlier, Memory, More
from recollect.orchestrator.memories import rows
from recollect.orchestrator.memories.memory_store import (
    ANCESTORS,
    KEY_HOLDER,
    VERSION_BY_NUMBER,
    MemoryStore,
)
from recollect.orchestrator.memories.rows import MemoryRow, decode_json, encode_json, with_snapshot
from recollect.protocol.errors import (
    AlreadyExists,
    CycleRefused,
    InvalidArgument,
    NotFound,
    VersionConflict,
)

VERSIONS = "SELECT version, snapshot FROM versions WHERE num = ? AND version IN ({marks})"
REWRITE = "UPDATE versions SET snapshot = ? WHERE num = ? AND version = ?"
FILL = "UPDATE {table} SET {column} = ? WHERE num = ? AND {column} IS NULL RETURNING num"
# What may be otherwise and is the same memory all the same: what every store counts anew, how
# strong it is by now, and the session, which it loses when that is deleted.
OWN = frozenset({"num", "seq", "session_id", *rows.FADING})
JSON = frozenset({"value", "metadata", "tags"})
COMPARED = tuple(name for name in MemoryRow.__struct_fields__ if name not in OWN)


class MemoryArrival:
    """Takes memories and their histories in."""

    def __init__(self, store: MemoryStore, checking: Checking) -> None:
        self._store = store
        self._checking = checking

    def memory(self, page: Arrivals, memory: Memory) -> str:
        """Take one memory in with its columns and versions; what became of it."""
        given = memory.row
        page.call.require(given.namespace, given.id)
        there = page.rows.get(given.id)
        if there is not None:
            return self._compare(page, memory, there)
        self._check_key(page, given)
        self._check_parent(page, given)
        row = _copy(given)
        columns = self._resolved(page, given.collection, memory.columns, row)
        versions = [
            (version, self._resolved(page, given.collection, version.columns, row))
            for version in memory.versions
        ]
        page.rows[row.id] = row
        if page.dry_run:
            return ADDED
        transaction = page.transaction
        quotas.take(page.call, transaction, 1)
        row.num = row.seq = record(
            page.call,
            transaction,
            subject=row.id,
            namespace=row.namespace,
            version_after=row.version,
        )
        self._store.bring_in(page.call, transaction, row)
        if columns is not None:
            values = (columns[name] for name in tables.COLUMNS[row.collection])
            transaction.insert(tables.INSERT[row.collection], [(row.num, *values)])
        transaction.insert(rows.INSERT_VERSION, [_version_row(row, *one) for one in versions])
        return ADDED

    def more(self, page: Arrivals, more: More) -> str:
        """Take more of the history of a memory in."""
        if more.memory_id in page.strangers:
            raise AlreadyExists(
                "Another memory has this id; nothing is added to its history.",
                memory_id=more.memory_id,
            )
        row = page.require(more.memory_id, "memory")
        if row is None:
            return ADDED
        page.call.require(row.namespace, row.id)
        earlier = [self._checking.earlier(row.collection, row.key, one) for one in more.raw]
        kept = self._kept(page, row, [version.version for version in earlier])
        missing = []
        for version in earlier:
            if version.version >= row.version:
                raise InvalidArgument(
                    f"Memory {row.id} is at version {row.version}; {version.version} is not an "
                    "earlier one.",
                    field="versions",
                )
            if version.version not in kept:
                resolved = self._resolved(page, row.collection, version.columns, row)
                missing.append(_version_row(row, version, resolved))
        linked = self._link_versions(page, row, earlier, kept)
        if missing and not page.dry_run:
            page.transaction.insert(rows.INSERT_VERSION, missing)
            self._enter(page, row)
        if missing:
            return ADDED
        return COMPLETED if linked else PRESENT

    def _compare(self, page: Arrivals, memory: Memory, there: MemoryRow) -> str:
        """Whether what is there is this memory; gives it the references that it lacked."""
        given = memory.row
        if there.namespace != given.namespace:
            # Not what it is, nor where: that may be nothing for the caller's eyes.
            raise AlreadyExists("The id is already that of something else.", memory_id=given.id)
        if there.version < given.version:
            raise VersionConflict(
                f"Memory {given.id} is here at version {there.version} and in the export at "
                f"{given.version}: purge it here to take it as it is there.",
                memory_id=given.id,
                expected_version=given.version,
                actual_version=there.version,
            )
        was: MemoryRow | None = there
        if there.version > given.version:
            found = page.transaction.execute(VERSION_BY_NUMBER, (there.num, given.version))
            # A history that was squashed since cannot be compared, and is not another one for it.
            was = with_snapshot(there, found[0][0]) if found else None
        if was is not None and (name := _difference(was, given)) is not None:
            raise AlreadyExists(
                f"Memory {given.id} is here already and differs in its {name}.",
                memory_id=given.id,
                field=name,
            )
        if there.version > given.version:
            return PRESENT
        return COMPLETED if self._link(page, memory, there) else PRESENT

    def _check_key(self, page: Arrivals, given: MemoryRow) -> None:
        if given.key is None or given.deleted_us is not None:
            return
        found = page.transaction.execute(KEY_HOLDER, (given.namespace, given.key))
        if found and found[0][0] != given.id:
            raise AlreadyExists(
                f"{given.namespace} already has another memory with the key of {given.id}: delete "
                "one of them.",
                memory_id=found[0][0],
            )

    def _check_parent(self, page: Arrivals, given: MemoryRow) -> None:
        """Refuse a parent that is not the caller's to write, or is below the memory itself. One
        that is not there may yet come."""
        parent = page.rows.get(given.parent_id or "")
        if given.parent_id == given.id:
            raise CycleRefused("A memory cannot be its own parent.", parent_id=given.id)
        if parent is None or not parent.num:
            return
        if not page.call.sees(parent.namespace, parent.id):
            raise NotFound(f"There is no parent memory {parent.id!r}.", memory_id=parent.id)
        page.call.require(parent.namespace, parent.id, "write")
        if page.transaction.execute(ANCESTORS, (parent.id, given.id)):
            raise CycleRefused(
                f"{parent.id} is below {given.id}, so it cannot be its parent.",
                parent_id=parent.id,
            )

    def _resolved(
        self, page: Arrivals, table: str, columns: tables.Stored | None, row: MemoryRow
    ) -> tables.Stored | None:
        """Columns with numbers for ids; what is not there yet is waited for."""
        if columns is None:
            return None
        resolved = dict(columns)
        for name, value in columns.items():
            if not name.endswith(tables.NUMBER) or value is None:
                continue
            target = page.seen(value)
            resolved[name] = None if target is None else target.num
            if target is None and not page.dry_run:
                if type(None) not in _kinds(table, name):
                    raise NotFound(
                        f"What {row.id} belongs to is not there: its {tables.shown_name(name)} was "
                        "not exported, or not taken in.",
                        memory_id=row.id,
                    )
                page.waits = True
        return resolved

    def _link(self, page: Arrivals, memory: Memory, there: MemoryRow) -> bool:
        """Fill references that could not be resolved when the memory came; whether any was."""
        linked = False
        table = there.collection
        resolved = self._resolved(page, table, memory.columns, there) or {}
        for name, num in resolved.items():
            if name.endswith(tables.NUMBER) and num is not None and not page.dry_run:
                sql = FILL.format(table=table, column=name)
                linked |= bool(page.transaction.execute(sql, (num, there.num)))
        numbers = [version.version for version in memory.versions if version.columns]
        kept = self._kept(page, there, numbers)
        linked |= self._link_versions(page, there, memory.versions, kept)
        if linked:
            self._enter(page, there)
        return linked

    def _link_versions(
        self, page: Arrivals, row: MemoryRow, versions: list[Earlier], kept: dict[int, str]
    ) -> bool:
        linked = False
        for version in versions:
            if version.version not in kept or not version.columns:
                continue
            snapshot: dict[str, Any] = decode_json(kept[version.version])
            columns = snapshot.get("columns") or {}
            resolved = self._resolved(page, row.collection, version.columns, row) or {}
            lacking = {
                name: num
                for name, num in resolved.items()
                if name.endswith(tables.NUMBER) and num is not None and columns.get(name) is None
            }
            if lacking and not page.dry_run:
                text = encode_json({**snapshot, "columns": {**columns, **lacking}}).decode()
                page.transaction.execute(REWRITE, (text, row.num, version.version))
                linked = True
        return linked

    def _kept(self, page: Arrivals, row: MemoryRow, numbers: list[int]) -> dict[int, str]:
        """Which of some versions are in the history already."""
        if not numbers or not row.num:
            return {}
        sql = VERSIONS.format(marks=", ".join("?" for _ in numbers))
        return dict(page.transaction.execute(sql, (row.num, *numbers)))

    def _enter(self, page: Arrivals, row: MemoryRow) -> None:
        record(
            page.call,
            page.transaction,
            subject=row.id,
            namespace=row.namespace,
            version_before=row.version,
            version_after=row.version,
        )


def _copy(row: MemoryRow) -> MemoryRow:
    # A write may run again after the batch that it was in was lost.
    return MemoryRow(**{name: getattr(row, name) for name in MemoryRow.__struct_fields__})


def _difference(there: MemoryRow, given: MemoryRow) -> str | None:
    """The first thing in which two rows of one memory differ."""
    for name in COMPARED:
        here, told = getattr(there, name), getattr(given, name)
        # Not every way in keeps the order of keys, and no order is another value.
        if here != told and not (
            name in JSON and here and told and decode_json(here) == decode_json(told)
        ):
            return name
    return None


def _version_row(
    row: MemoryRow, version: Earlier, columns: tables.Stored | None
) -> tuple[int, int, int, int, str]:
    kept = {"seq": row.seq, **version.kept}
    if columns is not None:
        kept["columns"] = columns
    snapshot = encode_json(kept).decode()
    return (row.num, version.version, version.updated_us, version.superseded_us, snapshot)


def _kinds(table: str, column: str) -> tuple[Any, ...]:
    return tuple(getattr(tables.COLUMNS[table][column], "__args__", ()))
