"""The texts by which a memory is found: one for its meaning, one for its words."""

from __future__ import annotations

from recollect.orchestrator.rows import MemoryRow, decode_json
from recollect.orchestrator.search.authorship import author_of, metadata_of, moment_us_of
from recollect.orchestrator.search.lexical import lexical_text
from recollect.orchestrator.search.ranking import embedded_text


def meaning_of(row: MemoryRow) -> str:
    """The text that is embedded of a memory."""
    caption = metadata_of(row).get("caption")
    return embedded_text(row.content, caption if isinstance(caption, str) else None)


def words_of(row: MemoryRow) -> str:
    """The text by which a memory is found by words."""
    metadata = metadata_of(row)
    return lexical_text(
        row.content,
        key=row.key,
        tags=decode_json(row.tags) if row.tags != "[]" else (),
        metadata=metadata,
        author=author_of(row.created_by, metadata),
        moment_us=moment_us_of(row, metadata),
    )
