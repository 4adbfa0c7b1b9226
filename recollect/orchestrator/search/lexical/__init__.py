"""Search by words: FTS5 for the words and their stems, BM25 over what it finds."""

from recollect.orchestrator.search.lexical.fts5 import LEARN, Fts5Index
from recollect.orchestrator.search.lexical.interface import (
    Hits,
    LexicalIndex,
    Matches,
    NoLexicalIndex,
)
from recollect.orchestrator.search.lexical.survivors import FITTING as FIND
from recollect.orchestrator.search.lexical.text import lexical_text

__all__ = [
    "FIND",
    "LEARN",
    "Fts5Index",
    "Hits",
    "LexicalIndex",
    "Matches",
    "NoLexicalIndex",
    "lexical_text",
]
