"""The shapes of documents."""

from __future__ import annotations

from typing import TypedDict


class DocumentRecord(TypedDict):
    """One document; `document_status` is pending, synced, failed or stale."""

    id: str
    namespace: str
    title: str
    document_type: str
    source: str
    document_status: str
    error: str | None
    content_hash: str
    chunks: int
    bytes: int
    created_at: str
    updated_at: str


class DocumentIndexed(TypedDict):
    status: str
    document: DocumentRecord
    added: int
    kept: int
    removed: int
    """Chunks: new ones that were embedded, those that stayed as they were, those that went."""
    seq: int


class DocumentsSynced(TypedDict):
    status: str
    root: str
    complete: bool
    """Whether the whole root was gone through; if not, call again to go on."""
    files: int
    done: int
    synced: int
    unchanged: int
    failed: int
    removed: int
    failures: list[DocumentRecord]


class DocumentsListed(TypedDict):
    status: str
    documents: list[DocumentRecord]
    count: int
    cursor: str | None


class DocumentDeleted(TypedDict):
    status: str
    document_id: str
    removed: int
    seq: int
