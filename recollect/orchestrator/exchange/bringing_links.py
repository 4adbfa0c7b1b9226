"""Links, evidence, groups and documents on their way in."""

from __future__ import annotations

import msgspec

from recollect.orchestrator.calls import record
from recollect.orchestrator.documents import rows as document_rows
from recollect.orchestrator.exchange import lines
from recollect.orchestrator.exchange.bringing import ADDED, COMPLETED, PRESENT, Arrivals
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.services.groups import INSERT_GROUP, JOIN_GROUP
from recollect.orchestrator.services.relationships import LINK
from recollect.protocol.collection_names import EXECUTIONS, PATTERNS
from recollect.protocol.errors import AlreadyExists, InvalidArgument, NotFound

FIND_LINK = """
SELECT strength FROM relationships WHERE source_num = ? AND relationship_type = ? AND target_num = ?
"""
FIND_EVIDENCE = "SELECT 1 FROM pattern_evidence WHERE pattern_num = ? AND execution_num = ?"
INSERT_EVIDENCE = """
INSERT INTO pattern_evidence (pattern_num, execution_num) VALUES (?, ?)
"""
FIND_GROUP = "SELECT namespace, name, created_us FROM context_groups WHERE id = ?"
IS_MEMBER = "SELECT num FROM group_members WHERE group_id = ? AND num IN ({marks})"
MEMBERS_AT_ONCE = 500


def take_relationship(page: Arrivals, line: lines.RelationshipLine) -> str:
    """Link two memories as they were linked."""
    source = page.require(line.source_id, "source memory")
    target = page.require(line.target_id, "target memory")
    if source is None or target is None:
        return ADDED
    page.call.require(source.namespace, source.id)
    key = (source.num, line.relationship_type, target.num)
    found = page.transaction.execute(FIND_LINK, key)
    if found:
        if found[0][0] != line.strength:
            raise AlreadyExists(
                f"{line.source_id} and {line.target_id} are linked so already, with another "
                "strength.",
                memory_id=line.source_id,
            )
        return PRESENT
    if not page.dry_run:
        values = (*key, line.strength, line.created_us, line.created_by)
        page.transaction.execute(LINK, values)
        _enter(page, source)
    return ADDED


def take_evidence(page: Arrivals, line: lines.EvidenceLine) -> str:
    """Say again what a pattern was learned from."""
    pattern = page.require(line.pattern_id, "pattern")
    execution = page.require(line.execution_id, "execution")
    if pattern is None or execution is None:
        return ADDED
    page.call.require(pattern.namespace, pattern.id)
    if (pattern.collection, execution.collection) != (PATTERNS, EXECUTIONS):
        raise InvalidArgument("Evidence is of a pattern, by an execution.", field="pattern_id")
    key = (pattern.num, execution.num)
    if page.transaction.execute(FIND_EVIDENCE, key):
        return PRESENT
    if not page.dry_run:
        page.transaction.execute(INSERT_EVIDENCE, key)
        _enter(page, pattern)
    return ADDED


def take_group(page: Arrivals, line: lines.GroupLine) -> str:
    """Make a group as it was; its members follow."""
    page.call.require(line.namespace, line.id)
    found = page.transaction.execute(FIND_GROUP, (line.id,))
    if found:
        if tuple(found[0]) == (line.namespace, line.name, line.created_us):
            return PRESENT
        raise AlreadyExists("The id is already that of another group.", group_id=line.id)
    if not page.dry_run:
        values = (line.id, line.namespace, line.name, line.description)
        page.transaction.execute(INSERT_GROUP, (*values, line.created_us, line.created_by))
        record(page.call, page.transaction, subject=line.id, namespace=line.namespace)
    return ADDED


def take_members(page: Arrivals, line: lines.MembersLine) -> str:
    """Let memories join a group, in their order."""
    found = page.transaction.execute(FIND_GROUP, (line.group_id,))
    if not found or not page.call.sees(found[0][0], line.group_id):
        if page.dry_run:
            return ADDED
        raise NotFound(f"There is no group {line.group_id!r}.", group_id=line.group_id)
    namespace = found[0][0]
    page.call.require(namespace, line.group_id)
    rows = [page.require(memory_id, "memory") for memory_id in line.memory_ids]
    nums = [row.num for row in rows if row is not None]
    there = set[int]()
    for start in range(0, len(nums), MEMBERS_AT_ONCE):
        part = nums[start : start + MEMBERS_AT_ONCE]
        sql = IS_MEMBER.format(marks=", ".join("?" for _ in part))
        there.update(num for (num,) in page.transaction.execute(sql, (line.group_id, *part)))
    missing = [num for num in dict.fromkeys(nums) if num not in there]
    if page.dry_run:
        return ADDED if missing or len(nums) < len(rows) else PRESENT
    for num in missing:
        seq = record(page.call, page.transaction, subject=line.group_id, namespace=namespace)
        page.transaction.execute(JOIN_GROUP, (line.group_id, num, seq))
    return (COMPLETED if there else ADDED) if missing else PRESENT


def take_document(page: Arrivals, line: lines.DocumentLine) -> str:
    """Take a document in, with which memories are its chunks."""
    page.call.require(line.namespace, line.id)
    found = page.transaction.execute(document_rows.FIND, (line.id,))
    holder = document_rows.find_by_source(page.transaction, line.namespace, line.source)
    if found and (holder is None or holder.id != line.id):
        raise AlreadyExists("The id is already that of another document.", document_id=line.id)
    if holder is not None and holder.id != line.id:
        raise AlreadyExists(
            f"{line.namespace} already has a document from the same source: delete one of them.",
            document_id=holder.id,
        )
    if found:
        return PRESENT
    chunks = []
    for chunk in line.chunks:
        row = page.require(chunk.memory_id, "chunk")
        if row is None:
            continue
        if row.namespace != line.namespace:
            raise InvalidArgument(
                "A chunk is not in the namespace of its document.", field="chunks"
            )
        values = (bytes.fromhex(chunk.hash), chunk.line, chunk.page)
        chunks.append((line.id, chunk.position, row.num, *values))
    if len({position for _, position, *_ in chunks}) < len(chunks):
        raise InvalidArgument("Two chunks are in the same place.", field="chunks")
    if not page.dry_run:
        told = {name: getattr(line, name) for name in document_rows.DocumentRow.__struct_fields__}
        row_values = msgspec.structs.astuple(document_rows.DocumentRow(**told))
        page.transaction.insert(document_rows.INSERT, [row_values])
        page.transaction.insert(document_rows.INSERT_CHUNK, chunks)
        record(page.call, page.transaction, subject=line.id, namespace=line.namespace)
    return ADDED


def _enter(page: Arrivals, row: MemoryRow) -> None:
    record(
        page.call,
        page.transaction,
        subject=row.id,
        namespace=row.namespace,
        version_before=row.version,
        version_after=row.version,
    )
