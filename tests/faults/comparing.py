"""Answers of a search, compared with what the stored memories say without any index.

The vectors are made anew from the contents with the light embedder, and each memory of the scope is
compared with the query. Nothing here knows how the orchestrator searches.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.protocol.operations import Recall, SemanticSearch
from tests.faults.tools import database

Ask = Callable[[Any], Any]
"""Gives the answer to an operation."""

DIMENSIONS = 64
K = 7
DEEP = 60
ALL = 1_000
"""So many that a small store is compared vector by vector."""
NAMESPACES = ("app:a", "app:a:b", "app:ab", "user:c")
KINDS = ("general", "semantic")
SCORE_ERROR_MAX = 1e-4
# Between two looks at the same memories: the real clock goes on, and recency with it.
RECALL_ERROR_MAX = 1e-3
LIVING = """
SELECT id, content, namespace, memory_type, importance FROM memories
WHERE deleted_us IS NULL ORDER BY num
"""


class Question(msgspec.Struct, frozen=True):
    """What to look for, and where."""

    query: str
    namespace: str | None = None
    kind: str | None = None
    importance_min: float | None = None

    @property
    def filters(self) -> dict[str, Any] | None:
        """The conditions in the language of the service."""
        conditions: dict[str, Any] = {}
        if self.kind is not None:
            conditions["memory_type"] = self.kind
        if self.importance_min is not None:
            conditions["importance"] = {"gte": self.importance_min}
        return conditions or None

    def fits(self, namespace: str, kind: str, importance: float) -> bool:
        """Whether a memory is within the scope."""
        place = self.namespace
        return (
            (place is None or namespace == place or namespace.startswith(f"{place}:"))
            and (self.kind is None or kind == self.kind)
            and (self.importance_min is None or importance >= self.importance_min)
        )


class Truth:
    """The living memories of a database at one moment."""

    def __init__(self, data: Path) -> None:
        self._rows = database.rows(data / DATABASE_NAME, LIVING)
        self._embedder = HashedEmbedder(DIMENSIONS)
        self._vectors = self._embedder.embed_now([row[1] for row in self._rows])

    def __len__(self) -> int:
        return len(self._rows)

    def similarities(self, question: Question) -> dict[str, float]:
        """Every memory of the scope with its likeness to the query."""
        scores = self._vectors @ self._embedder.embed_now([question.query])[0]
        return {
            memory_id: float(score)
            for (memory_id, _, *fields), score in zip(self._rows, scores, strict=True)
            if question.fits(*fields)
        }

    def questions(self, chance: random.Random, count: int) -> list[Question]:
        """Some by the text of a memory and some by parts of it; with and without scopes."""
        asked = []
        for _ in range(count):
            words = chance.choice(self._rows)[1].split()
            asked.append(
                Question(
                    " ".join(words[: chance.randint(1, len(words))]),
                    chance.choice([None, None, *NAMESPACES]),
                    chance.choice([None, None, *KINDS]),
                    chance.choice([None, None, 0.5, 0.9]),
                )
            )
        return asked


class Comparison:
    """What an orchestrator answers wrongly, gathered over many questions."""

    def __init__(self, *, exact: bool = True) -> None:
        self.exact = exact
        """Whether every nearest must be found; large segments are searched by an index, which may
        miss one in some places, but never gives a wrong score or too few."""
        self.wrong: list[str] = []
        self.wanted = 0
        self.found = 0

    @property
    def share_found(self) -> float:
        """How many of the nearest were found."""
        return self.found / max(1, self.wanted)

    def semantic(self, ask: Ask, truth: Truth, question: Question, k: int = K) -> None:
        """The nearest are those of the scope that are nearest, with their own likeness."""
        answer = ask(
            SemanticSearch(question.query, k, question.filters, namespace=question.namespace)
        )
        told = [(result["id"], result["score"]) for result in answer["results"]]
        expected = truth.similarities(question)
        best = sorted(expected.values(), reverse=True)[:k]
        for memory_id, score in told:
            if abs(expected.get(memory_id, np.inf) - score) > SCORE_ERROR_MAX:
                self.wrong.append(
                    f"{question}: {memory_id} has {score}, not {expected.get(memory_id)}"
                )
        if len(told) != len(best) or len(dict(told)) != len(told):
            self.wrong.append(f"{question}: {len(told)} results, where {len(best)} exist")
        hits = sum(score >= min(best) - SCORE_ERROR_MAX for _, score in told) if best else 0
        if self.exact and hits < len(best):
            self.wrong.append(f"{question}: {hits} of the {len(best)} nearest")
        self.wanted += len(best)
        self.found += hits

    def recall(
        self, ask: Ask, truth: Truth, question: Question, before: dict[str, float] | None = None
    ) -> dict[str, float]:
        """K of the scope where K exist, scored as they were before; returns the scores."""
        limit = DEEP if before is None else K
        answer = ask(
            Recall(
                question.query,
                limit,
                question.filters,
                namespace=question.namespace,
                collapse=False,
            )
        )
        told = {result["id"]: result["score"] for result in answer["results"]}
        expected = truth.similarities(question)
        if not told.keys() <= expected.keys():
            self.wrong.append(f"{question}: recalled {told.keys() - expected.keys()}")
        if len(told) != min(limit, len(expected)):
            self.wrong.append(f"{question}: {len(told)} recalled of {len(expected)}")
        if before is not None and self.exact:
            best = sorted(before.values(), reverse=True)[: len(told)]
            told_best = sorted(told.values(), reverse=True)
            if not np.allclose(told_best, best, rtol=0, atol=RECALL_ERROR_MAX):
                self.wrong.append(f"{question}: recalled with {told_best}, before with {best}")
            for memory_id, score in told.items():
                if abs(before.get(memory_id, score) - score) > RECALL_ERROR_MAX:
                    self.wrong.append(f"{question}: {memory_id} {score}, {before[memory_id]}")
        return told
