"""Documents as they lie in their tables, and as callers see them."""

from __future__ import annotations

import msgspec

from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session
from recollect.protocol.records import DocumentRecord

PENDING = "pending"
"""A file that was found and waits for its turn."""
SYNCED = "synced"
"""Its chunks are what it said when it was last read."""
FAILED = "failed"
"""It could not be read, and never was: it has no chunks."""
STALE = "stale"
"""It has changed and could not be read since, or not yet: its chunks are of an earlier text."""
ERROR_CHARS_MAX = 1_000


class DocumentRow(msgspec.Struct):
    """One row of `documents`, in the order of its columns."""

    id: str
    namespace: str
    source: str
    root: str | None
    """The allowed root that it was read from; None if it was given as a text."""
    title: str
    titled: int
    document_type: str
    trust: float
    status: str
    error: str | None
    content_hash: str
    cut_by: str
    size_bytes: int
    modified_ns: int | None
    """When the file was changed; None if it is to be read again whatever it says of that."""
    created_us: int
    updated_us: int


class ChunkRow(msgspec.Struct, frozen=True):
    """One row of `document_chunks`, with what of its memory matters."""

    position: int
    num: int
    hash: bytes
    line: int
    page: int | None
    metadata: str
    trust: float
    deleted_us: int | None


COLUMNS = ", ".join(DocumentRow.__struct_fields__)
INSERT = Insert("documents", DocumentRow.__struct_fields__)
UPDATE = (
    f"UPDATE documents SET {', '.join(f'{c} = ?' for c in DocumentRow.__struct_fields__[3:])} "
    "WHERE id = ?"
)
FIND = f"SELECT {COLUMNS} FROM documents WHERE id = ?"
FIND_BY_SOURCE = f"SELECT {COLUMNS} FROM documents WHERE namespace = ? AND source = ?"
# '0' is the character after '/', so the range holds exactly what lies below a folder.
BELOW = f"""
SELECT {COLUMNS} FROM documents
WHERE namespace = ? AND source >= ? AND source < ? AND root IS NOT NULL ORDER BY source
"""
LIST = f"""
SELECT {COLUMNS} FROM documents
WHERE {{condition}} AND (namespace, source) > (?, ?) ORDER BY namespace, source LIMIT ?
"""
DELETE = (
    "DELETE FROM document_chunks WHERE document_id = ?",
    "DELETE FROM documents WHERE id = ?",
)
CHUNKS = """
SELECT c.position, c.num, c.hash, c.line, c.page, m.metadata, m.trust, m.deleted_us
FROM document_chunks c JOIN memories m ON m.num = c.num WHERE c.document_id = ? ORDER BY c.position
"""
COUNT_CHUNKS = "SELECT count(*) FROM document_chunks WHERE document_id = ?"
DELETE_CHUNKS = DELETE[0]
INSERT_CHUNK = Insert("document_chunks", ("document_id", "position", "num", "hash", "line", "page"))
STANDING = """
SELECT m.id, c.position, c.line, c.page
FROM memories m JOIN document_chunks c ON c.num = m.num WHERE m.id IN ({marks})
"""


def find_by_source(session: Session, namespace: str, source: str) -> DocumentRow | None:
    """A document, by where it comes from."""
    found = session.execute(FIND_BY_SOURCE, (namespace, source))
    return DocumentRow(*found[0]) if found else None


def below(session: Session, namespace: str, folder: str) -> list[DocumentRow]:
    """The documents of a namespace that were read from files in a folder and below it."""
    prefix = folder.rstrip("/")
    found = session.execute(BELOW, (namespace, f"{prefix}/", f"{prefix}0"))
    return [DocumentRow(*row) for row in found]


def chunks_of(session: Session, document_id: str) -> list[ChunkRow]:
    """The chunks of a document, in their order."""
    found = session.execute(CHUNKS, (document_id,))
    return [ChunkRow(row[0], row[1], bytes(row[2]), *row[3:]) for row in found]


def count_chunks(session: Session, row: DocumentRow) -> int:
    """How many chunks a document has."""
    [(count,)] = session.execute(COUNT_CHUNKS, (row.id,))
    return int(count)


def record_of(row: DocumentRow, chunks: int) -> DocumentRecord:
    """The document as callers see it."""
    return {
        "id": row.id,
        "namespace": row.namespace,
        "title": row.title,
        "document_type": row.document_type,
        "source": row.source,
        "document_status": row.status,
        "error": row.error,
        "content_hash": row.content_hash,
        "chunks": chunks,
        "bytes": row.size_bytes,
        "created_at": to_iso(row.created_us),
        "updated_at": to_iso(row.updated_us),
    }
