"""What is ranked, and what comes of it."""

from __future__ import annotations

import msgspec


class Candidate(msgspec.Struct):
    """A memory that was found by its words, by its meaning, or beside one that was."""

    num: int
    content: str
    # BM25, larger is better; None where its words did not find it.
    lexical: float | None = None
    # Cosine with the query; with passages, that of the best one. None where it has no vector yet.
    similarity: float | None = None
    author: str | None = None
    session_id: str | None = None
    moment_us: int = 0
    importance: float = 0.5
    strength: float = 1.0


class Ranked(msgspec.Struct, frozen=True):
    """A candidate with its score, and the parts that add up to it."""

    num: int
    score: float
    parts: dict[str, float]
    # Near-duplicates that were collapsed into this one.
    duplicates: tuple[int, ...] = ()
