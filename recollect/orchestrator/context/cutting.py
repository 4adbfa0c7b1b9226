"""Cuts a piece so that it fits: at the end of a sentence where there is one, with a mark."""

from __future__ import annotations

import re

import msgspec

from recollect.orchestrator.context.fencing import Quotation
from recollect.tokens import TokenCounter

TEXT_TOKENS_MIN = 16
"""Less of a text is not worth its fences."""
SENTENCE_SHARE = 0.5
"""A sentence that ends before this part of the room does is no place to cut."""
TRIES_MAX = 6
_sentence_ends = re.compile(r"[.!?\u2026][\"')\]\u201d\u2019]*(?=\s|$)|[\u3002\uff01\uff1f]|\n")


class Cut(msgspec.Struct, frozen=True):
    """How much of a piece is given, and what it costs with its fences; None for all of it."""

    tokens: int
    chars: int | None


def cut_to(counter: TokenCounter, nonce: str, n: int, quoted: Quotation, room: int) -> Cut | None:
    """As much of the nth piece as has room; None if that is next to nothing."""
    text_room = room - counter.count(quoted.block(nonce, n, 0))
    for _ in range(TRIES_MAX):
        if text_room < TEXT_TOKENS_MIN:
            return None
        chars = len(up_to_a_sentence(counter.cut(quoted.text, text_room)))
        if not chars or chars >= len(quoted.text):
            return None
        tokens = counter.count(quoted.block(nonce, n, chars))
        if tokens <= room:
            return Cut(tokens, chars)
        # The parts together may have other tokens than one by one.
        text_room -= tokens - room
    return None


def up_to_a_sentence(text: str) -> str:
    """A beginning of a text up to its last sentence, if that is most of it."""
    end = 0
    for found in _sentence_ends.finditer(text, int(len(text) * SENTENCE_SHARE)):
        end = found.end()
    return (text[:end] if end else text).rstrip()
