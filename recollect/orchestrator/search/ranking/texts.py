"""What can be read off the text of one memory: what to embed, its passages, and its traits.

Everything here depends on the one text alone, so that it can be computed when the memory is written
and never changes because of what else is stored.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from recollect.orchestrator.embedding.words import words_of

TRAITS_CHARACTERS_MAX = 2_000
TRAITS_KNOWN_MAX = 65_536
TEXTS_CACHED_MAX = 4_096
OPENING_CHARACTERS_MAX = 40
PASSAGES_MAX = 32
PASSAGE_WORDS_MIN = 3
_QUOTES = ('"', "\u201c")

# "Thanks, Caroline!" names who is spoken to, who is rarely whom the text is about. A model of
# sentences weighs a name heavily, so that a question about Caroline would find what others say to
# her. Only a name that is set apart is taken for that: after one of these words, or at the end.
_OPENINGS = """
hey hi hiya hello dear thanks thank_you thx wow whoa yeah yes yep yup no nope nah oh ah aw aww haha
ok okay sure right well so congrats congratulations cool awesome great nice good_morning
good_evening good_afternoon good_night good_job good_luck good_point absolutely definitely totally
exactly agreed sorry sounds_good well_done way_to_go bye goodbye welcome
"""
_openings = frozenset(words.replace("_", " ") for words in _OPENINGS.split())
# The pattern starts with one character, because a scan for that is fast; what stands before it is
# looked at where a name was found.
_set_apart = re.compile(r" [A-Z][a-z]+(?=[!,.?:;]|$)")
_fillings = re.compile(r" (?:so much|a lot|a bunch|again|there)$")
_last_piece = re.compile(r"(?:^|[.!?,;:\n] ?)([^.!?,;:\n]*)$")
_between_sentences = re.compile(r"(?<=[.!?\u2026\u3002\uff01\uff1f])[\"')\]]*\s+|\n+")
_words = re.compile(r"\w+").findall
# A name begins with a capital within a sentence. What stands before it is looked at where one was
# found: a pattern that looked back from every letter would take several times as long. It begins
# with one class of characters, because a scan for that is fast.
_name_or_quotation = re.compile(
    r"[A-Z\"\u201c](?:(?<=[A-Z])[\w'\u2019-]+|(?<![A-Z])[^\"\u201d]{2,60}[\"\u201d])"
).search
_begins_sentence = frozenset(f"{mark} " for mark in '.!?:\u2026"\u201c')
_myself = re.compile(r"I\b").match
_number = re.compile(r"\d+").match
_digit = re.compile(r"\d").search
_TIME_WORDS = """
yesterday today tonight tomorrow ago last next recent recently just soon since until
day night week weekend month year hour minute decade
days nights weeks weekends months years hours minutes decades
morning evening afternoon spring summer autumn winter
monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat
january february march april may june july august september october november december
birthday anniversary holiday christmas thanksgiving easter
"""
_time_words = frozenset(_TIME_WORDS.split())
_time_number = re.compile(
    r"\b(?:(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th)|\d{1,2}:\d\d|\d{1,2} ?[ap]m)\b", re.IGNORECASE
).search


class Traits(msgspec.Struct, frozen=True):
    """What kind of text this is."""

    # The share of the text that is questions, 0..1.
    asks: float
    # Names, numbers and quotations: 0, 0.5 for one, 1 for two or more.
    specifics: float


def without_address(text: str) -> str:
    """The text without the names of those it is addressed to."""
    return _without_address(text) if len(text) <= TRAITS_CHARACTERS_MAX else _unaddressed(text)


def _unaddressed(text: str) -> str:
    kept: list[str] = []
    end = 0
    for match in _set_apart.finditer(text):
        start, mark = match.start(), text[match.start() - 1 : match.start()]
        if mark in (",", "!"):
            start -= 1
        before = text[max(0, start - OPENING_CHARACTERS_MAX) : start]
        if (mark == "," and _closes(before, text[match.end() :][:1])) or _opens(before):
            kept.append(text[end:start])
            end = match.end()
    return "".join((*kept, text[end:])) if kept else text


_without_address = lru_cache(maxsize=TEXTS_CACHED_MAX)(_unaddressed)


def _closes(before: str, after: str) -> bool:
    """Whether a name after a comma ends a sentence as an address does: not 'Lyon, France.'"""
    words = before.rsplit(maxsplit=1)
    return after in ("!", ".", "?") and bool(words) and not words[-1][0].isupper()


def _opens(before: str) -> bool:
    """Whether what stands before a name is only a greeting or the like."""
    piece = _last_piece.search(before)
    if piece is None or (len(before) == OPENING_CHARACTERS_MAX and piece.start() == 0):
        return False
    return _fillings.sub("", piece[1].lower()) in _openings


def embedded_text(content: str, caption: str | None = None) -> str:
    """What to embed of a memory: its content, and the caption of what it shows."""
    text = without_address(content).strip()
    if not caption:
        return text or content
    return f"{text}{'' if text.endswith(('.', '!', '?')) else '.'} {caption}".strip()


def passages(text: str) -> list[tuple[int, int]]:
    """Where each passage (a sentence, or several where there are many) begins and ends.

    A vector pooled over each passage finds the one sentence that answers in a text about many
    things. One that is too short to mean anything alone belongs to the one after it.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for end, after in [*((m.start(), m.end()) for m in _between_sentences.finditer(text)), (-1, 0)]:
        stop = len(text) if end < 0 else end
        if text[start:stop].strip():
            spans.append((start, stop))
        start = after
    merged: list[tuple[int, int]] = []
    fewest = PASSAGE_WORDS_MIN
    if len(spans) > PASSAGES_MAX:
        fewest = 1 + len(_words(text)) // PASSAGES_MAX
    short: int | None = None
    for first, stop in spans:
        begin = first if short is None else short
        if len(_words(text[begin:stop])) < fewest:
            short = begin
            continue
        merged.append((begin, stop))
        short = None
    if short is not None:
        begin = merged.pop()[0] if merged else short
        merged.append((begin, spans[-1][1]))
    return merged[: PASSAGES_MAX - 1] + (
        [(merged[PASSAGES_MAX - 1][0], merged[-1][1])] if len(merged) >= PASSAGES_MAX else []
    )


def traits(content: str) -> Traits:
    """The traits of a text, read from its beginning if it is long."""
    text = content[:TRAITS_CHARACTERS_MAX]
    # By its hash, so that many are known without their texts being kept.
    key = hash(text)
    known = _known_traits.get(key)
    if known is None:
        if len(_known_traits) >= TRAITS_KNOWN_MAX:
            _known_traits.clear()
        known = _known_traits[key] = _traits(text)
    return known


_known_traits: dict[int, Traits] = {}


def _traits(text: str) -> Traits:
    plain = without_address(text)
    asking = 0
    if "?" in plain or "\uff1f" in plain:
        sentences = [part.strip() for part in _between_sentences.split(plain)]
        asking = sum(len(part) for part in sentences if part.endswith(("?", "\uff1f")))
    return Traits(
        asks=asking / max(1, len(plain.strip())) if asking else 0.0,
        specifics=specifics(plain) / 2,
    )


def specifics(text: str) -> int:
    """How many names, quotations and numbers a text holds, up to two."""
    found = 0
    digit = _digit(text)
    while digit is not None:
        found += 1
        if found == 2:
            return 2
        number = _number(text, digit.start())
        digit = _digit(text, number.end()) if number else None
    named: str | None = None
    match = _name_or_quotation(text)
    while match is not None:
        start, what = match.start(), match[0]
        if what[0] in _QUOTES or _is_name(text, start):
            if what != named:
                found += 1
            if found == 2:
                return 2
            named = what
            start = match.end() - 1
        match = _name_or_quotation(text, start + 1)
    return found


def _is_name(text: str, start: int) -> bool:
    """Whether the capital there begins a word, but not a sentence, and is not the word `I`."""
    if start == 0 or text[start - 2 : start] in _begins_sentence:
        return False
    before = text[start - 1]
    return not (before.isalnum() or before == "_" or _myself(text, start))


def forget() -> None:
    """Forget the texts that were looked at."""
    _known_traits.clear()
    for cached in (_without_address, _tells_time):
        cached.cache_clear()


def tells_time(content: str) -> bool:
    """Whether the beginning of a text holds an expression of time."""
    return _tells_time(content[:TRAITS_CHARACTERS_MAX])


@lru_cache(maxsize=TEXTS_CACHED_MAX)
def _tells_time(text: str) -> bool:
    if not _time_words.isdisjoint(words_of(text)):
        return True
    return _digit(text) is not None and _time_number(text) is not None
