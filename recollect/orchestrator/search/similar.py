"""The memories of one collection that are nearest in meaning to a text."""

from __future__ import annotations

import math

import msgspec

from recollect.orchestrator.calls import Call
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.questions import Questions
from recollect.orchestrator.memories.accesses import AccessLog
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.search.scopes import Nearest
from recollect.orchestrator.storage.interface import Session

Near = list[tuple[MemoryRow, float]]
"""Rows with their similarity to what was asked, the nearest first."""


class Question(msgspec.Struct, frozen=True, eq=False):
    """A text with its vector."""

    meaning: Meaning
    vector: Vectors


class Similar:
    """Finds records of a collection by their meaning, as a search of that collection would."""

    def __init__(
        self,
        store: MemoryStore,
        nearest: Nearest,
        scoping: Scoping,
        accesses: AccessLog,
        questions: Questions,
    ) -> None:
        self._store = store
        self._nearest = nearest
        self._scoping = scoping
        self._accesses = accesses
        self._questions = questions

    async def question(self, call: Call, text: str) -> Question:
        """A text, ready to be asked; that it is within limits is for the caller to check."""
        meaning = self._store.meanings.current
        return Question(meaning, await self._questions.vector(meaning, text, call.deadline_us))

    def find(
        self,
        call: Call,
        session: Session,
        question: Question,
        collection: str,
        k: int,
        *,
        namespace: str | None = None,
        threshold: float | None = None,
        only: Condition | None = None,
    ) -> Near:
        """The k nearest that the caller may see; `only` is over the columns of `memories`."""
        scope = self._scoping.scope(
            call, call.now_us, namespace=namespace, collections=[collection], only=only
        )
        hits = self._nearest.find(session, question.meaning.index, question.vector, k, scope)
        least = -math.inf if threshold is None else threshold
        return self._store.rows_of(session, [hit for hit in hits if hit[1] >= least])

    def served(self, call: Call, near: Near) -> None:
        """Count what is shown as read, as every search does; on the event loop's thread."""
        for row, _ in near:
            self._accesses.note(row.id, call.now_us)
