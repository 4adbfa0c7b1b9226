"""Searching the past: what was known at a moment, as it was then.

The indexes hold the present. A memory that has not changed since that moment is found through them;
the versions of those that have, or that were deleted since, are few as a rule: they are put into a
small store of their own, in memory, and searched there.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw
import msgspec

from recollect.orchestrator.clock import parse_moment
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.passages import similarity
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.memory_texts import meaning_of, words_of
from recollect.orchestrator.memories.rows import (
    COLUMNS,
    INSERT,
    JOINED_COLUMNS,
    MemoryRow,
    with_snapshot,
)
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.lexical import Fts5Index, LexicalIndex
from recollect.orchestrator.search.scope import Scope, both
from recollect.orchestrator.search.scopes import WEAK_SHARE, Nearest
from recollect.orchestrator.storage.inserting import insert_sql
from recollect.orchestrator.storage.interface import Params, Row, Session, Storage
from recollect.protocol.errors import LimitExceeded

CHANGED_MAX = 20_000
EMBEDDED_MAX = 512
"""Old versions that are embedded for one question; the latest come first."""

EMBED_WAIT_S = 5.0

CHANGED_SINCE = f"""
SELECT {JOINED_COLUMNS}, v.snapshot FROM versions v JOIN memories m ON m.num = v.num
WHERE v.superseded_us > ? AND v.updated_us <= ? AND {{home}} ORDER BY v.superseded_us LIMIT ?
"""
TABLES = (
    f"CREATE TABLE memories ({COLUMNS})",
    "CREATE UNIQUE INDEX memories_by_num ON memories (num)",
    "CREATE VIRTUAL TABLE memories_fts USING fts5 (content, content = '', contentless_delete = 1, "
    "tokenize = 'porter unicode61 remove_diacritics 2')",
    "CREATE VIRTUAL TABLE memories_terms USING fts5vocab (memories_fts, row)",
    "CREATE VIRTUAL TABLE memories_words USING fts5vocab (memories_fts, instance)",
)
LEARN = "INSERT INTO memories_fts (rowid, content) VALUES (?, ?)"
FITTING = "SELECT num FROM memories WHERE {condition} ORDER BY updated_us DESC LIMIT ?"

Found = list[tuple[MemoryRow, float]]


class PastStore:
    """The versions that were present at a moment and no longer are, in a database in memory."""

    def __init__(self, rows: Iterable[MemoryRow]) -> None:
        self.rows = {row.num: row for row in rows}
        self._connection = apsw.Connection(":memory:")
        for statement in TABLES:
            self._connection.execute(statement)
        if self.rows:
            self._connection.executemany(
                insert_sql(INSERT, 1), [msgspec.structs.astuple(r) for r in self.rows.values()]
            )
            self._connection.executemany(
                LEARN, [(num, words_of(row)) for num, row in self.rows.items()]
            )

    def execute(self, sql: str, params: Params = ()) -> list[Row]:
        return self._connection.execute(sql, tuple(params)).fetchall()

    def executemany(self, sql: str, rows: Iterable[Params]) -> None:
        self._connection.executemany(sql, [tuple(row) for row in rows])

    def by_words(self, query: str, scope: Scope, limit: int) -> Found:
        hits = Fts5Index().find(self, query, scope.condition_in_memory, limit, 0)
        return [(self.rows[num], score) for num, score in hits]

    def fitting(self, scope: Scope, limit: int) -> list[MemoryRow]:
        sql, params = scope.condition_in_memory
        found = self.execute(FITTING.format(condition=sql), (*params, limit))
        return [self.rows[num] for (num,) in found]

    def __enter__(self) -> PastStore:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()


class PastSearch:
    """Finds among the present and the past together."""

    def __init__(self, store: MemoryStore, lexical: LexicalIndex, nearest: Nearest) -> None:
        self._store = store
        self._lexical = lexical
        self._nearest = nearest

    def moment_us(self, as_of: str | float | None, now_us: int) -> int | None:
        """The moment that is asked about; None for the present."""
        moment_us = parse_moment("as_of", as_of)
        return moment_us if moment_us is not None and moment_us < now_us else None

    def settled(self, session: Session, scope: Scope, moment_us: int) -> Scope:
        """The part of a scope that is still as it was.

        If that is little of the store, the moment narrows the scope: then it is listed, rather than
        looked for among all that came later.
        """
        before: Condition = ("memories.updated_us <= ?", [moment_us])
        settled = msgspec.structs.replace(scope, alive=both(scope.alive, before))
        if self._nearest.estimate(session, before).share >= WEAK_SHARE:
            return settled
        narrow = before if scope.narrow is None else both(scope.narrow, before)
        return msgspec.structs.replace(settled, narrow=narrow)

    def by_words(
        self, session: Session, query: str, scope: Scope, moment_us: int, limit: int
    ) -> Found:
        """The best matches of some words, as things were."""
        settled = self.settled(session, scope, moment_us)
        hits = self._lexical.find(session, query, settled.condition, limit, 0)
        present = self._store.rows_of(session, hits)
        with past_store(session, scope, moment_us) as past:
            return merged(present, alike(past.by_words(query, scope, limit), present))[:limit]

    async def by_meaning(
        self,
        storage: Storage,
        meaning: Meaning,
        vector: Vectors,
        scope: Scope,
        moment_us: int,
        limit: int,
    ) -> tuple[Found, int]:
        """The nearest to a vector, as things were, and of how many there was no vector."""

        def read(session: Session) -> tuple[Found, list[MemoryRow]]:
            settled = self.settled(session, scope, moment_us)
            hits = self._nearest.find(session, meaning.index, vector, limit, settled)
            with past_store(session, scope, moment_us) as past:
                changed = past.fitting(scope, EMBEDDED_MAX)
            return self._store.rows_of(session, hits), changed

        present, changed = await storage.read(read)
        if not changed:
            return present[:limit], 0
        made = await meaning.embedding.pooled_within(
            [meaning_of(row) for row in changed], EMBED_WAIT_S
        )
        known = [
            (row, float(one.vector @ vector))
            for row, one in zip(changed, made, strict=True)
            if one is not None
        ]
        return merged(present, known)[:limit], len(changed) - len(known)

    async def candidates(
        self,
        storage: Storage,
        meaning: Meaning,
        words: str,
        vector: Vectors | None,
        scope: Scope,
        moment_us: int,
    ) -> list[tuple[MemoryRow, float | None, float | None]]:
        """Rows as they were and no longer are, each with its score by words and by meaning."""

        def read(session: Session) -> tuple[list[MemoryRow], dict[int, float]]:
            with past_store(session, scope, moment_us) as past:
                found = past.by_words(words, scope, EMBEDDED_MAX)
                rows = {row.num: row for row, _ in found}
                rows |= {row.num: row for row in past.fitting(scope, EMBEDDED_MAX)}
                best = list(rows.values())[:EMBEDDED_MAX]
                return best, {row.num: score for row, score in found}

        rows, scores = await storage.read(read)
        similar: list[float | None] = [None] * len(rows)
        if rows and vector is not None:
            made = await meaning.embedding.pooled_within(
                [meaning_of(row) for row in rows], EMBED_WAIT_S
            )
            similar = [None if one is None else similarity(vector, one) for one in made]
        return [
            (row, scores.get(row.num), nearness)
            for row, nearness in zip(rows, similar, strict=True)
        ]


def past_store(session: Session, scope: Scope, moment_us: int) -> PastStore:
    """What was present at a moment, in the namespace that is asked about, and no longer is."""
    home, params = scope.namespace or ("TRUE", [])
    sql = CHANGED_SINCE.format(home=home)
    found = session.execute(sql, (moment_us, moment_us, *params, CHANGED_MAX + 1))
    if len(found) > CHANGED_MAX:
        raise LimitExceeded(
            f"More than {CHANGED_MAX:,} memories have changed since then: ask about a later "
            "moment, or read single memories with get_memory(as_of=…).",
            field="as_of",
            limit="as_of",
        )
    return PastStore(with_snapshot(MemoryRow(*row[:-1]), row[-1]) for row in found)


def alike(past: Found, present: Found) -> Found:
    """Scores of a small store brought to the scale of the large one, where both have any."""
    if not past or not present or past[0][1] <= 0:
        return past
    factor = present[0][1] / past[0][1]
    return [(row, score * factor) for row, score in past]


def merged(first: Found, second: Found) -> Found:
    """Both together, best first; of equals the later one."""
    return sorted([*first, *second], key=lambda hit: (-hit[1], -hit[0].num))
