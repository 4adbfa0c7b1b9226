"""Reads a context as whoever consumes it does: by the preamble's word, and nothing else."""

from __future__ import annotations

import re
from typing import NamedTuple

_preamble = re.compile(r"Between <data-([a-z]+) \.\.\.> and </data-\1> .*\n")
_attribute = re.compile(r' ([a-z]+)="([^"<>\n]*)"')


class Piece(NamedTuple):
    """What stands between two fences, and what the first of them says."""

    attributes: dict[str, str]
    text: str


def pieces_of(context: str) -> list[Piece]:
    """The pieces; fails if there is anything between them, or anything left over."""
    if not context:
        return []
    head = _preamble.match(context)
    assert head is not None, context[:200]
    nonce, at = head.group(1), head.end()
    opening = re.compile(rf"<data-{nonce}((?:{_attribute.pattern})*)>\n")
    closing = f"\n</data-{nonce}>\n"
    pieces: list[Piece] = []
    while at < len(context):
        opened = opening.match(context, at)
        assert opened is not None, f"no fence at {context[at : at + 200]!r}"
        end = context.index(closing, opened.end())
        text = context[opened.end() : end]
        assert nonce not in text and nonce not in opened.group(1)
        pieces.append(Piece(dict(_attribute.findall(opened.group(1))), text))
        at = end + len(closing)
    return pieces
