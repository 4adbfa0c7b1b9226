"""How many tokens a text has: what budgets are kept by.

Without the vocabulary of the model that will read a text its tokens can only be estimated. The
estimate adds up, for each character after the one before it, about how often the usual
vocabularies begin a new token there; rather too often than too seldom.
"""

from __future__ import annotations

import re
from typing import Protocol

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.int64]

# Which letters often follow a letter within a word. At any other pair a word falls apart: that is
# what sets text apart from keys, hashes and noise, which have two to three times as many tokens.
FOLLOWING = {
    "a": "bcdfgiklmnprstuvxy",
    "b": "aceijlorsuy",
    "c": "acehiklorstu",
    "d": "adeilorstu",
    "e": "abcdefgilmnopqrstvwxy",
    "f": "aefilorstu",
    "g": "aefghilmnorstu",
    "h": "aefiortu",
    "i": "abcdefgklmnoprstvxz",
    "j": "eos",
    "k": "eis",
    "l": "adefilostuy",
    "m": "abdeilmopsu",
    "n": "acdefgiklnopstuvy",
    "o": "abcdefgiklmnoprstuvw",
    "p": "adeiloprstuy",
    "q": "u",
    "r": "acdefgiklmnorstuvwy",
    "s": "acehiklopstuwy",
    "t": "acefhilmoprstuwy",
    "u": "abcdefgilmnprst",
    "v": "aei",
    "w": "aehinors",
    "x": "aceipt",
    "y": "gilnopst",
    "z": "ae",
}
UNIT = 40
"""Weights are whole numbers; so many make a token."""
ASCII = 128
# What a letter costs after another: within a word, where the pair is rare, in capitals, and where
# a capital follows a small letter.
WITHIN, RARE, CAPITALS, RARE_CAPITALS, HUMP = 5, 38, 14, 32, 40
SPACE_AGAIN, LINE_AGAIN, MARK_AGAIN, MARK_AFTER_MARK = 6, 20, 16, 32
# What characters beyond ASCII cost, from each of these on. Where nothing better is known, it is
# their bytes: no vocabulary makes more of them.
_BLOCKS: tuple[tuple[int, float], ...] = (
    (0x00, 1),
    (0x80, 2),
    (0x370, 1.5),  # Greek
    (0x400, 0.9),  # Cyrillic
    (0x530, 2),
    (0x600, 1.25),  # Arabic
    (0x700, 2),
    (0x800, 3),
    (0x900, 1.6),  # Devanagari
    (0x980, 3),
    (0xE00, 2),  # Thai
    (0xE80, 3),
    (0x10A0, 2.4),  # Georgian
    (0x1100, 3),
    (0x1E00, 2.5),  # Latin letters with two marks, as Vietnamese has them
    (0x1F00, 3),
    (0x2010, 1.5),  # dashes, quotation marks, ellipsis
    (0x2028, 3),
    (0x3040, 1.3),  # kana
    (0x3100, 3),
    (0x4E00, 2.2),  # ideographs
    (0xA000, 3),
    (0xAC00, 2.2),  # Hangul
    (0xD7B0, 3),
    (0x10000, 4),
    (0x1F300, 3.2),  # emoji
    (0x1FB00, 4),
)
_BLOCK_STARTS = np.array([start for start, _ in _BLOCKS])
_BLOCK_WEIGHTS = np.array([round(cost * UNIT) for _, cost in _BLOCKS])
_LAST_WORD = re.compile(r"\S+\Z")


class TokenCounter(Protocol):
    """Counts tokens; never too few."""

    name: str

    def count(self, text: str) -> int:
        """The tokens of a text."""
        ...

    def cut(self, text: str, tokens_max: int) -> str:
        """The longest beginning of a text, up to a word's end, that has no more tokens."""
        ...


class Estimate:
    """Counts without a vocabulary, on the safe side of the usual ones."""

    name = "estimate"

    def count(self, text: str) -> int:
        return -(-int(_weights(text).sum()) // UNIT)

    def cut(self, text: str, tokens_max: int) -> str:
        # What a character costs depends on nothing behind it, so every beginning is summed at once.
        spent = _weights(text).cumsum()
        return up_to_a_word(text, int(np.searchsorted(spent, tokens_max * UNIT, side="right")))


def up_to_a_word(text: str, chars: int) -> str:
    """The first characters of a text without a word that they part, unless it is the only one."""
    if chars >= len(text):
        return text
    beginning = text[:chars]
    if not text[chars].isspace() and (parted := _LAST_WORD.search(beginning)):
        whole = beginning[: parted.start()].rstrip()
        return whole or beginning
    return beginning.rstrip()


def _weights(text: str) -> Weights:
    """What each character of a text costs."""
    if text.isascii():
        codes = np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)
        return _pairs_of(codes)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
    plain = codes < ASCII
    pairs = _pairs_of(np.where(plain, codes, 0))
    wide = _BLOCK_WEIGHTS[np.searchsorted(_BLOCK_STARTS, codes, side="right") - 1]
    return np.where(plain, pairs, wide)


def _pairs_of(codes: Weights) -> Weights:
    before = np.empty_like(codes)
    before[:1] = 0
    before[1:] = codes[:-1]
    found: Weights = _PAIRS[before * ASCII + codes]
    return found


def _pair_weight(before: str, char: str) -> int:
    """What a character costs after another; NUL stands for the beginning and for all the rest."""
    if char == " ":
        # One space belongs to what follows it.
        return SPACE_AGAIN if before == " " else 0
    if char.isspace():
        return LINE_AGAIN if before == char else UNIT
    if char.isdigit():
        return 2 * UNIT if before == " " else UNIT
    if char.isalpha():
        return _letter_weight(before, char)
    if before == char:
        return MARK_AGAIN
    return MARK_AFTER_MARK if before.isprintable() and not before.isalnum() else UNIT


def _letter_weight(before: str, char: str) -> int:
    if not before.isalpha():
        return UNIT
    usual = char.lower() in FOLLOWING[before.lower()]
    if char.isupper():
        if before.islower():
            return HUMP
        return CAPITALS if usual else RARE_CAPITALS
    return WITHIN if usual else RARE


_PAIRS: Weights = np.array(
    [_pair_weight(chr(before), chr(char)) for before in range(ASCII) for char in range(ASCII)]
)
