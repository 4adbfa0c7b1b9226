"""How many tokens a text has: what budgets are kept by."""

from __future__ import annotations

import re
from typing import Protocol

# Words, runs of digits and blanks, and everything else one by one.
_PARTS = re.compile(r"[A-Za-z]+|[0-9]+|\s+|.", re.DOTALL)
WORD_CHARS_A_TOKEN = 3
DIGITS_A_TOKEN = 1
BLANKS_A_TOKEN = 4


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
        return sum(map(_tokens_of, _PARTS.findall(text)))

    def cut(self, text: str, tokens_max: int) -> str:
        spent = 0
        for part in _PARTS.finditer(text):
            spent += _tokens_of(part.group())
            if spent > tokens_max:
                return text[: part.start()].rstrip()
        return text


def _tokens_of(part: str) -> int:
    if part[0].isascii():
        if part[0].isalpha():
            return -(-len(part) // WORD_CHARS_A_TOKEN)
        if part[0].isdigit():
            return -(-len(part) // DIGITS_A_TOKEN)
        if part.isspace():
            # One blank belongs to the word that follows.
            return 0 if part == " " else -(-len(part) // BLANKS_A_TOKEN)
        return 1
    return len(part.encode(errors="surrogatepass"))
