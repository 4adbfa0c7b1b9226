"""An embedder without weights: words and their character n-grams, hashed into a vector.

It knows spelling, not meaning: "connection" is near "connections", and no nearer to "link" than
chance. It is deterministic, needs nothing and is fast; the last resort, and what tests use.

A word always falls into the same slots, and texts repeat their words, so the slots of a word are
computed once and kept; a text is then a count over the slots of its words.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from recollect.orchestrator.embedding.interface import Kind, Vectors
from recollect.orchestrator.embedding.words import words_of

WORD_REPEATS = 2  # a whole word weighs as much as this many of its n-grams
NGRAM_SIZES = (3, 4)
WORDS_CACHED_MAX = 50_000
WORD_CHARS_CACHED_MAX = 64  # longer ones are dumps and codes, which hardly come again
CHUNK_TEXTS = 64  # small enough that the counts of a chunk stay in the processor's cache
FEW_TEXTS_MAX = 16  # fewer are quicker one by one, in little memory that stays at hand


class HashedEmbedder:
    """Deterministic vectors from spelling alone."""

    inline = True

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.model = f"hashed-ngrams-v1/{dimensions}"
        # The slots of a word, packed as 32-bit integers. Only ever a shortcut: any thread may fill
        # it, or find it emptied.
        self._slots_by_word: dict[str, bytes] = {}

    def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        """One row a text; a text without any word is the zero vector. The kind changes nothing."""
        if len(texts) <= FEW_TEXTS_MAX:
            return self._embed_few(texts)
        chunks = [
            self._embed_chunk(texts[start : start + CHUNK_TEXTS])
            for start in range(0, len(texts), CHUNK_TEXTS)
        ]
        return np.concatenate(chunks) if chunks else np.zeros((0, self.dimensions), np.float32)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _embed_few(self, texts: Sequence[str]) -> Vectors:
        """The same as a chunk of them."""
        if len(texts) == 1:
            return self._embed_one(texts[0])[None, :]
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for place, text in enumerate(texts):
            vectors[place] = self._embed_one(text)
        return vectors

    def _embed_one(self, text: str) -> Vectors:
        slots = np.frombuffer(self._packed(text), dtype=np.int32)
        counts = np.bincount(slots, minlength=2 * self.dimensions)
        vector = (counts[: self.dimensions] - counts[self.dimensions :]).astype(np.float32)
        vector /= float(vector.dot(vector)) ** 0.5 or 1.0
        return vector

    def _embed_chunk(self, texts: Sequence[str]) -> Vectors:
        packed = [self._packed(text) for text in texts]
        slots = np.frombuffer(b"".join(packed), dtype=np.int32)
        width = 2 * self.dimensions
        if len(texts) > 1:
            lengths = [len(part) // 4 for part in packed]
            slots = slots + np.repeat(np.arange(0, len(texts) * width, width), lengths)
        # The upper half of a text's slots counts downward.
        counts = np.bincount(slots, minlength=len(texts) * width).reshape(len(texts), 2, -1)
        vectors = (counts[:, 0] - counts[:, 1]).astype(np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        norms[norms == 0] = 1.0
        vectors /= norms[:, None]
        return vectors

    def _packed(self, text: str) -> bytes:
        """The slots of a text."""
        known, learn = self._slots_by_word.get, self._learn
        return b"".join([known(word) or learn(word) for word in words_of(text)])

    def _learn(self, word: str) -> bytes:
        """Hash a word that was not met before."""
        if len(self._slots_by_word) >= WORDS_CACHED_MAX:
            self._slots_by_word.clear()
        edged = f"<{word}>"
        grams = [edged] * WORD_REPEATS
        for size in NGRAM_SIZES:
            grams += [edged[at : at + size] for at in range(len(edged) - size + 1)]
        slots = [zlib.crc32(gram.encode()) % (2 * self.dimensions) for gram in grams]
        packed = np.array(slots, dtype=np.int32).tobytes()
        if len(word) <= WORD_CHARS_CACHED_MAX:
            self._slots_by_word[word] = packed
        return packed
