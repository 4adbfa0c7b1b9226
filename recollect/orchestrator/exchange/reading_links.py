"""What holds memories together on its way out: links, evidence, groups and documents.

Only what lies within the namespaces of the export at both of its ends is in it.
"""

from __future__ import annotations

from recollect.orchestrator.documents.rows import COLUMNS as DOCUMENT_COLUMNS
from recollect.orchestrator.documents.rows import DocumentRow
from recollect.orchestrator.exchange.pages import Extent, Page
from recollect.orchestrator.exchange.positions import Position
from recollect.orchestrator.storage.interface import Session

ROWS_AT_ONCE = 500
MEMBERS_AT_ONCE = 500
RELATIONSHIPS = """
SELECT r.source_num, r.relationship_type, r.target_num, s.id, t.id, r.strength, r.created_us,
    r.created_by
FROM relationships r
JOIN memories s ON s.num = r.source_num
JOIN memories t ON t.num = r.target_num
WHERE (r.source_num, r.relationship_type, r.target_num) > (?, ?, ?)
    AND r.source_num <= ? AND r.target_num <= ? AND {sources} AND {targets}
ORDER BY r.source_num, r.relationship_type, r.target_num LIMIT ?
"""
EVIDENCE = """
SELECT e.pattern_num, e.execution_num, p.id, x.id
FROM pattern_evidence e
JOIN memories p ON p.num = e.pattern_num
JOIN memories x ON x.num = e.execution_num
WHERE (e.pattern_num, e.execution_num) > (?, ?)
    AND e.pattern_num <= ? AND e.execution_num <= ? AND {patterns} AND {executions}
ORDER BY e.pattern_num, e.execution_num LIMIT ?
"""
GROUPS = """
SELECT id, namespace, name, description, created_us, created_by FROM context_groups
WHERE id > ? AND {condition} ORDER BY id LIMIT ?
"""
GROUP_FIELDS = ("id", "namespace", "name", "description", "created_us", "created_by")
MEMBERS = """
SELECT g.joined_seq, m.id FROM group_members g JOIN memories m ON m.num = g.num
WHERE g.group_id = ? AND g.joined_seq > ? AND g.num <= ? AND {condition}
ORDER BY g.joined_seq LIMIT ?
"""
DOCUMENTS = f"""
SELECT {DOCUMENT_COLUMNS} FROM documents WHERE id > ? AND {{condition}} ORDER BY id LIMIT ?
"""
CHUNKS = """
SELECT m.id, c.position, c.hash, c.line, c.page
FROM document_chunks c JOIN memories m ON m.num = c.num
WHERE c.document_id = ? AND c.num <= ? ORDER BY c.position
"""


def read_relationships(
    session: Session, extent: Extent, at: Position, page: Page
) -> Position | None:
    """Fill a page with links between memories."""
    (sources, of_source), (targets, of_target) = (
        extent.condition("s.namespace"),
        extent.condition("t.namespace"),
    )
    sql = RELATIONSHIPS.format(sources=sources, targets=targets)
    while not page.full:
        most = page.rows(ROWS_AT_ONCE)
        after = (at.number, at.text, at.other_number)
        params = (*after, at.until, at.until, *of_source, *of_target, most)
        found = session.execute(sql, params)
        for source, kind, target, source_id, target_id, strength, created_us, created_by in found:
            record = {
                "source_id": source_id,
                "relationship_type": kind,
                "target_id": target_id,
                "strength": strength,
                "created_us": created_us,
                "created_by": created_by,
            }
            page.add("relationship", record, 250)
            at = Position(
                stage=at.stage, until=at.until, number=source, text=kind, other_number=target
            )
        if len(found) < most:
            return None
    return at


def read_evidence(session: Session, extent: Extent, at: Position, page: Page) -> Position | None:
    """Fill a page with what patterns were learned from."""
    (patterns, of_pattern), (executions, of_execution) = (
        extent.condition("p.namespace"),
        extent.condition("x.namespace"),
    )
    sql = EVIDENCE.format(patterns=patterns, executions=executions)
    while not page.full:
        most = page.rows(ROWS_AT_ONCE)
        bounds = (at.number, at.other_number, at.until, at.until)
        found = session.execute(sql, (*bounds, *of_pattern, *of_execution, most))
        for pattern, execution, pattern_id, execution_id in found:
            page.add("evidence", {"pattern_id": pattern_id, "execution_id": execution_id}, 120)
            at = Position(stage=at.stage, until=at.until, number=pattern, other_number=execution)
        if len(found) < most:
            return None
    return at


def read_groups(session: Session, extent: Extent, at: Position, page: Page) -> Position | None:
    """Fill a page with groups, each followed by its members."""
    if at.bound:
        at = _members(session, extent, at, page)
    condition, params = extent.condition()
    sql = GROUPS.format(condition=condition)
    while not page.full:
        found = session.execute(sql, (at.text, *params, 1))
        if not found:
            return None
        record = dict(zip(GROUP_FIELDS, found[0], strict=True))
        page.add("group", record, 250 + len(record["description"] or ""))
        at = Position(stage=at.stage, until=at.until, text=record["id"], bound=1)
        if not page.full:
            at = _members(session, extent, at, page)
    return at


def _members(session: Session, extent: Extent, at: Position, page: Page) -> Position:
    condition, params = extent.condition("m.namespace")
    sql = MEMBERS.format(condition=condition)
    while not page.full:
        found = session.execute(sql, (at.text, at.number, at.until, *params, MEMBERS_AT_ONCE))
        if found:
            record = {"group_id": at.text, "memory_ids": [memory_id for _, memory_id in found]}
            page.add("members", record, 40 * len(found))
            at = Position(
                stage=at.stage, until=at.until, text=at.text, number=found[-1][0], bound=1
            )
        if len(found) < MEMBERS_AT_ONCE:
            return Position(stage=at.stage, until=at.until, text=at.text)
    return at


def read_documents(session: Session, extent: Extent, at: Position, page: Page) -> Position | None:
    """Fill a page with documents, each with the list of its chunks."""
    condition, params = extent.condition()
    sql = DOCUMENTS.format(condition=condition)
    while not page.full:
        found = session.execute(sql, (at.text, *params, 1))
        if not found:
            return None
        record = dict(zip(DocumentRow.__struct_fields__, found[0], strict=True))
        record["chunks"] = [
            {"memory_id": memory_id, "position": n, "hash": bytes(h).hex(), "line": line, "page": p}
            for memory_id, n, h, line, p in session.execute(CHUNKS, (record["id"], at.until))
        ]
        page.add("document", record, 600 + 160 * len(record["chunks"]))
        at = Position(stage=at.stage, until=at.until, text=record["id"])
    return at
