"""What must hold among the rows of a store, asked by `check_integrity` of one that is served and by
`recollect doctor` of a file.

In the dialect that all storages share.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from recollect.orchestrator.memories.memory_store import TYPED
from recollect.orchestrator.memories.rows import PRESENT
from recollect.orchestrator.storage.interface import Session

RESTART = "Restart the orchestrator: it embeds what is missing when it starts."
HARMLESS = "They do no harm; please report how this came about."

COUNT_LIVING = f"SELECT count(*) FROM memories WHERE {PRESENT}"
# Of the memories that are searched: those without a vector that do not wait for one either, and
# those that do.
COUNT_VECTORS = """
SELECT coalesce(sum(CASE WHEN v.num IS NULL AND u.num IS NULL THEN 1 ELSE 0 END), 0),
    coalesce(sum(CASE WHEN u.num IS NOT NULL THEN 1 ELSE 0 END), 0)
FROM memories m LEFT JOIN vectors v ON v.num = m.num LEFT JOIN unembedded u ON u.num = m.num
WHERE m.deleted_us IS NULL AND m.archived_us IS NULL
"""
COUNT_KINDS = "SELECT model, length(vector), count(*) FROM vectors GROUP BY 1, 2 ORDER BY 3 DESC"
COUNT_ORPHANS = f"""
SELECT count(*) FROM vectors WHERE num NOT IN (SELECT num FROM memories WHERE {PRESENT})
"""
# The words of a memory are indexed while it is neither deleted nor archived.
COUNT_UNINDEXED = f"""
SELECT count(*) FROM memories WHERE {PRESENT} AND num NOT IN ({{held}})
"""
COUNT_INDEXED_IN_VAIN = f"""
SELECT count(*) FROM ({{held}}) AS held
WHERE num NOT IN (SELECT num FROM memories WHERE {PRESENT})
"""
# What hangs on memories by their numbers.
HANGING = {
    **{table: "num" for table in TYPED},
    "versions": "num",
    "group_members": "num",
    "document_chunks": "num",
}
COUNT_HANGING = """
SELECT count(*) FROM {table} h WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.num = h.{column})
"""
COUNT_LOOSE_LINKS = """
SELECT count(*) FROM relationships r
WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.num = r.source_num)
    OR NOT EXISTS (SELECT 1 FROM memories m WHERE m.num = r.target_num)
"""
# A record without its own columns; plain memories, which have none, are not in the index.
COUNT_BARE = """
SELECT count(*) FROM memories m WHERE m.collection <> 'memories' AND m.collection = '{table}'
    AND NOT EXISTS (SELECT 1 FROM {table} t WHERE t.num = m.num)
"""


class Problem(msgspec.Struct, frozen=True):
    """Something that does not hold."""

    part: str
    text: str
    advice: str
    serious: bool = True
    """Whether anything is lost or answered wrongly by it."""


def check_vectors(session: Session) -> Iterator[Problem]:
    """Every memory that is searched has a vector, of one model, and nothing else has one."""
    [(missing, waiting)] = session.execute(COUNT_VECTORS)
    misfits = sum(count for _, _, count in session.execute(COUNT_KINDS)[1:])
    [(orphans,)] = session.execute(COUNT_ORPHANS)
    if missing:
        yield Problem("vectors", f"Memories without a vector: {missing:,}.", RESTART)
    if misfits:
        text = f"Vectors of another model or length than the others: {misfits:,}."
        yield Problem("vectors", text, RESTART)
    if orphans:
        text = f"Vectors without a memory that is searched: {orphans:,}."
        yield Problem("vectors", text, HARMLESS, serious=False)
    if waiting:
        yield Problem(
            "vectors",
            f"Memories that wait for a vector: {waiting:,}; words find them meanwhile.",
            "The orchestrator embeds them as soon as its model can; see `recollect stats`.",
            serious=False,
        )


def check_words(held_sql: str, restore: str, session: Session) -> Iterator[Problem]:
    """The full text, which holds the words of some memories, holds those that are searched;
    `restore` says how a backup is brought back."""
    [(unindexed,)] = session.execute(COUNT_UNINDEXED.format(held=held_sql))
    [(in_vain,)] = session.execute(COUNT_INDEXED_IN_VAIN.format(held=held_sql))
    if unindexed or in_vain:
        yield Problem(
            "words",
            f"The full-text index lacks {unindexed:,} memories and holds {in_vain:,} too many.",
            f"Searching by words misses something. {restore}",
        )


def check_links(restore: str, session: Session) -> Iterator[Problem]:
    """What hangs on a memory has one, and a record has its own columns."""
    [(loose,)] = session.execute(COUNT_LOOSE_LINKS)
    if loose:
        yield Problem("links", f"Relationships without a memory: {loose:,}.", HARMLESS, False)
    for table, column in HANGING.items():
        [(count,)] = session.execute(COUNT_HANGING.format(table=table, column=column))
        if count:
            text = f"Rows of {table} without a memory: {count:,}."
            yield Problem("links", text, HARMLESS, serious=False)
    for table in TYPED:
        [(count,)] = session.execute(COUNT_BARE.format(table=table))
        if count:
            text = f"Memories of {table} without their own columns: {count:,}."
            yield Problem("links", text, restore)
