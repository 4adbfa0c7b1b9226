"""In how many memories a term stands, roughly, without counting them at each query."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from recollect.orchestrator.search.lexical.query import Term
from recollect.orchestrator.storage.interface import Session

FREQUENCIES_MAX = 65_536
DRIFT_MAX = 0.2
"""A frequency is counted anew once the store has grown or shrunk by this share."""

Count = Callable[[Session, Sequence[str]], dict[str, int]]
"""Counts the memories of those words that any holds; one that ends with a star is a prefix."""


class Frequencies:
    """What was counted lately. Used by all readers; every change happens under the lock."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def of(self, session: Session, terms: Sequence[Term], texts: int) -> list[int]:
        """The frequency of each term; of a phrase, that of its rarest word, which bounds it."""
        words = {word for term in terms for word in _counted_words(term)}
        found: dict[str, int] = {}
        with self._lock:
            for word in words:
                counted = self._known.get(word)
                if counted is not None and abs(texts - counted[1]) <= DRIFT_MAX * counted[1]:
                    found[word] = counted[0]
                    self._known.move_to_end(word)
        if missing := sorted(words - found.keys()):
            counts = self._count(session, missing)
            found |= dict.fromkeys(missing, 0) | counts
            self._learn(counts, texts)
        return [
            (sum if term.kind == "prefix" else min)(found[w] for w in _counted_words(term))
            for term in terms
        ]

    # A word that nothing holds is not kept: the next memory may hold it.
    def _learn(self, counts: dict[str, int], texts: int) -> None:
        with self._lock:
            for word, count in counts.items():
                self._known[word] = (count, texts)
                self._known.move_to_end(word)
            while len(self._known) > FREQUENCIES_MAX:
                self._known.popitem(last=False)


def _counted_words(term: Term) -> tuple[str, ...]:
    """The words whose frequencies make up a term's; a prefix is marked by a star."""
    if term.kind == "prefix":
        return (f"{term.tokens[0]}*", *term.tokens[1:])
    return term.tokens
