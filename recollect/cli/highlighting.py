"""Which words of a text a query meant, and the stretch of a long text that holds most of them.

The orchestrator knows better why it found a memory; this only guides the eye. So it needs no index
and no tokenizer, and a few rules for endings do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

STEM_CHARS_MIN = 3
PREFIX_CHARS_MIN = 4
SPANS_MAX = 500
SNAP_CHARS_MAX = 24

_WORD = re.compile(r"[^\W_]+")
# Scripts that put no spaces between words: Thai to Khmer, kana, Han, Hangul.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_ENDINGS = (
    *("ations", "ation", "ments", "ment", "ness", "ings", "ions"),
    *("ing", "ion", "ers", "ies", "ied", "est", "ed", "er", "es", "ly", "al", "s", "e", "y"),
)
# Nearly every text has these, so marking them would say nothing.
_COMMON = """
a about all also am an and any are as at be been but by can could did do does done for from get
got had has have he her him his how i if in into is it its just me my no nor not now of off on or
our out over she should so some than that the their them then there these they this those to too
up us was we were what when where which while who whom whose why will with would you your
"""
COMMON = frozenset(_COMMON.split())


class Span(NamedTuple):
    """A stretch of a text, and the word of the query that it matches."""

    start: int
    end: int
    word: str


class Excerpt(NamedTuple):
    """Part of a text, or all of it, with what matches in it."""

    text: str
    spans: list[Span]


class Wanted:
    """The words of a query, ready to be found in texts."""

    def __init__(self, query: str) -> None:
        words = [fold(match[0]) for match in _WORD.finditer(query)]
        telling = [word for word in words if word not in COMMON]
        chosen = telling or words
        self._stems = {stem(word) for word in chosen if not _UNSPACED.search(word)}
        self._prefixes = tuple(s for s in self._stems if len(s) >= PREFIX_CHARS_MIN)
        self._pieces = {piece for word in chosen if _UNSPACED.search(word) for piece in pairs(word)}

    def spans(self, text: str) -> list[Span]:
        """Where the text has those words, in order; of very many only the first."""
        found: list[Span] = []
        for match in _WORD.finditer(text):
            found += self._in_word(match[0], match.start())
            if len(found) >= SPANS_MAX:
                break
        return found

    def _in_word(self, word: str, at: int) -> Iterator[Span]:
        if _UNSPACED.search(word):
            yield from self._in_run(word, at)
            return
        folded = fold(word)
        root = stem(folded)
        if root in self._stems:
            yield Span(at, at + len(word), root)
            return
        for prefix in self._prefixes:
            if folded.startswith(prefix):
                yield Span(at, at + len(word), prefix)
                return

    def _in_run(self, run: str, at: int) -> Iterator[Span]:
        """Pieces in a run of characters without spaces, adjoining ones as one."""
        start = end = -1
        for place in range(len(run)):
            for length in (2, 1):
                if run[place : place + length] in self._pieces and place + length <= len(run):
                    if place > end:
                        if start >= 0:
                            yield Span(at + start, at + end, run[start:end])
                        start = place
                    end = max(end, place + length)
                    break
        if start >= 0:
            yield Span(at + start, at + end, run[start:end])


def fold(word: str) -> str:
    """The word in small letters, without accents."""
    plain = unicodedata.normalize("NFKD", word)
    return "".join(c for c in plain if not unicodedata.combining(c)).casefold()


def stem(word: str) -> str:
    """What is left of a word without its ending; forms of one word mostly share it."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= STEM_CHARS_MIN:
            root = word[: -len(ending)]
            # run-n-ing, plan-n-ed
            double = len(root) > STEM_CHARS_MIN and root[-1] == root[-2] and root[-1] not in "ls"
            return root[:-1] if double else root
    return word


def pairs(run: str) -> list[str]:
    """A run of characters as overlapping pairs, which stand for its words."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def excerpt(text: str, spans: Sequence[Span], chars_max: int) -> Excerpt:
    """The text if it is short enough, else the stretch in which most of the query is met."""
    if len(text) <= chars_max:
        return Excerpt(text, list(spans))
    start = _best_start(text, spans, chars_max)
    end = min(len(text), start + chars_max)
    if end < len(text):
        space = text.rfind(" ", max(start + 1, end - SNAP_CHARS_MAX), end)
        end = space if space > 0 else end
    before, after = ("… " if start else ""), (" …" if end < len(text) else "")
    moved = len(before) - start
    inside = [
        Span(span.start + moved, span.end + moved, span.word)
        for span in spans
        if start <= span.start and span.end <= end
    ]
    return Excerpt(f"{before}{text[start:end]}{after}", inside)


def _best_start(text: str, spans: Sequence[Span], chars_max: int) -> int:
    """Where the stretch begins that holds most different words, then most words, then the first."""
    best, best_worth = 0, (0, 0)
    for first in spans:
        # Some words before the match make it readable.
        start = max(0, first.start - chars_max // 4)
        held = [span for span in spans if start <= span.start and span.end <= start + chars_max]
        worth = (len({span.word for span in held}), len(held))
        if worth > best_worth:
            best, best_worth = start, worth
    best = min(best, len(text) - chars_max)
    if best > 0:
        space = text.find(" ", best, best + SNAP_CHARS_MAX)
        best = space + 1 if space >= 0 else best
    return best
