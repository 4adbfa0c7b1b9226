"""Documents: files and texts, cut into chunks that are memories."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields
from recollect.protocol.tool import Tool

DocumentId = Annotated[str, Meta(min_length=1, description="Id of the document.")]
DocumentType = Literal["auto", "markdown", "text", "code", "html", "pdf"]


class IndexDocumentOptions(Operation[records.DocumentIndexed], frozen=True, kw_only=True):
    text: Annotated[str | None, Meta(description="The document itself, instead of a path.")] = None
    source: Annotated[
        str | None,
        Meta(description="Where the text comes from; the same source again is the same document."),
    ] = None
    trust: fields.Trust = 1.0


@operation(access="write", http=("POST", "/v1/documents"))
class IndexDocument(IndexDocumentOptions, frozen=True):
    """Cut a document into chunks and make each a memory; of a known one, only what changed."""

    path: Annotated[
        str | None,
        Meta(description="A file where the orchestrator runs, within one of documents.roots."),
    ] = None
    title: Annotated[
        Annotated[str, Meta(max_length=512)] | None,
        Meta(description="Its title; found in it if absent."),
    ] = None
    document_type: Annotated[
        DocumentType, Meta(description="What it is; told from its name and content if auto.")
    ] = "auto"
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


class SyncDocumentsOptions(Operation[records.DocumentsSynced], frozen=True, kw_only=True):
    pattern: Annotated[
        str | None, Meta(description="Only files whose path fits, such as `**/*.md`.")
    ] = None


@operation(access="write", http=("POST", "/v1/documents:sync"), replay=False)
class SyncDocuments(SyncDocumentsOptions, frozen=True):
    """Bring the documents of a folder up to date: new, changed and deleted files.

    It works until shortly before the deadline of the call; if it is not complete by then, calling
    it again goes on."""

    root: Annotated[
        str,
        Meta(
            min_length=1,
            description="A folder where the orchestrator runs, within documents.roots.",
        ),
    ]
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


class ListDocumentsOptions(Operation[records.DocumentsListed], frozen=True, kw_only=True):
    limit: fields.Limit = 50
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None


@operation(access="read", http=("GET", "/v1/documents"))
class ListDocuments(ListDocumentsOptions, frozen=True):
    """Documents, by their source."""

    namespace: fields.NamespaceFilter = None
    document_status: Annotated[
        Literal["pending", "synced", "failed", "stale"] | None,
        Meta(description="Only documents in this status."),
    ] = None


@operation(access="write", http=("DELETE", "/v1/documents/{document_id}"))
class DeleteDocument(Operation[records.DocumentDeleted], frozen=True):
    """Delete a document and its chunks; the chunks can be restored one by one."""

    document_id: DocumentId


class SearchDocumentsOptions(Operation[records.MemoriesFound], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    document_id: Annotated[str | None, Meta(description="Only in this document.")] = None
    cursor: fields.Cursor = None
    explain: fields.Explain = False
    min_seq: fields.MinSeq = None


@operation(
    access="read",
    http=("GET", "/v1/documents:search"),
    mcp=Tool(
        when="Use it for what stands in files that were read in: manuals, notes, specifications.",
        example={"query": "How is the valve closed?", "k": 3},
    ),
)
class SearchDocuments(SearchDocumentsOptions, frozen=True):
    """Find passages of documents by words and meaning, each with where it stands."""

    query: fields.Query
    k: fields.Limit = 10
