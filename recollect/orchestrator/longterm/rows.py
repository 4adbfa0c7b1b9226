"""Procedures, incidents and changes of settings as they lie in their tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.memories.rows import JOINED_COLUMNS, MemoryRow, decode_json
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol.records import ConfigChangeRecord, ProcedureRecord


class IncidentRow(msgspec.Struct):
    """One row of `incidents`, in the order of its columns."""

    num: int
    title: str
    description: str
    severity: str
    cause: str
    resolution: str
    occurred_us: int | None
    resolved_us: int | None


class ChangeRow(msgspec.Struct):
    """One row of `config_changes`, in the order of its columns."""

    num: int
    component: str
    parameter: str
    old_value: str
    new_value: str
    reason: str


SET_PROCEDURE = """
INSERT INTO procedures (num, description, steps) VALUES (?, ?, ?)
ON CONFLICT (num) DO UPDATE SET description = excluded.description, steps = excluded.steps
"""
PROCEDURE = "SELECT description, steps FROM procedures WHERE num = ?"
INSERT_INCIDENT = Insert("incidents", IncidentRow.__struct_fields__)
INCIDENT = f"SELECT {', '.join(IncidentRow.__struct_fields__)} FROM incidents WHERE num = ?"
RESOLVE = "UPDATE incidents SET cause = ?, resolution = ?, resolved_us = ? WHERE num = ?"
INSERT_CHANGE = Insert("config_changes", ChangeRow.__struct_fields__)
# What is archived is searched no more; it still happened, and a history has no holes.
HISTORY = f"""
SELECT {JOINED_COLUMNS}, {", ".join(f"c.{name}" for name in ChangeRow.__struct_fields__)}
FROM config_changes c CROSS JOIN memories m
WHERE m.num = c.num AND c.component = ? {{of_parameter}} AND c.num < ?
    AND m.deleted_us IS NULL AND (m.expires_us IS NULL OR m.expires_us > ?) AND {{readable}}
ORDER BY c.num DESC LIMIT ?
"""
OF_PARAMETER = "AND c.parameter = ?"
_MEMORY_COLUMNS = len(MemoryRow.__struct_fields__)

values_of = msgspec.structs.astuple


def incident_of(session: Session | WriteTransaction, memory: MemoryRow) -> IncidentRow:
    """The columns of an incident."""
    return IncidentRow(*session.execute(INCIDENT, (memory.num,))[0])


def procedure_of(session: Session, memory: MemoryRow) -> ProcedureRecord:
    """A procedure as callers see it."""
    [(description, steps)] = session.execute(PROCEDURE, (memory.num,))
    assert memory.key is not None
    return {
        "id": memory.id,
        "namespace": memory.namespace,
        "name": memory.key.partition("/")[2],
        "version": memory.version,
        "description": description,
        "steps": decode_json(steps),
        "metadata": decode_json(memory.metadata),
        "tags": decode_json(memory.tags),
        "importance": memory.importance,
        "source": memory.source,
        "trust": memory.trust,
        "created_at": to_iso(memory.created_us),
        "updated_at": to_iso(memory.updated_us),
        "updated_by": memory.updated_by,
    }


def change_of(found: Sequence[Any]) -> ConfigChangeRecord:
    """A change of a setting as callers see it, from a row of the history."""
    memory = MemoryRow(*found[:_MEMORY_COLUMNS])
    change = ChangeRow(*found[_MEMORY_COLUMNS:])
    return {
        "id": memory.id,
        "namespace": memory.namespace,
        "component": change.component,
        "parameter": change.parameter,
        "old_value": decode_json(change.old_value),
        "new_value": decode_json(change.new_value),
        "reason": change.reason,
        "changed_by": memory.created_by,
        "at": to_iso(memory.created_us),
    }
