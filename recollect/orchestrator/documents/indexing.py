"""One document on its way into the memory: read, cut, embedded as far as it is new, and written."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

import msgspec

from recollect.config.sharing import DocumentsSettings
from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call
from recollect.orchestrator.documents import rows
from recollect.orchestrator.documents.chunking import Chunk
from recollect.orchestrator.documents.kinds import kind_of_name
from recollect.orchestrator.documents.places import FileContent, Place, read_file
from recollect.orchestrator.documents.readers import Readers
from recollect.orchestrator.documents.reading import AUTO
from recollect.orchestrator.documents.rows import DocumentRow
from recollect.orchestrator.documents.store import DocumentStore, Facts, Written, matched
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.drafts import Drafting
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.trust.secret_shapes import find_secrets, masked
from recollect.orchestrator.validation import Validator
from recollect.protocol.collection_names import DOCUMENTS
from recollect.protocol.errors import (
    LimitExceeded,
    RecollectError,
    SecretRefused,
    UnreadableDocument,
)
from recollect.protocol.operations import AddMemory

CHUNK_TYPE = "knowledge"
AT_ONCE = 4
"""Documents at work at once: while one is read, others are embedded and written."""
SETTLED_NS = 2_000_000_000
"""A file that was changed just now may change again without its time showing it."""
# Of these the file itself is not to blame, so it is tried again even if it stays as it is.
OUTER = frozenset(["limit", "path"])


class Wanted(msgspec.Struct, frozen=True):
    """How a document is to be indexed."""

    namespace: str
    title: str | None = None
    document_type: str = AUTO
    trust: float = 1.0


class Text(msgspec.Struct, frozen=True):
    """A text that is to be indexed, with what it takes a while to know of a long one."""

    content: str
    size: int
    """In bytes."""
    content_hash: str

    @classmethod
    def of(cls, content: str) -> Text:
        """To be called off the event loop."""
        data = content.encode()
        return cls(content, len(data), hashlib.sha256(data).hexdigest())


class Indexing:
    """Brings documents up to date."""

    def __init__(
        self,
        storage: Storage,
        writes: RecheckedWrites,
        memories: MemoryStore,
        documents: DocumentStore,
        readers: Readers,
        drafting: Drafting,
        validator: Validator,
        settings: DocumentsSettings,
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._memories = memories
        self._documents = documents
        self._readers = readers
        self._drafting = drafting
        self._validator = validator
        self._settings = settings
        # A document is held in memory while it is worked at, so there are only a few at once.
        self._at_work = asyncio.Semaphore(AT_ONCE)

    async def text(self, call: Call, wanted: Wanted, source: str, text: Text) -> Written:
        """Index a text under a source."""
        facts = self._facts(wanted, source, text.content_hash, text.size)
        async with self._at_work:
            return await self._index(call, wanted, facts, text.content)

    async def file(
        self, call: Call, wanted: Wanted, place: Place, known: DocumentRow | None = None
    ) -> Written | None:
        """Index a file; None if it says what it said when `known` was read from it."""
        async with self._at_work:
            return await self._file(call, wanted, place, known)

    async def _file(
        self, call: Call, wanted: Wanted, place: Place, known: DocumentRow | None
    ) -> Written | None:
        content, content_hash = await asyncio.to_thread(_read, place, self._settings.file_bytes_max)
        settled = call.now_us * 1000 - content.modified_ns > SETTLED_NS
        facts = msgspec.structs.replace(
            self._facts(wanted, place.source, content_hash, len(content.data)),
            root=place.root,
            modified_ns=content.modified_ns if settled else None,
        )
        if known is not None and self._is_known(known, facts):
            await self._writes.write(call, lambda tx: self._documents.seen(tx, facts))
            return None
        return await self._index(call, wanted, facts, content.data)

    async def failed(
        self,
        call: Call,
        wanted: Wanted,
        place: Place,
        error: RecollectError,
        *,
        size: int = 0,
        modified_ns: int | None = None,
    ) -> DocumentRow:
        """Note that a file could not be indexed. One that was found to be broken as it is, is
        known by its size and time, and not tried again until it changes."""
        broken = isinstance(error, UnreadableDocument) and OUTER.isdisjoint(error.details)
        facts = msgspec.structs.replace(
            self._facts(wanted, place.source, "", size),
            root=place.root,
            modified_ns=modified_ns if broken else None,
        )
        return await self._writes.write(
            call, lambda tx: self._documents.failed(call, tx, facts, error)
        )

    def unfit(self, call: Call, namespace: str, place: Place, size: int = 0) -> DocumentRow | None:
        """What is told, and not kept, of a file whose path must not be stored: it has a secret in
        it, and without that it would be another path."""
        try:
            self._validator.text("source", place.source, "key_chars_max")
        except SecretRefused as error:
            told = masked(place.source, find_secrets(place.source))
            facts = self._facts(Wanted(namespace), told, "", size)
            return self._documents.unkept(call, facts, error)
        except LimitExceeded:
            pass  # noted when it is read
        return None

    async def waiting(self, call: Call, files: Sequence[tuple[Wanted, Place, int]]) -> None:
        """Note that some files, of a size each, are to be read."""
        noted = [
            msgspec.structs.replace(self._facts(wanted, place.source, "", size), root=place.root)
            for wanted, place, size in files
        ]

        def write(transaction: WriteTransaction) -> None:
            for facts in noted:
                self._documents.waiting(call, transaction, facts)

        await self._writes.write(call, write)

    def is_current(self, row: DocumentRow, size: int, modified_ns: int) -> bool:
        """Whether a file is as it was when it was last looked at, by its size and time."""
        same = (row.size_bytes, row.modified_ns) == (size, modified_ns)
        return same and (row.status != rows.SYNCED or row.cut_by == self._readers.cut_by)

    def _is_known(self, known: DocumentRow, facts: Facts) -> bool:
        return (
            known.status == rows.SYNCED
            and known.content_hash == facts.content_hash
            and known.cut_by == facts.cut_by
            and known.root is not None
        )

    def _facts(self, wanted: Wanted, source: str, content_hash: str, size: int) -> Facts:
        kind = wanted.document_type
        return Facts(
            namespace=wanted.namespace,
            source=source,
            root=None,
            title=wanted.title,
            titled=wanted.title is not None,
            document_type=(kind_of_name(source) or "text") if kind == AUTO else kind,
            trust=wanted.trust,
            content_hash=content_hash,
            cut_by=self._readers.cut_by,
            size_bytes=size,
            modified_ns=None,
        )

    async def _index(
        self, call: Call, wanted: Wanted, facts: Facts, content: bytes | str
    ) -> Written:
        cut = await self._readers.cut(content, facts.source, wanted.document_type)
        title = facts.title if facts.titled else cut.title
        if title is not None:
            chars_max = self._validator.limits.key_chars_max
            title = self._validator.prose("title", title[:chars_max], "key_chars_max")
        facts = msgspec.structs.replace(facts, document_type=cut.document_type, title=title)
        chunks = cut.chunks
        drafts = await asyncio.to_thread(self._drafts, call, facts, chunks)

        def expected(session: Session) -> tuple[list[int], list[str]]:
            old = rows.find_by_source(session, facts.namespace, facts.source)
            kept = matched(chunks, rows.chunks_of(session, old.id)) if old is not None else {}
            new = [place for place in range(len(chunks)) if place not in kept]
            return new, [meaning_of(drafts[place]) for place in new]

        new, texts = await self._storage.read(expected)
        embedded = await self._embedded(texts)
        made = {place: (embedded, at) for at, place in enumerate(new)}
        return await self._writes.write(
            call, lambda tx: self._documents.write(call, tx, facts, chunks, drafts, made)
        )

    def _drafts(self, call: Call, facts: Facts, chunks: Sequence[Chunk]) -> list[MemoryRow]:
        """A memory for each chunk; what it says of its document comes with the write."""
        drafts = [
            self._drafting.memory(
                AddMemory(
                    chunk.content,
                    CHUNK_TYPE,
                    "long",
                    namespace=facts.namespace,
                    source=facts.source,
                    trust=facts.trust,
                ),
                call.now_us,
                call.author,
                None,
            )
            for chunk in chunks
        ]
        for draft in drafts:
            draft.collection = DOCUMENTS
        return drafts

    async def _embedded(self, texts: list[str]) -> Embedded:
        meanings = self._memories.meanings
        if meanings.current.embedding.inline:
            return await asyncio.to_thread(meanings.embed_now, texts)
        return await meanings.embed(texts)


def _read(place: Place, bytes_max: int) -> tuple[FileContent, str]:
    """What a file says, and its hash."""
    content = read_file(place, bytes_max)
    return content, hashlib.sha256(content.data).hexdigest()
