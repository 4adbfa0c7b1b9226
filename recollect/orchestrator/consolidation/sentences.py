"""The sentences of a text, each whole: what is kept of a text is never half of one.

A point ends no sentence after a title, an initial or the number of a list, nor does the end of a
line that was only too long.
"""

from __future__ import annotations

import re

from recollect.orchestrator.consolidation.statements import words_in

ENDINGS = (".", "!", "?", ":", ";", "\u2026", "\u3002", "\uff01", "\uff1f")
CLOSERS = "\"')]\u201d\u2019\u300d\u300f"
LINE_CHARS_MIN = 40
"""A line that is shorter was ended on purpose."""
NEAR_CHARS_MAX = 12
_TITLES = words_in("mr mrs ms dr prof st rev gen col sgt capt lt gov sen rep vs bzw")
_BEFORE_NUMBERS = words_in("no nos nr fig figs eq approx ca vol ch sec art pp")

# Never looks twice at the same, however long a row of marks or of empty lines is.
_PLACE = re.compile(
    rf"(?<![.!?\u2026])[.!?\u2026]++[{re.escape(CLOSERS)}]*+(?=\s)"
    rf"|[\u3002\uff01\uff1f]++[{re.escape(CLOSERS)}]*+"
    r"|\n\s*+"
)
_WORD = re.compile(r"(?:^|(?<=[\s(\"']))[^\W_][\w.]*$")
_INITIALS = re.compile(r"[A-Z]|[^\W\d_](?:\.[^\W\d_])+")
_NEXT = re.compile(rf"\s{{0,{NEAR_CHARS_MAX}}}+(\S?)")


def sentences(text: str) -> list[str]:
    """The sentences of a text, as they stand."""
    parts: list[str] = []
    start = 0
    for place in _PLACE.finditer(text):
        if _ends(text, start, place):
            parts.append(text[start : place.end()].strip())
            start = place.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def ended(sentence: str) -> str:
    """A sentence with a mark at its end, so that another can follow."""
    if sentence.endswith(ENDINGS) or sentence.rstrip(CLOSERS).endswith(ENDINGS):
        return sentence
    return f"{sentence}."


def _ends(text: str, start: int, place: re.Match[str]) -> bool:
    """Whether a sentence that begins at `start` ends at a place where one might."""
    following = _NEXT.match(text, place.end())
    follower = following[1] if following is not None else ""
    if place[0].startswith("\n"):
        line = text[max(start, text.rfind("\n", start, place.start()) + 1) : place.start()]
        wrapped = len(line) >= LINE_CHARS_MIN and not line.rstrip().endswith(ENDINGS)
        return not (wrapped and follower.islower() and place[0].count("\n") == 1)
    if place[0][-1] in CLOSERS:
        # What was quoted has ended, and what quotes it may go on.
        return not (follower.islower() or follower == "(")
    if place[0] != ".":
        return True
    near = max(start, place.start() - NEAR_CHARS_MAX)
    before = text[near : place.start()]
    if near == start and before.strip().isdigit():
        return False
    found = _WORD.search(before)
    word = found[0] if found is not None else ""
    if word.casefold() in _BEFORE_NUMBERS:
        return not follower.isdigit()
    return word.casefold() not in _TITLES and _INITIALS.fullmatch(word) is None
