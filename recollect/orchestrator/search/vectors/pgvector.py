"""The vectors where they are stored: PostgreSQL with pgvector.

Nothing is kept here, so that any number of orchestrators on one database find at once what one of
them has written. Few vectors are compared one by one. Many are searched through an HNSW index of
half precision, and what it finds is compared once more with the vectors themselves. Vectors have
length 1, so that their inner product is the cosine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.memories.rows import JOINED_COLUMNS
from recollect.orchestrator.search.json_paths import Condition
from recollect.orchestrator.search.vectors.interface import Numbers, Upkeep
from recollect.orchestrator.storage.interface import Row, Session
from recollect.orchestrator.storage.journal import READ_LEDGER
from recollect.orchestrator.storage.listed import numbers

EXACT_MAX = 4_000
"""So many are compared one by one sooner than through an index, and without missing any."""
INDEXED_DIMENSIONS_MAX = 4_000
"""Longer vectors cannot be indexed, and are compared one by one."""
SPARE_MIN = 8
SPARE_SHARE = 0.25
"""What the index finds beyond what is wanted, since half precision may order it otherwise."""

TABLES = ("vectors", "shadow_vectors")
"""A model's vectors are in the second while they are being made, and for a moment after they were
replaced."""
FITS = "model = ? AND vector_dims(vector) = {dimensions}"
EXACT = f"""
SELECT num, -(vector <#> CAST(? AS vector)) AS nearness FROM {{table}}
WHERE {FITS}{{among}} ORDER BY nearness DESC, num DESC LIMIT {{k}}
"""
ALLOWED = " AND num = ANY (CAST(? AS BIGINT[]))"
CHOSEN = " AND num IN (SELECT num FROM memories WHERE {condition})"
# The condition is asked of each that the index brings, in its order, until there are enough.
THROUGH_INDEX = f"""
SELECT num, -(vector <#> CAST(? AS vector)) AS nearness FROM (
    SELECT num, vector FROM {{table}} AS near
    WHERE {FITS}{{among}}
    ORDER BY CAST(vector AS halfvec({{dimensions}}))
        <#> CAST(CAST(? AS vector) AS halfvec({{dimensions}}))
    LIMIT {{spare}}
) AS found ORDER BY nearness DESC, num DESC LIMIT {{k}}
"""
# One statement needs no transaction, and one answer has less to wait for than two.
ROWS = f"""
SELECT {JOINED_COLUMNS}, near.nearness FROM ({THROUGH_INDEX}) AS near
JOIN memories m ON m.num = near.num WHERE {{alive}}
ORDER BY near.nearness DESC, near.num DESC LIMIT {{wanted}}
"""
FITTING = " AND (SELECT {condition} FROM memories WHERE memories.num = near.num)"
SIMILARITIES = f"""
SELECT num, -(vector <#> CAST(? AS vector)) FROM {{table}}
WHERE {FITS} AND num = ANY (CAST(? AS BIGINT[]))
"""
COUNT = f"SELECT count(*) FROM {{table}} WHERE {FITS}"
PAIRS = f"""
SELECT string_agg(CAST(num AS TEXT), ',' ORDER BY num),
    string_agg(CAST(seq AS TEXT), ',' ORDER BY num)
FROM {{table}} WHERE {FITS} AND num > ? AND num <= ?
"""
INDEX_NAME = "SELECT CAST(CAST('{table}' AS regclass) AS oid)"
INDEX_BYTES = "SELECT pg_relation_size(to_regclass(?))"

Hits = list[tuple[int, float]]


class PgvectorIndex:
    """The vectors of one model in the database."""

    def __init__(self, model: str, dimensions: int) -> None:
        self.model = model
        self.dimensions = dimensions
        self.many = False
        """Whether there have been so many changes that there may be many vectors."""
        self.indexed = False
        """Whether the vectors are known to have their index."""

    @property
    def brings_rows(self) -> bool:
        return self.many and self.dimensions <= INDEXED_DIMENSIONS_MAX

    def seen_by(self, session: Session) -> PgvectorHeld:
        return PgvectorHeld(session, self)

    def put(self, num: int, vector: Vectors, seq: int) -> None:
        """It is there already, as it is stored."""

    def remove(self, num: int) -> None:
        """It is gone already."""

    def load(self, nums: Numbers, seqs: Numbers, vectors: Vectors) -> None:
        """They are there already."""

    def expunge(self, nums: Numbers | None = None) -> bool:
        # There are no files of its own; the storage scrubs those of the database.
        return True

    def maintain(self, timeout_s: float) -> Upkeep:
        # The server looks after its index when it is vacuumed, which `optimise_storage` does.
        return self.upkeep_due()

    def upkeep_due(self) -> Upkeep:
        return Upkeep(0, 0, 0, True)

    def close(self) -> None:
        """Nothing goes on in the background."""


class PgvectorHeld:
    """The stored vectors of one model, as one session sees them."""

    def __init__(self, session: Session, index: PgvectorIndex) -> None:
        self._session = session
        self._index = index

    def count(self) -> int:
        model = self._index.model
        return sum(int(self._execute(COUNT, table, (model,))[0][0]) for table in TABLES)

    def search(self, vector: Vectors, k: int, allowed: Numbers | None = None) -> Hits:
        if allowed is not None:
            return self._exact(vector, k, ALLOWED, [allowed])
        return self.find(vector, k, None)

    def search_rows(
        self, vector: Vectors, k: int, alive: Condition
    ) -> list[tuple[Row, float]] | None:
        query, (sql, alive_params) = _flat(vector), alive
        params = (query, self._index.model, query, *alive_params)
        spare = _with_spare(k)
        parts = {"k": spare, "spare": spare, "among": "", "alive": sql, "wanted": k}
        found = self._execute(ROWS, TABLES[0], params, **parts)
        if len(found) < k:
            return None
        return [(row[:-1], float(row[-1])) for row in found]

    def find(
        self, vector: Vectors, k: int, condition: Condition | None, *, few: bool = False
    ) -> Hits:
        """The k nearest that fit a condition over the columns of `memories`; `few` says that so
        little fits that comparing all of it is best."""
        sql, params = ("", []) if condition is None else condition
        indexed = self._index.dimensions <= INDEXED_DIMENSIONS_MAX
        if not few and indexed and self.are_many():
            among = "" if condition is None else FITTING.format(condition=f"({sql})")
            found = self._through_index(vector, k, among, params)
            if len(found) == k:
                return found
            # The index gave up, or there are no more.
        among = "" if condition is None else CHOSEN.format(condition=sql)
        return self._exact(vector, k, among, params)

    def similarities(self, vector: Vectors, nums: Numbers) -> npt.NDArray[np.float32]:
        nums = np.asarray(nums, dtype=np.int64)
        params = (_flat(vector), self._index.model, nums)
        found: dict[int, float] = {}
        for table in TABLES:
            if found := dict(self._execute(SIMILARITIES, table, params)):
                break
        nothing = float("nan")
        return np.array([found.get(num, nothing) for num in nums.tolist()], dtype=np.float32)

    def pairs(self, after: int, upto: int) -> tuple[Numbers, Numbers]:
        [(nums, seqs)] = self._execute(PAIRS, TABLES[0], (self._index.model, after, upto))
        return numbers(nums), numbers(seqs)

    def describe(self) -> dict[str, Any]:
        count = self.count()
        segments = []
        for table in TABLES:
            name = index_name(self._session, table, self._index.dimensions)
            [(size_bytes,)] = self._session.execute(INDEX_BYTES, (name,))
            if size_bytes is not None:
                segments.append(
                    {
                        "kind": "hnsw",
                        "vectors": count,
                        "tombstones": 0,
                        "bytes": size_bytes,
                        "saved": True,
                    }
                )
        return {"vectors": count, "segments": segments[:1], "head": 0, "building": False}

    def are_many(self) -> bool:
        """Whether there may be more than are compared one by one."""
        # Every vector has a change of its own, and changes only become more.
        if not self._index.many:
            [(seq, _)] = self._session.execute(READ_LEDGER)
            self._index.many = seq > EXACT_MAX
        return self._index.many

    def _exact(self, vector: Vectors, k: int, among: str, params: list[Any]) -> Hits:
        asked = (_flat(vector), self._index.model, *params)
        return self._first(EXACT, asked, k, among)

    def _through_index(self, vector: Vectors, k: int, among: str, params: list[Any]) -> Hits:
        query = _flat(vector)
        asked = (query, self._index.model, *params, query)
        return self._first(THROUGH_INDEX, asked, k, among)

    def _first(self, sql: str, params: tuple[Any, ...], k: int, among: str) -> Hits:
        """What the first table finds that finds anything."""
        if k <= 0:
            return []
        spare = _with_spare(k)
        for table in TABLES:
            if found := self._execute(sql, table, params, k=k, spare=spare, among=among):
                return [(num, float(nearness)) for num, nearness in found]
        return []

    def _execute(self, sql: str, table: str, params: tuple[Any, ...], **parts: Any) -> list[Any]:
        statement = sql.format(table=table, dimensions=self._index.dimensions, **parts)
        return self._session.execute(statement, params)


def index_name(session: Session, table: str, dimensions: int) -> str:
    """The name of an HNSW index, which stays with its table when that is renamed."""
    [(oid,)] = session.execute(INDEX_NAME.format(table=table))
    return f"{INDEX_PREFIX}{oid}_{dimensions}"


INDEX_PREFIX = "hnsw_"


def _with_spare(k: int) -> int:
    return k + max(SPARE_MIN, int(SPARE_SHARE * k))


def _flat(vector: Vectors) -> Vectors:
    return np.asarray(vector, dtype=np.float32).reshape(-1)
