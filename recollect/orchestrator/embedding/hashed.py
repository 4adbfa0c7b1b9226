"""An embedder without weights: words and their character n-grams, hashed into a vector.

It knows spelling, not meaning: "connection" is near "connections", and no nearer to "link" than
chance. It is deterministic, needs nothing and is fast; the last resort, and what tests use.

A word always falls into the same slots, and texts repeat their words, so the slots of a word are
computed once and kept; a text is then a count over the slots of its words.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Awaitable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from recollect.orchestrator.embedding.interface import Vectors

Slots = npt.NDArray[np.int64]

WORD_REPEATS = 2  # a whole word weighs as much as this many of its n-grams
NGRAM_SIZES = (3, 4)
WORDS_CACHED_MAX = 50_000

_words = re.compile(r"\w+").findall


class HashedEmbedder:
    """Deterministic vectors from spelling alone."""

    inline = True

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.model = f"hashed-ngrams-v1/{dimensions}"
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="embedder")
        # Only ever a shortcut: any thread may fill it or find it emptied.
        self._slots_by_word: dict[str, Slots] = {}

    def embed_now(self, texts: Sequence[str]) -> Vectors:
        """One row a text; a text without any word is the zero vector."""
        size = self.dimensions
        vectors = np.zeros((len(texts), size), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            slots = [self._slots(word) for word in _words(text.lower())]
            if slots:
                # The upper half of the slots counts downward.
                counts = np.bincount(np.concatenate(slots), minlength=2 * size)
                np.subtract(counts[:size], counts[size:], out=row, casting="unsafe")
                length = float(np.dot(row, row)) ** 0.5
                if length:
                    row /= length
        return vectors

    def embed(self, texts: Sequence[str]) -> Awaitable[Vectors]:
        return asyncio.get_running_loop().run_in_executor(self._pool, self.embed_now, texts)

    def _slots(self, word: str) -> Slots:
        slots = self._slots_by_word.get(word)
        if slots is None:
            if len(self._slots_by_word) >= WORDS_CACHED_MAX:
                self._slots_by_word.clear()
            slots = self._slots_by_word[word] = self._hash(word)
        return slots

    def _hash(self, word: str) -> Slots:
        edged = f"<{word}>"
        grams = [edged] * WORD_REPEATS
        for size in NGRAM_SIZES:
            grams += [edged[at : at + size] for at in range(len(edged) - size + 1)]
        return np.array(
            [zlib.crc32(gram.encode()) % (2 * self.dimensions) for gram in grams], dtype=np.int64
        )
