"""The texts by which a memory is found: one for its meaning, one for its words."""

from __future__ import annotations

from recollect.orchestrator.memories.rows import MemoryRow, decode_json
from recollect.orchestrator.search.authorship import author_of, metadata_of, moment_us_of
from recollect.orchestrator.search.lexical import lexical_text
from recollect.orchestrator.search.ranking import embedded_text
from recollect.protocol.collection_names import EXECUTIONS, PATTERNS

OUTCOME_MARK = "\n\nOutcome: "
LEARNED_MARK = "\n\nLearned: "
# Of how a task went and of what was learned, the meaning is the task: both are looked for by one
# that is yet to be done, and nobody knows before what will come of it.
TASK_ENDS = {EXECUTIONS: OUTCOME_MARK, PATTERNS: LEARNED_MARK}


def meaning_of(row: MemoryRow) -> str:
    """The text that is embedded of a memory."""
    end = TASK_ENDS.get(row.collection)
    if end is not None:
        return row.content.partition(end)[0] or row.content
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
