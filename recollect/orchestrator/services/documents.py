"""Documents: indexed, listed, searched and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from recollect.config.sharing import DocumentsSettings
from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.documents import rows
from recollect.orchestrator.documents.indexing import Indexing, Text, Wanted
from recollect.orchestrator.documents.places import Place, Roots
from recollect.orchestrator.documents.rows import DocumentRow
from recollect.orchestrator.documents.store import DocumentStore, Written
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.services.recalling import RecallService
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import (
    InvalidArgument,
    LimitExceeded,
    NotFound,
    PathRefused,
    RecollectError,
    Unauthenticated,
)
from recollect.protocol.operations import (
    DeleteDocument,
    IndexDocument,
    ListDocuments,
    Recall,
    SearchDocuments,
)

FIRST_PAGE = ["", ""]
IS_CHUNK = "memories.num IN (SELECT document_chunks.num FROM document_chunks)"
IS_CHUNK_OF = (
    "memories.num IN "
    "(SELECT document_chunks.num FROM document_chunks WHERE document_chunks.document_id = ?)"
)


class DocumentService:
    """One document at a time, and the lists of them."""

    def __init__(
        self,
        storage: Storage,
        documents: DocumentStore,
        indexing: Indexing,
        roots: Roots,
        recalling: RecallService,
        scoping: Scoping,
        validator: Validator,
        settings: DocumentsSettings,
    ) -> None:
        self._storage = storage
        self._documents = documents
        self._indexing = indexing
        self._roots = roots
        self._recalling = recalling
        self._scoping = scoping
        self._validator = validator
        self._settings = settings

    # The same document again changes nothing, so there is no need to keep the answer; and it holds
    # words of the document, which a purge would not find there.
    @reads(IndexDocument)
    async def index_document(self, call: Call, operation: IndexDocument) -> records.DocumentIndexed:
        self._validator.namespace(operation.namespace)
        title = (operation.title or "").strip() or None
        if title is not None:
            title = self._validator.prose("title", title, "key_chars_max")
        wanted = Wanted(operation.namespace, title, operation.document_type, operation.trust)
        if operation.text is not None and operation.path is None:
            return _indexed(await self._index_text(call, wanted, operation.source, operation.text))
        if operation.path is None or operation.text is not None:
            raise InvalidArgument("Give a path or a text: one of them, and not both.", field="path")
        if operation.source is not None:
            raise InvalidArgument(
                "source belongs to a text; the source of a file is its path.", field="source"
            )
        place = await asyncio.to_thread(self._roots.place, operation.path, "path")
        return _indexed(await self._index_file(call, wanted, place))

    async def _index_text(
        self, call: Call, wanted: Wanted, source: str | None, text: str
    ) -> Written:
        known = await asyncio.to_thread(Text.of, text)
        if known.size > self._settings.file_bytes_max:
            raise LimitExceeded(
                f"text has {known.size:,} bytes; the limit documents.file_bytes_max is "
                f"{self._settings.file_bytes_max:,}.",
                field="text",
                limit="documents.file_bytes_max",
                maximum=self._settings.file_bytes_max,
                actual=known.size,
            )
        if source is None:
            # The same text again is the same document.
            source = f"text:{known.content_hash[:32]}"
        elif not source.strip():
            raise InvalidArgument("source is empty; name it, or leave it out.", field="source")
        self._validator.text("source", source, "key_chars_max")
        return await self._indexing.text(call, wanted, source, known)

    async def _index_file(self, call: Call, wanted: Wanted, place: Place) -> Written:
        try:
            written = await self._indexing.file(call, wanted, place)
        except RecollectError as error:
            if await self._is_noted(wanted, place, error):
                await self._indexing.failed(call, wanted, place, error)
            raise
        assert written is not None
        return written

    async def _is_noted(self, wanted: Wanted, place: Place, error: RecollectError) -> bool:
        """Whether the failure is one of the document: not of the moment, nor of the question, nor
        of who asked."""
        if error.retryable or isinstance(error, PathRefused | Unauthenticated):
            return False
        if not isinstance(error, NotFound):
            return True
        known = await self._storage.read(
            lambda session: rows.find_by_source(session, wanted.namespace, place.source)
        )
        return known is not None

    @reads(ListDocuments)
    def list_documents(
        self, call: Call, operation: ListDocuments
    ) -> asyncio.Future[records.DocumentsListed]:
        limit = self._validator.page(operation.limit)
        after = read_cursor(operation, operation.cursor, 2, texts=2) or FIRST_PAGE
        condition, params = self._scoping.home(call, operation.namespace) or ("TRUE", [])
        if operation.document_status is not None:
            condition = f"{condition} AND status = ?"
            params = [*params, operation.document_status]
        sql = rows.LIST.format(condition=condition)

        def read(session: Session) -> records.DocumentsListed:
            given = session.execute(sql, (*params, *after, limit + 1))
            found = [DocumentRow(*row) for row in given]
            cursor = None
            if len(found) > limit:
                found = found[:limit]
                cursor = make_cursor(operation, [found[-1].namespace, found[-1].source])
            return {
                "status": "success",
                "documents": [
                    rows.record_of(row, rows.count_chunks(session, row)) for row in found
                ],
                "count": len(found),
                "cursor": cursor,
            }

        return self._storage.read(read)

    @writes(DeleteDocument)
    def delete_document(
        self, call: Call, operation: DeleteDocument
    ) -> Callable[[WriteTransaction], records.DocumentDeleted]:
        def write(transaction: WriteTransaction) -> records.DocumentDeleted:
            row = self._documents.find(call, transaction, operation.document_id)
            written = self._documents.remove(call, transaction, row)
            return {
                "status": "success",
                "document_id": row.id,
                "removed": written.removed,
                "seq": written.seq,
            }

        return write

    @reads(SearchDocuments)
    async def search_documents(
        self, call: Call, operation: SearchDocuments
    ) -> records.MemoriesFound:
        only: Condition = (IS_CHUNK, [])
        document_id = operation.document_id
        if document_id is not None:
            await self._storage.read(
                lambda session: self._documents.find(call, session, document_id)
            )
            only = (IS_CHUNK_OF, [document_id])
        asked = Recall(
            operation.query,
            operation.k,
            namespace=operation.namespace,
            explain=operation.explain,
            cursor=operation.cursor,
        )
        found = await self._recalling.within(call, asked, only)
        await self._storage.read(lambda session: _place(session, found["results"]))
        return found


def _place(session: Session, results: list[Any]) -> None:
    """Say of each chunk where it stands in its document."""
    if not results:
        return
    sql = rows.STANDING.format(marks=", ".join("?" for _ in results))
    standing = {
        memory_id: {"position": position, "line": line, "page": page}
        for memory_id, position, line, page in session.execute(
            sql, [result["id"] for result in results]
        )
    }
    for result in results:
        where = standing.get(result["id"], {})
        told = {name: value for name, value in where.items() if value is not None}
        result["metadata"] = {**result["metadata"], **told}


def _indexed(written: Written) -> records.DocumentIndexed:
    return {
        "status": "success",
        "document": rows.record_of(written.row, written.chunks),
        "added": written.added,
        "kept": written.kept,
        "removed": written.removed,
        "seq": written.seq,
    }
