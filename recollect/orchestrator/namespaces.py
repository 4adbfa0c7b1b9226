"""Namespaces in their order: one with all that is below it, as spans that an index can walk.

A namespace and those below it are not neighbours: `user:alice-b` stands between `user:alice` and
`user:alice:notes`. So they are two spans, and what several patterns cover is a sorted list of such.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recollect.orchestrator.access.grants import covers
from recollect.orchestrator.calls import Call, Refusal

NEXT = "\x01"
"""Put behind a namespace, it is the first text that can follow: a NUL is in none."""
BEHIND_COLON = chr(ord(":") + 1)


class Span(NamedTuple):
    """All namespaces from one text up to, and without, another."""

    low: str
    high: str


EVERYTHING = Span("", "\x7f")
"""Every namespace begins with a letter."""


def spans_of(prefixes: Iterable[str]) -> list[Span]:
    """Some namespaces with what is below them, in their order and without overlap."""
    given = set(prefixes)
    outer = [p for p in given if not any(q != p and covers(q, p) for q in given)]
    spans = [Span(p, p + NEXT) for p in outer]
    spans += [Span(f"{p}:", p + BEHIND_COLON) for p in outer]
    return sorted(spans)


def readable_spans(call: Call, prefix: str | None) -> list[Span]:
    """Of a namespace and those below it, or of all, what the caller may read."""
    patterns = call.grants.within(prefix)
    if patterns is None:
        return [EVERYTHING] if prefix is None else spans_of([prefix])
    if not patterns:
        call.refusals.append(Refusal("", prefix, "not readable"))
    return spans_of(patterns)
