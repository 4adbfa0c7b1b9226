"""The memories that hold common words, kept in memory for the next query that asks for them.

A few hundred words make up most of what questions have in common, and reading one of them from a
million memories takes ten milliseconds. A list that was read once stays good: memories that came
later are read from the index by their numbers, which are higher, and those that have changed are
looked up singly. A list that is too old is read anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Container, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.orchestrator.search.lexical.interface import Numbers
from recollect.orchestrator.search.lexical.matching import Postings
from recollect.orchestrator.search.lexical.postings import (
    read_newer,
    read_postings,
    still_holds,
)
from recollect.orchestrator.search.lexical.query import Term
from recollect.orchestrator.storage.interface import Session

COMMON_MIN = 2_000
"""Shorter lists are read as quickly as they are kept."""
KEPT_MAX = 8_000_000
"""Places in all lists together, at five bytes each."""
CHANGES_KEPT_MAX = 4_096
LOOKED_UP_SHARE_MAX = 0.001
"""Looking up one memory takes as long as reading five hundred in a row."""
GUESSED_SHARE_MAX = 0.1
WARMED_MAX = 256
WARMED_SHARE_MIN = 0.01

MOST_COMMON = "SELECT term, doc FROM memories_terms WHERE doc >= ? ORDER BY doc DESC LIMIT ?"

NOTHING: Numbers = np.zeros(0, dtype=np.int64)


class Kept(msgspec.Struct, frozen=True):
    """The list of a word as it was after a change."""

    docs: NDArray[np.int32]
    counts: NDArray[np.uint8]
    seq: int
    guessed: int
    """How many came in later, and are taken to hold the word once."""


class CommonWords:
    """Lists by word, the last used at the end. Used by all readers, under the lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: OrderedDict[str, Kept] = OrderedDict()
        self._size = 0
        # Numbers of memories whose text changed, with when; the last change at the end.
        self._changes: OrderedDict[int, int] = OrderedDict()
        self._changes_known_since = 0

    def forget(self, nums: Iterable[int], seq: int) -> None:
        """The texts of these memories change, at the latest by this change.

        It is said before the commit, so that no session can see a change that is not known here.
        Should the change be undone, some words are looked up in vain.
        """
        with self._lock:
            for num in nums:
                self._changes[num] = seq
                self._changes.move_to_end(num)
            while len(self._changes) > CHANGES_KEPT_MAX:
                _, self._changes_known_since = self._changes.popitem(last=False)

    def clear(self) -> None:
        """Drop all lists."""
        with self._lock:
            self._lists.clear()
            self._size = 0

    def warm(self, session: Session, seq: int, texts: int, without: Container[str]) -> None:
        """Keep the lists of the most common words, but for some that are never asked for."""
        least = max(COMMON_MIN, int(WARMED_SHARE_MIN * texts))
        for word, frequency in session.execute(MOST_COMMON, (least, WARMED_MAX)):
            if word not in without and self._size + frequency <= KEPT_MAX:
                self._keep(word, read_postings(session, Term("word", word, (word,), 1.0)), seq, 0)

    def knows(self, term: Term) -> bool:
        """Whether a word's list is kept, so that using it costs little."""
        return term.kind == "word" and term.tokens[0] in self._lists

    def read(self, session: Session, term: Term, seq: int) -> Postings:
        """The memories that hold a term, as a session sees them after a change."""
        if term.kind != "word":
            return read_postings(session, term)
        with self._lock:
            kept = self._lists.get(term.tokens[0])
            changed = None
            if kept is not None:
                self._lists.move_to_end(term.tokens[0])
                changed = self._changed_since(kept)
        if kept is not None and changed is not None:
            newer = read_newer(session, term, kept.seq) if seq > kept.seq else NOTHING
            guessed = kept.guessed + len(newer) + len(changed)
            if guessed <= GUESSED_SHARE_MAX * len(kept.docs):
                postings = _brought_up_to_date(session, term, kept, changed, newer)
                if seq > kept.seq and guessed > kept.guessed:
                    self._keep(term.tokens[0], postings, seq, guessed)
                elif seq > kept.seq:
                    self._carry_on(term.tokens[0], kept, seq)
                return postings
        postings = read_postings(session, term)
        self._keep(term.tokens[0], postings, seq, 0)
        return postings

    def _changed_since(self, kept: Kept) -> list[int] | None:
        """What has changed since a list was read; None if that is too much."""
        if kept.seq < self._changes_known_since:
            return None
        changed: list[int] = []
        for num in reversed(self._changes):
            if self._changes[num] <= kept.seq:
                break
            if num <= kept.seq:
                changed.append(num)
            if len(changed) > LOOKED_UP_SHARE_MAX * len(kept.docs):
                return None
        return changed

    def _carry_on(self, word: str, kept: Kept, seq: int) -> None:
        """Note that a list is the same after a later change."""
        with self._lock:
            if self._lists.get(word) is kept:
                self._lists[word] = msgspec.structs.replace(kept, seq=seq)

    def _keep(self, word: str, postings: Postings, seq: int, guessed: int) -> None:
        docs, counts = postings
        if len(docs) < COMMON_MIN or docs[-1] > np.iinfo(np.int32).max:
            return
        few = np.minimum(counts, 255).astype(np.uint8)
        kept = Kept(docs.astype(np.int32), few, seq, guessed)
        with self._lock:
            if (before := self._lists.pop(word, None)) is not None:
                self._size -= len(before.docs)
            self._lists[word] = kept
            self._size += len(docs)
            while self._size > KEPT_MAX:
                _, dropped = self._lists.popitem(last=False)
                self._size -= len(dropped.docs)


def _brought_up_to_date(
    session: Session, term: Term, kept: Kept, changed: Sequence[int], newer: Numbers
) -> Postings:
    docs, counts = kept.docs.astype(np.int64), kept.counts.astype(np.int64)
    if changed:
        same = ~np.isin(docs, changed)
        docs, counts = docs[same], counts[same]
        held = [num for num in sorted(changed) if still_holds(session, term, num)]
        places = np.searchsorted(docs, held)
        docs, counts = np.insert(docs, places, held), np.insert(counts, places, 1)
    if len(newer):
        docs = np.concatenate((docs, newer))
        counts = np.concatenate((counts, np.ones(len(newer), dtype=np.int64)))
    return docs, counts
