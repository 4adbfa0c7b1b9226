"""Words as PostgreSQL takes them: a text as a tsvector, a term as a tsquery.

The words are those of our own tokenizer, stems included, so that every storage finds the same.
PostgreSQL's limits are kept here: a word has at most 2,046 bytes, a text at most 1 MB of different
words, and places are told apart up to the 16,383rd word, of one word the first 255.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.search.lexical.query import Term

WORD_CHARS_MAX = 256
"""A longer word is a key or a digest: its beginning tells it from others."""
PLACE_MAX = 16_383
PLACES_OF_WORD_MAX = 255
BYTES_MAX = 1_000_000
WORD_OVERHEAD_BYTES = 4
PLACE_BYTES = 2


def vector_of(words: Sequence[str]) -> str:
    """The words of a text, in their order, with their places."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words, 1):
        known = places.setdefault(word[:WORD_CHARS_MAX], [])
        if len(known) < PLACES_OF_WORD_MAX:
            known.append(min(place, PLACE_MAX))
    left = BYTES_MAX
    parts: list[str] = []
    for word, at in places.items():
        left -= len(word.encode()) + WORD_OVERHEAD_BYTES + PLACE_BYTES * len(at)
        if left < 0:
            break
        parts.append(f"{_quoted(word)}:{','.join(map(str, at))}")
    return " ".join(parts)


def query_of(term: Term) -> str:
    """A term, taken literally."""
    if term.kind == "phrase":
        return " <-> ".join(_quoted(word) for word in term.tokens)
    if term.kind == "word":
        return _quoted(term.tokens[0])
    prefix, *stems = term.tokens
    return " | ".join([f"{_quoted(prefix)}:*", *map(_quoted, stems)])


def counted_query_of(word: str) -> str:
    """The same for a word of which the memories are counted; one with a star is a prefix."""
    return f"{_quoted(word[:-1])}:*" if word.endswith("*") else _quoted(word)


def _quoted(word: str) -> str:
    escaped = word[:WORD_CHARS_MAX].replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
