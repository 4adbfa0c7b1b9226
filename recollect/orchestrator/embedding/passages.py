"""Vectors of the passages of a text, pooled from the same run of the model that gives its own.

They are kept beside the text's vector, one after another, as 8-bit numbers. Each is stretched to
use all of their range; the length it gets by that is taken out again when it is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from recollect.orchestrator.embedding.interface import Pooled, Vectors

PASSAGES_MAX = 6
PASSAGE_TOKENS_MIN = 4
"""Fewer hardly say anything of their own, and are near to all kinds of questions."""
LARGEST = 127
SMALLEST = 1e-9  # a vector of zeros stays one

Spans = Sequence[tuple[int, int]]
Split = Callable[[str], Spans]
"""Says where each passage of a text begins and ends."""
Labels = npt.NDArray[np.int8]
"""The passage that each token belongs to, counted from 1; 0 for none."""


def fewer(spans: Spans, spans_max: int = PASSAGES_MAX) -> Spans:
    """No more than so many spans; neighbours are taken together, as evenly as can be."""
    count = len(spans)
    if count <= spans_max:
        return spans
    edges = [place * count // spans_max for place in range(spans_max + 1)]
    return [(spans[first][0], spans[end - 1][1]) for first, end in pairwise(edges)]


def labelled(offsets: Spans, spans: Spans) -> Labels:
    """Which passage each token stands in; a token that stands for no characters is in none."""
    begins, ends = np.array(spans).T
    starts, stops = np.array(offsets, dtype=np.int64).reshape(-1, 2).T
    place = np.searchsorted(begins, starts, side="right")
    inside = (stops > starts) & (place > 0) & (starts < ends[place - 1])
    labels: Labels = np.where(inside, place, 0).astype(np.int8)
    return labels


def labels_of(windows: Sequence[Spans], spans: Spans) -> Sequence[Labels | None]:
    """Which passage each token stands in, given where the tokens of each window of a text stand.

    A text may be too long to be read to its end: only what is read is divided.
    """
    end = max((stop for _, stop in windows[-1]), default=0)
    read = [span for span in spans if span[0] < end]
    if len(read) < 2:
        return [None] * len(windows)
    few = fewer(read)
    return [labelled(offsets, few) for offsets in windows]


class PassageSums:
    """What the tokens of some texts add up to, passage by passage."""

    def __init__(self, spans_by_text: Mapping[int, Spans], dimensions: int) -> None:
        self.spans_by_text = spans_by_text
        self._slot_of = {text: slot for slot, text in enumerate(spans_by_text)}
        shape = (len(spans_by_text), PASSAGES_MAX)
        self._sums = np.zeros((*shape, dimensions), np.float32)
        self._counts = np.zeros(shape, np.float32)

    def add(self, batch: Sequence[tuple[int, Labels | None]], tokens: Vectors) -> None:
        """Add the tokens of a batch, of whose rows each belongs to a text and may be labelled."""
        if all(labels is None for _, labels in batch):
            return
        wide = np.zeros((len(batch), 1, tokens.shape[1]), np.int8)
        for row, (_, labels) in enumerate(batch):
            if labels is not None:
                wide[row, 0, : len(labels)] = labels
        chosen = (wide == np.arange(1, PASSAGES_MAX + 1)[:, None]).astype(np.float32)
        sums, counts = np.matmul(chosen, tokens), chosen.sum(axis=2)
        for row, (text, labels) in enumerate(batch):
            if labels is not None:
                self._sums[self._slot_of[text]] += sums[row]
                self._counts[self._slot_of[text]] += counts[row]

    def kept(self, texts: int) -> list[bytes]:
        """For each of so many texts, its passages as they are kept."""
        kept = [b""] * texts
        for text, slot in self._slot_of.items():
            kept[text] = packed(self._sums[slot][self._counts[slot] >= PASSAGE_TOKENS_MIN])
        return kept


def packed(vectors: Vectors) -> bytes:
    """The vectors of some passages as they are kept."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=SMALLEST)
    stretched: npt.NDArray[np.int8] = np.rint(vectors * (LARGEST / largest)).astype(np.int8)
    return stretched.tobytes()


def best_similarities(vector: Vectors, kept: Sequence[bytes]) -> Vectors:
    """For each text, all of which have passages, the cosine of the one nearest to a unit vector."""
    dimensions = len(vector)
    passages = np.frombuffer(b"".join(kept), np.int8).reshape(-1, dimensions).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", passages, passages))
    cosines = passages @ vector / np.maximum(lengths, 1.0)
    counts = [len(each) // dimensions for each in kept]
    firsts = np.concatenate(([0], np.cumsum(counts[:-1], dtype=np.int64)))
    best: Vectors = np.maximum.reduceat(cosines, firsts)
    return best


def similarity(vector: Vectors, made: Pooled) -> float:
    """The cosine of a text with a unit vector: its own, or that of its nearest passage."""
    whole = float(made.vector @ vector)
    if not made.passages:
        return whole
    return max(whole, float(best_similarities(vector, [made.passages])[0]))
