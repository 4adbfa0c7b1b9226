"""What a query asks for: any text becomes terms to look up, never syntax.

- Words are stemmed as the index stems them; those that nearly every text holds are left out,
  unless there are no others.
- `"words in quotes"` are a phrase: only these words in this order count.
- `conf*` is any word that begins so.
- A name of several parts (`foo.bar`, `parse_http_request`, `parseHttpRequest`, `2023-05-08`, a
  path) counts as a whole, and each of its parts for less.
- Chinese, Japanese, Thai and the like are asked for by pairs of characters, emoji by themselves.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from recollect.orchestrator.search.lexical.spelling import (
    find_emoji,
    find_gapless,
    has_gapless,
    has_parts,
    pairs_of,
    parts_of,
    word_of_emoji,
)
from recollect.orchestrator.search.lexical.stopwords import STOP_WORDS
from recollect.orchestrator.search.lexical.tokens import Tokens

QUERY_CHARS_MAX = 65_536
TERMS_MAX = 256
"""How many terms of a very long query are looked up; the longest words, being the rarest."""
PHRASES_MAX = 16
PHRASE_WORDS_MAX = 12
PREFIX_CHARS_MIN = 2
PART_WEIGHT = 0.5
"""What a part of a name counts, beside 1 for the whole of it."""

# With one of these a prefix may grow to a word whose stem is shorter than the prefix.
ENDINGS = (
    *("", "e", "s", "ed", "es", "y", "ies", "er", "ing", "ion", "tion", "ation"),
    *("al", "able", "ible", "ly", "ty", "ity", "ness", "ment", "ence", "ance"),
)

APOSTROPHES = "'\u2019"
NAME_SIGNS = "._:/\\@#$"

_find_quoted = re.compile('"([^"]*)"|\u201c([^\u201d]*)\u201d')
_find_pieces = re.compile(
    rf"[^\W_]+(?:[-{APOSTROPHES}{re.escape(NAME_SIGNS)}]+[^\W_]+)*\*?"
).findall
_split = re.compile(r"[\W_]+").split


class Term(msgspec.Struct, frozen=True):
    """Something to look up, with what it counts."""

    kind: Literal["word", "prefix", "phrase"]
    text: str
    """As FTS5 is given it."""
    tokens: tuple[str, ...]
    """As the index holds it: the stem, the words of a phrase, or a prefix and shorter stems."""
    weight: float


def terms_of(query: str, tokens: Tokens) -> list[Term]:
    """What to look up for a query, each thing once."""
    reading = _Reading(tokens)
    query = query[:QUERY_CHARS_MAX].replace("\0", " ")
    rest = _find_quoted.sub(reading.take_quoted, query)
    for piece in _find_pieces(rest):
        reading.take_piece(piece)
    if not rest.isascii():
        reading.take_strange(rest)
    return reading.terms()


class _Reading:
    """One query on its way to terms."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._found: dict[tuple[str, tuple[str, ...]], Term] = {}
        self._stopped: list[str] = []
        self._phrases = 0

    def terms(self) -> list[Term]:
        if not self._found:
            for word in self._stopped:
                self.add_word(word)
        found = list(self._found.values())
        if len(found) > TERMS_MAX:
            found.sort(key=lambda term: (term.weight, len(term.text)), reverse=True)
            del found[TERMS_MAX:]
        return found

    def take_quoted(self, match: re.Match[str]) -> str:
        """Take a quoted phrase; what is no phrase is handed back as plain text."""
        quoted = text = match.group(1) or match.group(2) or ""
        if has_gapless(text):
            # A phrase of pairs is a part of a run; runs and other words do not stand side by side.
            runs = find_gapless(text)
            if "".join(runs) != text.strip():
                return f" {quoted} "
            # Its last character alone is a word only where a run ends.
            text = " ".join(pair for pair in pairs_of(runs[0]) if len(pair) == 2)
        return " " if self._add_phrase(text, 1.0) else f" {quoted} "

    def take_piece(self, piece: str) -> None:
        """Take what stands between gaps: a word, or a name of several."""
        whole = piece.removesuffix("*")
        words = [word for word in _split(whole) if word]
        prefix = words.pop() if piece != whole and len(words[-1]) >= PREFIX_CHARS_MIN else None
        named = len(words) > 1 and set(whole).isdisjoint(APOSTROPHES)
        if named and prefix is None:
            self._add_phrase(whole, 1.0)
        # A hyphen joins plain words; other signs make a name of which the parts say less.
        weight = PART_WEIGHT if named and not set(whole).isdisjoint(NAME_SIGNS) else 1.0
        for word in words:
            self._take_word(word, weight)
        if prefix is not None:
            self._add_prefix(prefix)

    def take_strange(self, text: str) -> None:
        """Take emoji, and what FTS5 takes for a word but Python does not."""
        for emoji in find_emoji(text):
            self.add_word(word_of_emoji(emoji))
        for word in self._tokens.folded(text):
            stems = tuple(self._tokens.stems(word))
            if word not in STOP_WORDS and ("word", stems) not in self._found:
                self.add_word(word)

    def add_word(self, word: str, weight: float = 1.0) -> None:
        for folded in self._tokens.folded(word)[:PHRASE_WORDS_MAX]:
            for stem in self._tokens.stems(folded)[:1]:
                self._add(Term("word", folded, (stem,), weight))

    def _take_word(self, word: str, weight: float) -> None:
        if has_gapless(word):
            self._take_gapless(word, weight)
        elif word.lower() in STOP_WORDS:
            self._stopped.append(word)
        else:
            self.add_word(word, weight)
            if has_parts(word) and (parts := parts_of(word)):
                self._add_phrase(" ".join(parts), weight)
                for part in parts:
                    if len(part) > 1 and part.lower() not in STOP_WORDS:
                        self.add_word(part, weight * PART_WEIGHT)

    def _take_gapless(self, word: str, weight: float) -> None:
        for run in find_gapless(word):
            pairs = pairs_of(run)
            if len(pairs) == 1:
                self._add_prefix(pairs[0])
            for pair in pairs[:-1]:
                self.add_word(pair, weight)
            word = word.replace(run, " ")
        for other in word.split():
            self._take_word(other, weight)

    def _add_phrase(self, text: str, weight: float) -> bool:
        """Add several words in order; False if there are not several, or too many phrases."""
        stems = tuple(self._tokens.stems(text))
        if not 2 <= len(stems) <= PHRASE_WORDS_MAX or self._phrases == PHRASES_MAX:
            return False
        self._phrases += 1
        self._add(Term("phrase", text, stems, weight))
        return True

    def _add_prefix(self, text: str) -> None:
        for prefix in self._tokens.folded(text)[:1]:
            stems = {stem for end in ENDINGS for stem in self._tokens.stems(prefix + end)[:1]}
            shorter = sorted(
                s for s in stems if len(s) > 2 and s != prefix and prefix.startswith(s)
            )
            self._add(Term("prefix", text, (prefix, *shorter), 1.0))

    def _add(self, term: Term) -> None:
        key = (term.kind, term.tokens)
        known = self._found.get(key)
        if known is None or known.weight < term.weight:
            self._found[key] = term


def match_expression(text: str) -> str:
    """A text as FTS5 takes it literally."""
    return '"' + text.replace("\0", " ").replace('"', '""') + '"'
