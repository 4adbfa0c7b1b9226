"""Documents found and changed on behalf of a caller, each change in one transaction."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.clock import IdSource
from recollect.orchestrator.documents import rows
from recollect.orchestrator.documents.chunking import Chunk
from recollect.orchestrator.documents.rows import ChunkRow, DocumentRow
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.memory_store import MemoryStore, as_deleted
from recollect.orchestrator.memories.rows import MemoryRow, decode_json
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol.errors import NotFound, RecollectError

Kept = dict[int, ChunkRow]


class Facts(msgspec.Struct, frozen=True):
    """What is known of a document beside its chunks."""

    namespace: str
    source: str
    root: str | None
    title: str | None
    """None leaves the title that it has, or takes the name of its source."""
    titled: bool
    document_type: str
    trust: float
    content_hash: str
    cut_by: str
    size_bytes: int
    modified_ns: int | None


class Written(msgspec.Struct, frozen=True):
    """What a change did."""

    row: DocumentRow
    chunks: int
    added: int
    kept: int
    removed: int
    seq: int


def matched(chunks: Sequence[Chunk], before: Sequence[ChunkRow]) -> Kept:
    """Which of the old chunks the new ones are, by their place among the new."""
    waiting: dict[bytes, deque[ChunkRow]] = {}
    for old in before:
        if old.deleted_us is None:
            waiting.setdefault(old.hash, deque()).append(old)
    kept: Kept = {}
    for place, chunk in enumerate(chunks):
        if same := waiting.get(chunk.hash):
            kept[place] = same.popleft()
    return kept


class DocumentStore:
    """Rows of documents, and the memories that their chunks are."""

    def __init__(self, memories: MemoryStore, validator: Validator, ids: IdSource) -> None:
        self._memories = memories
        self._validator = validator
        self._ids = ids

    def find(self, call: Call, session: Session, document_id: str) -> DocumentRow:
        """A document that the caller may see and do with what the operation does."""
        found = session.execute(rows.FIND, (document_id,))
        row = DocumentRow(*found[0]) if found else None
        if row is None or not call.sees(row.namespace, document_id):
            raise NotFound(f"There is no document {document_id!r}.", document_id=document_id)
        call.require(row.namespace, document_id)
        return row

    def write(
        self,
        call: Call,
        transaction: WriteTransaction,
        facts: Facts,
        chunks: Sequence[Chunk],
        drafts: Sequence[MemoryRow],
        embedded: dict[int, tuple[Embedded, int]],
    ) -> Written:
        """Make a document what was read: one draft for each chunk, of which only the new ones are
        inserted; and the vectors, by the place of their chunk, as far as they are there."""
        old = rows.find_by_source(transaction, facts.namespace, facts.source)
        before = rows.chunks_of(transaction, old.id) if old is not None else []
        row = self._row(call, old, facts)
        kept = matched(chunks, before)
        new = [place for place in range(len(chunks)) if place not in kept]
        metadata = [self._metadata(row, chunk) for chunk in chunks]
        for place in new:
            drafts[place].metadata = self._validator.metadata(metadata[place])
            drafts[place].trust = row.trust
            drafts[place].operation = call.operation
        if new:
            inserted = [drafts[place] for place in new]
            self._memories.insert(call, transaction, inserted, self._vectors(drafts, new, embedded))
        moved = self._refresh(call, transaction, kept, metadata, row.trust)
        still = {chunk.num for chunk in kept.values()}
        removed = [c for c in before if c.num not in still]
        gone = self._delete_chunks(call, transaction, removed)
        nums = [kept[p].num if p in kept else drafts[p].num for p in range(len(chunks))]
        placed = [
            (row.id, place + 1, nums[place], chunk.hash, chunk.line, chunk.page)
            for place, chunk in enumerate(chunks)
        ]
        was = [(row.id, c.position, c.num, c.hash, c.line, c.page) for c in before]
        if placed != was:
            transaction.execute(rows.DELETE_CHUNKS, (row.id,))
            transaction.insert(rows.INSERT_CHUNK, placed)
        same = placed == was and not moved and old is not None and _alike(old, row)
        if same:
            assert old is not None
            row.updated_us = old.updated_us
        self._save(transaction, old, row)
        seq = transaction.last_seq() if same else self._record(call, transaction, row)
        return Written(row, len(chunks), len(new), len(kept), gone, seq)

    def failed(
        self, call: Call, transaction: WriteTransaction, facts: Facts, error: RecollectError
    ) -> DocumentRow:
        """Note that a document could not be read; what it said before stays."""
        return self._mark(call, transaction, facts, rows.FAILED, error.message)

    def unkept(self, call: Call, facts: Facts, error: RecollectError) -> DocumentRow:
        """The row that a document would have which could not be read, for it to be told of."""
        row = self._row(call, None, facts)
        row.id, row.status, row.error = "", rows.FAILED, error.message
        return row

    def waiting(self, call: Call, transaction: WriteTransaction, facts: Facts) -> DocumentRow:
        """Note that a document is to be read: it is new, or has changed."""
        return self._mark(call, transaction, facts, rows.PENDING, None)

    def seen(self, transaction: WriteTransaction, facts: Facts) -> None:
        """Note that a file was read and says what it said."""
        row = rows.find_by_source(transaction, facts.namespace, facts.source)
        if row is not None and row.content_hash == facts.content_hash:
            row.size_bytes, row.modified_ns = facts.size_bytes, facts.modified_ns
            self._save(transaction, row, row)

    def remove(self, call: Call, transaction: WriteTransaction, row: DocumentRow) -> Written:
        """Take a document away with its chunks."""
        chunks = rows.chunks_of(transaction, row.id)
        gone = self._delete_chunks(call, transaction, chunks)
        for statement in rows.DELETE:
            transaction.execute(statement, (row.id,))
        return Written(row, 0, 0, 0, gone, self._record(call, transaction, row))

    def _row(self, call: Call, old: DocumentRow | None, facts: Facts) -> DocumentRow:
        """The row of a document that was read."""
        title, titled = facts.title, facts.titled
        if old is not None and old.titled and not titled:
            title, titled = old.title, True
        return DocumentRow(
            id=self._ids.new() if old is None else old.id,
            namespace=facts.namespace,
            source=facts.source,
            root=facts.root,
            title=self._validator.cleaned("title", title or facts.source.rsplit("/", 1)[-1]),
            titled=int(titled),
            document_type=facts.document_type,
            trust=facts.trust,
            status=rows.SYNCED,
            error=None,
            content_hash=facts.content_hash,
            cut_by=facts.cut_by,
            size_bytes=facts.size_bytes,
            modified_ns=facts.modified_ns,
            created_us=call.now_us if old is None else old.created_us,
            updated_us=call.now_us,
        )

    def _mark(
        self,
        call: Call,
        transaction: WriteTransaction,
        facts: Facts,
        status: str,
        error: str | None,
    ) -> DocumentRow:
        old = rows.find_by_source(transaction, facts.namespace, facts.source)
        if old is None:
            row = self._row(call, None, facts)
            row.status = status
        else:
            has_chunks = bool(rows.chunks_of(transaction, old.id))
            row = msgspec.structs.replace(
                old,
                status=rows.STALE if has_chunks else status,
                root=facts.root,
                size_bytes=facts.size_bytes,
                modified_ns=facts.modified_ns,
                updated_us=call.now_us,
            )
        row.error = None if error is None else error[: rows.ERROR_CHARS_MAX]
        if old is not None and (old.status, old.error) == (row.status, row.error):
            row.updated_us = old.updated_us
            self._save(transaction, old, row)
        else:
            self._save(transaction, old, row)
            self._record(call, transaction, row, detail=row.status)
        return row

    def _save(
        self, transaction: WriteTransaction, old: DocumentRow | None, row: DocumentRow
    ) -> None:
        values = msgspec.structs.astuple(row)
        if old is None:
            transaction.insert(rows.INSERT, [values])
        else:
            transaction.execute(rows.UPDATE, (*values[3:], row.id))

    def _record(
        self,
        call: Call,
        transaction: WriteTransaction,
        row: DocumentRow,
        detail: str | None = None,
    ) -> int:
        return record(call, transaction, subject=row.id, namespace=row.namespace, detail=detail)

    def _metadata(self, row: DocumentRow, chunk: Chunk) -> dict[str, str]:
        metadata = {"document_id": row.id, "title": row.title}
        return {**metadata, "heading": chunk.heading} if chunk.heading else metadata

    def _vectors(
        self,
        drafts: Sequence[MemoryRow],
        new: Sequence[int],
        embedded: dict[int, tuple[Embedded, int]],
    ) -> Embedded:
        """The vectors of the new chunks, in their order."""
        current = self._memories.meanings.current
        texts, vectors, passages = [], [], []
        for place in new:
            made = embedded.get(place)
            good = made is not None and made[0].meaning is current
            texts.append(made[0].texts[made[1]] if made is not None else drafts[place].content)
            vectors.append(made[0].vectors[made[1]] if made is not None and good else None)
            kept = made[0].passages_at(made[1]) if made is not None and good else None
            passages.append(kept or b"")
        return Embedded(current, texts, vectors, passages)

    def _refresh(
        self,
        call: Call,
        transaction: WriteTransaction,
        kept: Kept,
        metadata: Sequence[dict[str, str]],
        trust: float,
    ) -> int:
        """Let the chunks that stayed follow a new title, heading or trust; how many did."""
        changed: list[tuple[int, str]] = []
        for place, chunk in kept.items():
            now = decode_json(chunk.metadata)
            wanted = {**now, **metadata[place]}
            if "heading" not in metadata[place]:
                wanted.pop("heading", None)
            text = self._validator.metadata(wanted)
            if decode_json(text) != now or chunk.trust != trust:
                changed.append((chunk.num, text))
        for row, text in self._memories.rows_of(transaction, changed):
            new = msgspec.structs.replace(row, metadata=text, trust=trust)
            self._memories.supersede(call, transaction, row, new)
        return len(changed)

    def _delete_chunks(
        self, call: Call, transaction: WriteTransaction, chunks: Sequence[ChunkRow]
    ) -> int:
        """Delete the memories of chunks, softly; how many there were still."""
        living = [(chunk.num, None) for chunk in chunks if chunk.deleted_us is None]
        for row, _ in self._memories.rows_of(transaction, living):
            self._memories.supersede(call, transaction, row, as_deleted(call, row))
        return len(living)


def _alike(old: DocumentRow, new: DocumentRow) -> bool:
    """Whether two rows differ in nothing that anybody would notice."""
    noticed = ("title", "document_type", "trust", "status", "error", "content_hash")
    return all(getattr(old, name) == getattr(new, name) for name in noticed)
