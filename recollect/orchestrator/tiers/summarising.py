"""What some texts say in few sentences: their own, the most central ones. No model is asked.

A sentence counts for what it has in common with all the others, by the words that tell something:
what many of them speak of is what they are about, and what is said in passing is not. Of those that
count most, each is taken that says something new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

import numpy as np

from recollect.orchestrator.consolidation.sentences import ended, sentences
from recollect.orchestrator.consolidation.statements import normalised, statement_of

SENTENCES_MAX = 300
"""That are weighed against one another; of more, the first ones of each text."""
SENTENCE_CHARS_MAX = 400
SUMMARY_CHARS_MAX = 1_200
SUMMARY_SENTENCES_MIN = 3
SUMMARY_SENTENCES_MAX = 8
ALIKE = 0.6
"""From this likeness on a sentence says nothing new."""
CUT = "…"


def summary_of(texts: Sequence[str]) -> str:
    """A text of the sentences that say most of what some texts say, in their order."""
    found = _sentences(texts)
    likeness = _likeness([sentence for sentence, _ in found])
    # Rounded, so that no machine sees a difference.
    ranks = np.round(likeness.sum(axis=1), 9)
    # A third of what is said; of little, not so little that most of it could no longer be found.
    wanted = min(SUMMARY_SENTENCES_MAX, max(SUMMARY_SENTENCES_MIN, -(-len(found) // 3)))
    chosen = _chosen(found, likeness, ranks, wanted)
    return " ".join(ended(found[at][0]) for at in sorted(chosen))


def _sentences(texts: Sequence[str]) -> list[tuple[str, int]]:
    """The sentences of all texts, each once, with the place of their text."""
    each = max(1, SENTENCES_MAX // max(1, len(texts)))
    found: list[tuple[str, int]] = []
    known: set[str] = set()
    for place, text in enumerate(texts):
        for sentence in sentences(text)[:each]:
            plain = normalised(sentence)
            if plain not in known:
                known.add(plain)
                found.append((_cut(" ".join(sentence.split())), place))
    return found


def _cut(sentence: str) -> str:
    """A sentence that is not too long; a cut one says so."""
    if len(sentence) <= SENTENCE_CHARS_MAX:
        return sentence
    kept = sentence[: SENTENCE_CHARS_MAX - 1]
    whole = kept.rfind(" ")
    return (kept[:whole] if whole > SENTENCE_CHARS_MAX // 2 else kept) + CUT


def _likeness(texts: Sequence[str]) -> np.ndarray:
    """How alike sentences are, by the words that tell something, the rarer the more."""
    bags = [Counter(token.stem for token in statement_of(text).content) for text in texts]
    spread = Counter(word for bag in bags for word in bag)
    places = {word: at for at, word in enumerate(sorted(spread))}
    matrix = np.zeros((len(bags), max(1, len(places))))
    for at, bag in enumerate(bags):
        for word, count in bag.items():
            matrix[at, places[word]] = count * log(1 + len(bags) / spread[word])
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(lengths == 0, 1.0, lengths)
    likeness: np.ndarray = matrix @ matrix.T
    np.fill_diagonal(likeness, 0.0)
    return likeness


def _chosen(
    found: Sequence[tuple[str, int]], likeness: np.ndarray, ranks: np.ndarray, wanted: int
) -> list[int]:
    """Places of the sentences that are taken: central, not alike, rather of texts not heard yet."""
    chosen: list[int] = []
    heard: Counter[int] = Counter()
    length = 0
    waiting = list(range(len(found)))
    # How much of a sentence is not said yet by those that are taken.
    new = np.ones(len(found))

    def order(at: int) -> tuple[float, int, int]:
        times = heard[found[at][1]]
        return -round(ranks[at] * new[at], 9) / (1 + times), times, at

    while waiting and len(chosen) < wanted:
        best = min(waiting, key=order)
        waiting.remove(best)
        sentence, place = found[best]
        fits = length + len(sentence) + 2 <= SUMMARY_CHARS_MAX
        if chosen and (not fits or any(likeness[best, at] >= ALIKE for at in chosen)):
            continue
        chosen.append(best)
        new *= 1.0 - likeness[best]
        heard[place] += 1
        length += len(sentence) + 2
    return chosen
