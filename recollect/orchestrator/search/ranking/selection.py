"""Choosing among what is ranked: near-duplicates collapsed, and variety where it is wanted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from recollect.orchestrator.embedding.words import words_of
from recollect.orchestrator.search.ranking.candidates import Candidate, Ranked

COMPARED_MAX = 100
WORDS_SHARED_MIN = 0.9
WORDS_COMPARED_MIN = 10
READ_CACHED_MAX = 2_048
READ_CACHED_CHARACTERS_MAX = 1_000

_first_person = frozenset({"i", "my", "me", "mine", "we", "our", "us"})
# A word of these makes another statement of the same words.
_telling = frozenset({"not", "no", "never", "t", "don", "isn", "won", "none", "without"})


class _Wording(msgspec.Struct, frozen=True):
    words: frozenset[str]
    sequence: tuple[str, ...]
    longest: str
    """One of the words: a text that has not this one has not all of them."""
    author: str | None


def collapse(ranked: Sequence[Ranked], candidates: Mapping[int, Candidate]) -> list[Ranked]:
    """The ranking without near-duplicates; each survivor names those that it stands for.

    Texts are the same if they have the same words in the same order, and nearly the same if long
    texts share nine words of ten and differ neither in a number nor in a negation: what differs
    there is an update. What two people say of themselves is never the same. Only the best hundred
    are compared; what comes after them is left as it is.
    """
    kept: list[Ranked] = []
    # Where the first that has the same words in this order, or in any, was put.
    in_order: dict[tuple[tuple[str, ...], str | None], int] = {}
    in_any: dict[tuple[frozenset[str], str | None], int] = {}
    # The places of those kept by how many words they have: others cannot be alike.
    by_size: dict[int, list[tuple[int, _Wording]]] = {}
    twins: dict[int, list[int]] = {}
    for item in ranked[:COMPARED_MAX]:
        wording = _wording(candidates[item.num])
        ordered, loose = (wording.sequence, wording.author), (wording.words, wording.author)
        twin = in_order.get(ordered)
        size = len(wording.words)
        if twin is None and size >= WORDS_COMPARED_MIN:
            least, most = math.ceil(WORDS_SHARED_MIN * size), int(size / WORDS_SHARED_MIN)
            # With as many words, only the very same are alike.
            words, longest = wording.words, wording.longest
            fewer = [pair for n in range(least, size) for pair in by_size.get(n, ())]
            more = [pair for n in range(size + 1, most + 1) for pair in by_size.get(n, ())]
            near = [
                *(at for at, other in fewer if other.longest in words and _alike(wording, other)),
                *(at for at, other in more if longest in other.words and _alike(wording, other)),
            ]
            near += [in_any[loose]] if loose in in_any else []
            twin = min(near, default=None)
        if twin is not None:
            twins.setdefault(twin, []).append(item.num)
            continue
        in_order[ordered] = len(kept)
        in_any.setdefault(loose, len(kept))
        by_size.setdefault(size, []).append((len(kept), wording))
        kept.append(item)
    kept += ranked[COMPARED_MAX:]
    return [
        msgspec.structs.replace(item, duplicates=tuple(twins[place])) if place in twins else item
        for place, item in enumerate(kept)
    ]


def diversify(
    ranked: Sequence[Ranked],
    vectors: Mapping[int, npt.NDArray[np.float32]],
    lambda_: float,
) -> list[Ranked]:
    """The ranking with variety: each next one is weighed against its likeness to those before.

    `lambda_` is the weight of the score: 1 leaves the order as it is, 0 looks at likeness alone.
    What has no vector is like nothing.
    """
    if lambda_ >= 1 or len(ranked) < 2:
        return list(ranked)
    scores = np.array([item.score for item in ranked])
    spread = float(np.ptp(scores))
    scores = (scores - scores.min()) / spread if spread > 0 else np.ones(len(ranked))
    length = len(next(iter(vectors.values()))) if vectors else 1
    none = np.zeros(length, dtype=np.float32)
    matrix = np.stack([vectors.get(item.num, none) for item in ranked])
    likeness = np.zeros(len(ranked))
    left = np.ones(len(ranked), dtype=bool)
    chosen: list[int] = []
    for _ in range(len(ranked)):
        merit = np.where(left, lambda_ * scores - (1 - lambda_) * likeness, -np.inf)
        best = int(merit.argmax())
        chosen.append(best)
        left[best] = False
        likeness = np.maximum(likeness, matrix @ matrix[best])
    return [ranked[place] for place in chosen]


def _wording(candidate: Candidate) -> _Wording:
    text = candidate.content
    read = _read if len(text) <= READ_CACHED_CHARACTERS_MAX else _read.__wrapped__
    sequence, words, longest, personal = read(text)
    return _Wording(words, sequence, longest, candidate.author if personal else None)


@lru_cache(maxsize=READ_CACHED_MAX)
def _read(text: str) -> tuple[tuple[str, ...], frozenset[str], str, bool]:
    """The words of a text, in order and without, the longest, and whether it says I or we."""
    sequence = tuple(words_of(text)) or (text,)
    words = frozenset(sequence)
    return sequence, words, max(words, key=len), bool(words & _first_person)


def forget() -> None:
    """Forget the texts that were read."""
    _read.cache_clear()


def _alike(one: _Wording, other: _Wording) -> bool:
    # A word for a word is a changed statement; words more or fewer are another wording.
    if one.author != other.author or not (one.words <= other.words or other.words <= one.words):
        return False
    differing = one.words ^ other.words
    if len(differing) > (1 - WORDS_SHARED_MIN) * len(one.words | other.words):
        return False
    return not (differing & _telling or any(word[0].isdigit() for word in differing))
