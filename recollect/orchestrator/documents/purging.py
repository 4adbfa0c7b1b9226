"""What purging a memory means for the document that it is a chunk of."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

import msgspec

from recollect.orchestrator.documents.chunking import PATH_SIGN
from recollect.orchestrator.memories.rows import COLUMNS, MemoryRow, decode_json, encode_json
from recollect.orchestrator.search.authorship import metadata_of
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol.collection_names import DOCUMENTS

FORGET_CHUNK = "DELETE FROM document_chunks WHERE num = ? RETURNING document_id"
TITLE = "SELECT title, titled, source FROM documents WHERE id = ? AND namespace = ?"
RETITLE = "UPDATE documents SET title = ?, titled = 0 WHERE id = ?"
# With those of an earlier text of the document, which are deleted and not placed any more.
CHUNKS = f"""
SELECT {COLUMNS} FROM memories
WHERE collection = '{DOCUMENTS}' AND namespace = ?
    AND (source = ? OR num IN (SELECT num FROM document_chunks WHERE document_id = ?))
ORDER BY num
"""
VERSIONS = "SELECT version, snapshot FROM versions WHERE num = ?"
REWRITE = "UPDATE versions SET snapshot = ? WHERE num = ? AND version = ?"

Supersede = Callable[[MemoryRow, MemoryRow], object]
"""Makes a new version of a memory."""

_words = re.compile(r"\w+")


class FallenTitle(msgspec.Struct, frozen=True):
    """A title of a document that was taken from what is purged, to be found nowhere any more."""

    document_id: str
    namespace: str
    source: str
    titles: frozenset[str]
    title: str
    """That it has instead."""


def forget_chunk(transaction: WriteTransaction, row: MemoryRow) -> list[FallenTitle]:
    """Leave nothing of a chunk with its document, not even a title that was taken from it."""
    if row.collection != DOCUMENTS:
        return []
    metadata = metadata_of(row)
    # Where it stands is known by the table: its metadata is anybody's to change.
    placed = {document_id for (document_id,) in transaction.execute(FORGET_CHUNK, (row.num,))}
    told = {metadata["document_id"]} if isinstance(metadata.get("document_id"), str) else set()
    fallen: list[FallenTitle] = []
    for document_id in sorted(placed | told):
        for title, titled, source in transaction.execute(TITLE, (document_id, row.namespace)):
            instead = source.rsplit("/", 1)[-1]
            gone = {str(metadata["title"])} if _given_by(row, metadata.get("title")) else set()
            # One that was found may stand in the chunk in other letters, such as with its mark-up,
            # or in none, as that of a page does.
            if title in row.content if titled else document_id in placed or _given_by(row, title):
                transaction.execute(RETITLE, (instead, document_id))
                gone.add(title)
            if gone := gone - {instead}:
                titles = frozenset(gone)
                fallen.append(FallenTitle(document_id, row.namespace, source, titles, instead))
    return fallen


def retitle(
    transaction: WriteTransaction,
    fallen: Iterable[FallenTitle],
    doomed: Collection[int],
    supersede: Supersede,
) -> None:
    """Let the chunks that stay, and all of their versions, say nothing of a title that fell."""
    for one in fallen:
        for row in _chunks(transaction, one):
            if row.num in doomed:
                continue
            now = _without(one, row.content, row.metadata)
            if now != (row.content, row.metadata):
                supersede(row, msgspec.structs.replace(row, content=now[0], metadata=now[1]))
            for version, snapshot in transaction.execute(VERSIONS, (row.num,)):
                kept = decode_json(snapshot)
                content, metadata = _without(one, kept["content"], kept["metadata"])
                if (content, metadata) != (kept["content"], kept["metadata"]):
                    rewritten = {**kept, "content": content, "metadata": metadata}
                    text = encode_json(rewritten).decode()
                    transaction.execute(REWRITE, (text, row.num, version))


def _chunks(session: Session, fallen: FallenTitle) -> list[MemoryRow]:
    given = (fallen.namespace, fallen.source, fallen.document_id)
    return [MemoryRow(*row) for row in session.execute(CHUNKS, given)]


def _without(fallen: FallenTitle, content: str, metadata: str) -> tuple[str, str]:
    """The text and the metadata of a chunk without a title that fell: as title, among its headings,
    and among those of them that its text begins with."""
    told = decode_json(metadata)
    wanted = dict(told)
    if told.get("title") in fallen.titles:
        wanted["title"] = fallen.title
    if isinstance(heading := told.get("heading"), str):
        first, sign, rest = content.partition("\n\n")
        if sign and heading.startswith(first):
            lead = _path_without(fallen, first)
            content = f"{lead}{sign}{rest}" if lead else rest
        wanted["heading"] = _path_without(fallen, heading)
        if not wanted["heading"]:
            del wanted["heading"]
    return content, metadata if wanted == told else encode_json(wanted).decode()


def _path_without(fallen: FallenTitle, path: str) -> str:
    return PATH_SIGN.join(part for part in path.split(PATH_SIGN) if part not in fallen.titles)


def _given_by(row: MemoryRow, title: object) -> bool:
    """Whether all words of a title stand in a chunk."""
    if not isinstance(title, str):
        return False
    return set(_words.findall(title.casefold())) <= set(_words.findall(row.content.casefold()))
