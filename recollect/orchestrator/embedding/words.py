"""A text as words, in small letters."""

from __future__ import annotations

import re

_find_words = re.compile(r"\w+").findall
# Of plain ASCII, whatever is no part of a word becomes a space: splitting is four times as quick as
# the expression, and gives the same.
_SPACED = bytes(n if chr(n).isalnum() or n == ord("_") else ord(" ") for n in range(128)) + bytes(
    128
)


def words_of(text: str) -> list[str]:
    """The words of a text, in small letters."""
    small = text.lower()
    if small.isascii():
        return small.encode().translate(_SPACED).decode().split()
    return _find_words(small)
