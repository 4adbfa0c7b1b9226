"""Search by words: FTS5 with BM25, fed in one statement a batch of commits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from recollect.orchestrator.rows import encode_json
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.storage.inserting import Insert, insert_rows, insert_sql
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol.errors import Unsupported

TERMS_MAX = 64

# A trigger for each row would halve the rate of inserts.
FORGET = "DELETE FROM memories_fts WHERE rowid IN (SELECT value FROM json_each(?))"
LEARN = Insert("memories_fts", ("rowid", "content"))
LEARN_TOGETHER_MAX = 8  # beyond this, FTS5 takes single rows faster than many in one statement
FIND = """
SELECT memories.num, -bm25(memories_fts) AS score
FROM memories_fts JOIN memories ON memories.num = memories_fts.rowid
WHERE memories_fts MATCH ? AND {condition}
ORDER BY score DESC, memories.num DESC LIMIT ? OFFSET ?
"""

_terms = re.compile(r"\w+").findall


class LexicalIndex(Protocol):
    """Finds memories by their words."""

    def seal(self, session: Session, transactions: Iterable[WriteTransaction]) -> None:
        """Take in what a batch of writes changed, inside their transaction."""
        ...

    def find(
        self, session: Session, query: str, condition: Condition, limit: int, offset: int
    ) -> list[tuple[int, float]]:
        """Numbers and scores of the best matches that fit the condition."""
        ...


class Fts5Index:
    """SQLite's full-text index."""

    def seal(self, session: Session, transactions: Iterable[WriteTransaction]) -> None:
        texts: dict[int, str | None] = {}
        created: set[int] = set()
        for transaction in transactions:
            texts |= transaction.texts
            created.update(c.seq for c in transaction.changes if c.version_before is None)
        # What this batch created is not in the index yet.
        if known := texts.keys() - created:
            session.execute(FORGET, (encode_json(sorted(known)).decode(),))
        rows = [(num, text) for num, text in texts.items() if text is not None]
        if len(rows) <= LEARN_TOGETHER_MAX:
            insert_rows(session, LEARN, rows)
        else:
            session.executemany(insert_sql(LEARN, 1), rows)

    def find(
        self, session: Session, query: str, condition: Condition, limit: int, offset: int
    ) -> list[tuple[int, float]]:
        match = match_expression(query)
        if match is None:
            return []
        sql, params = condition
        rows = session.execute(FIND.format(condition=sql), (match, *params, limit, offset))
        return [(int(num), float(score)) for num, score in rows]


class NoLexicalIndex:
    """A storage without full text."""

    def seal(self, session: Session, transactions: Iterable[WriteTransaction]) -> None:
        """Nothing to take in."""

    def find(
        self, session: Session, query: str, condition: Condition, limit: int, offset: int
    ) -> list[tuple[int, float]]:
        raise Unsupported("This storage has no full-text search yet; use semantic_search.")


def match_expression(query: str) -> str | None:
    """A query of FTS5 that any of the words satisfies; None if there is no word in it.

    Each word is quoted, so that no text can be taken for an operator.
    """
    words = list(dict.fromkeys(_terms(query)))[:TERMS_MAX]
    return " OR ".join(f'"{word}"' for word in words) or None
