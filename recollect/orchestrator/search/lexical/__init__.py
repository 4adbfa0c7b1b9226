"""Search by words: FTS5 or tsvector for the words and their stems, BM25 over what they find."""

from recollect.orchestrator.search.lexical.fts5 import LEARN, Fts5Index
from recollect.orchestrator.search.lexical.fts5_source import FITTING as FIND
from recollect.orchestrator.search.lexical.interface import Hits, LexicalIndex, Matches
from recollect.orchestrator.search.lexical.text import forget_surroundings, lexical_text
from recollect.orchestrator.search.lexical.tsvector import TsvectorIndex

__all__ = [
    "FIND",
    "LEARN",
    "Fts5Index",
    "Hits",
    "LexicalIndex",
    "Matches",
    "TsvectorIndex",
    "forget_surroundings",
    "lexical_text",
]
