"""What a page of an import may know and has done: the rows it is about, by their ids."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.orchestrator.calls import Call
from recollect.orchestrator.exchange import lines
from recollect.orchestrator.exchange.checking import Checked, Memory
from recollect.orchestrator.exchange.tables import MEMORY
from recollect.orchestrator.memories import rows
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.protocol.errors import NotFound

ADDED = "added"
PRESENT = "present"
COMPLETED = "completed"
IDS_AT_ONCE = 500
BY_IDS = f"SELECT {rows.COLUMNS} FROM memories WHERE id IN ({{marks}})"


class Arrivals:
    """One page of records on its way into the store. Lives in the writer's thread."""

    def __init__(
        self,
        call: Call,
        transaction: WriteTransaction,
        *,
        dry_run: bool,
        mentioned: Iterable[str],
    ) -> None:
        self.call = call
        self.transaction = transaction
        self.dry_run = dry_run
        self.rows: dict[str, MemoryRow] = {}
        """All memories that the page mentions and that are there, as soon as they are."""
        self.strangers: set[str] = set()
        """Memories of the page that met a conflict: no history of theirs is added to another's."""
        self.waits = False
        """Whether the record at hand refers to what is not there yet."""
        wanted = list(dict.fromkeys(mentioned))
        for start in range(0, len(wanted), IDS_AT_ONCE):
            part = wanted[start : start + IDS_AT_ONCE]
            sql = BY_IDS.format(marks=", ".join("?" for _ in part))
            for found in transaction.execute(sql, part):
                row = MemoryRow(*found)
                self.rows[row.id] = row

    def seen(self, memory_id: str) -> MemoryRow | None:
        """A memory that the caller may see; what it may not is as absent."""
        row = self.rows.get(memory_id)
        return row if row is not None and self.call.sees(row.namespace, row.id) else None

    def require(self, memory_id: str, what: str) -> MemoryRow | None:
        """A memory that a record needs; None in a dry run, where others may yet bring it."""
        row = self.seen(memory_id)
        if row is None and not self.dry_run:
            raise NotFound(
                f"There is no {what} {memory_id!r}: it was not exported, or not taken in.",
                memory_id=memory_id,
            )
        return row


def mentioned_in(line: lines.Lines, checked: Checked) -> Iterable[str]:
    """The ids of all memories that a record is about or refers to."""
    if isinstance(checked, Memory) and isinstance(line, lines.MemoryLine):
        yield line.id
        if line.parent_id is not None:
            yield line.parent_id
        for columns in (line.columns, *(version.columns for version in line.versions)):
            yield from _references(columns)
    elif isinstance(line, lines.VersionsLine):
        yield line.memory_id
        for version in line.versions:
            yield from _references(version.columns)
    elif isinstance(line, lines.RelationshipLine):
        yield from (line.source_id, line.target_id)
    elif isinstance(line, lines.EvidenceLine):
        yield from (line.pattern_id, line.execution_id)
    elif isinstance(line, lines.MembersLine):
        yield from line.memory_ids
    elif isinstance(line, lines.DocumentLine):
        yield from (chunk.memory_id for chunk in line.chunks)


def _references(columns: lines.Object | None) -> Iterable[str]:
    for name, value in (columns or {}).items():
        if name.endswith(MEMORY) and isinstance(value, str):
            yield value
