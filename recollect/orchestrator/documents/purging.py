"""What purging a memory means for the document that it is a chunk of."""

from __future__ import annotations

from recollect.orchestrator.rows import MemoryRow
from recollect.orchestrator.search.authorship import metadata_of
from recollect.orchestrator.storage.interface import WriteTransaction

FORGET_CHUNK = "DELETE FROM document_chunks WHERE num = ?"
TITLE = "SELECT title, titled, source FROM documents WHERE id = ? AND namespace = ?"
RETITLE = "UPDATE documents SET title = ?, titled = 0 WHERE id = ?"


def forget_chunk(transaction: WriteTransaction, row: MemoryRow) -> None:
    """Leave nothing of a chunk with its document, not even a title that was taken from it."""
    document_id = metadata_of(row).get("document_id")
    if not isinstance(document_id, str):
        return
    transaction.execute(FORGET_CHUNK, (row.num,))
    for title, titled, source in transaction.execute(TITLE, (document_id, row.namespace)):
        # One that was found may stand in the chunk in other letters, such as with its mark-up.
        if not titled or title in row.content:
            transaction.execute(RETITLE, (source.rsplit("/", 1)[-1], document_id))
