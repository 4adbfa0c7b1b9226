"""What a query asks, read once before anything is searched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from recollect.orchestrator.embedding.words import words_of
from recollect.orchestrator.search.lexical.stopwords import STOP_WORDS
from recollect.orchestrator.search.ranking.dates import Span, read_dates

# Names that are words as well are only taken for names where they are written like one.
_WORDS_AND_NAMES = """
ai agent amber april art assistant august autumn bill bob bot chance chase coder dawn dean drew
faith frank gene grace grant guy harmony hope human ivy jack jade jasmine jean joy june lily mark
mary max may melody miles norm olive page pat planner pearl penny ray reviewer rich rob robin rose
ruby sage sandy scout sky star sue summer system terry tester tool user violet wade ward will
"""
WORDS_AND_NAMES = frozenset(_WORDS_AND_NAMES.split())
USERS = frozenset({"user", "human", "customer", "me"})
ASSISTANTS = frozenset({"assistant", "ai", "bot", "model", "agent", "system"})

_words = re.compile(r"\w+").findall
_when = re.compile(
    r"\b(?:when|how long|how old|since when|what time|"
    r"(?:what|which) (?:date|day|month|year|week))\b",
    re.IGNORECASE,
).search
_latest = re.compile(
    r"\b(?:latest|newest|(?:most|more) recent(?:ly)?|current(?:ly)?|(?:right )?now(?:adays)?|"
    r"these days|at the moment|at present|today|up[- ]to[- ]date|as of (?:now|today)|still|"
    r"anymore|any more|last time|last (?=did|was|were|had|have|heard|said|seen|known))",
    re.IGNORECASE,
).search
_first = re.compile(
    r"\b(?:first|earliest|initial(?:ly)?|original(?:ly)?|at first|in the beginning|at the start|"
    r"used to|previous(?:ly)?|former(?:ly)?|before (?:that|then|the change))\b",
    re.IGNORECASE,
).search
_beginnings = re.compile(r"(?:^|[.!?:;]\s|\n)\W{0,3}([^\W_][\w-]*)").findall
_told_me = re.compile(
    r"\b(?:did you|have you|you've|according to you)\b|"
    r"\b(?:you|your|the assistant|the bot|the ai)\s+(?:\w+\s+)?(?:said|say|told|tell|recommend\w*|"
    r"suggest\w*|mention\w*|g[ai]ve|given|wrote|written|provid\w*|list\w*|shar\w*|explain\w*|"
    r"answer\w*|advis\w*|advice|propos\w*|describ\w*|repl\w+|offer\w*|help\w*|came|made)\b",
    re.IGNORECASE,
).search
# Words that say which of several is meant, and nothing about what is in it.
_order_words = re.compile(
    r"\b(?:(?:most )?recently|current(?:ly)?|(?:right )?now(?:adays)?|these days|at the moment|"
    r"at present|as of (?:now|today)|original(?:ly)?|initial(?:ly)?|at first|(?:most )?recent|"
    r"latest)\b",
    re.IGNORECASE,
)
_me = re.compile(r"\b(?:I|I'm|I've|I'd|my|me|mine|myself)\b").search
_about_asking = re.compile(r"\b(?:ask(?:s|ed|ing)?|questions?|wonder\w*)\b", re.IGNORECASE).search


class Intent(msgspec.Struct, frozen=True):
    """What a query asks."""

    query: str
    # What to look for by words, and by meaning.
    search_text: str
    embed_text: str
    # Whose memories are asked for, in lower case: by name (1) or only as "I" or "you" (less).
    authors: dict[str, float] = {}
    # The names by which others may speak of them, in lower case.
    names: tuple[str, ...] = ()
    asks_when: bool = False
    # Asks what somebody asked; then a question is an answer.
    asks_about_asking: bool = False
    order: Literal["latest", "first"] | None = None
    spans: tuple[Span, ...] = ()


def read_query(query: str, known_authors: Sequence[str], now_us: int) -> Intent:
    """What a query asks, given who has written what is searched.

    Names of authors are matched against the author of each memory, so they are left out of what is
    searched, unless nothing else would remain.
    """
    spans, undated = read_dates(query, now_us)
    authors, called = _named(query, known_authors)
    order: Literal["latest", "first"] | None = None
    if _latest(query):
        order = "latest"
    elif _first(query):
        order = "first"
    meaning, wording = _without(undated, called), _without(query, called)
    if order is not None:
        meaning, wording = _order_words.sub("", meaning), _order_words.sub("", wording)
    return Intent(
        query=query,
        search_text=wording if _says_something(wording) else query,
        embed_text=meaning if _says_something(meaning) else query,
        authors=authors,
        names=tuple(dict.fromkeys((*map(str.lower, called), *authors))) if called else (),
        asks_when=_when(query) is not None,
        asks_about_asking=_about_asking(query) is not None,
        order=order,
        spans=spans,
    )


def _says_something(text: str) -> bool:
    return any(word not in STOP_WORDS for word in words_of(text))


def _without(text: str, names: list[str]) -> str:
    if not names:
        return text
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return " ".join(re.sub(rf"\b(?:{pattern})(?:['\u2019]s)?\b", " ", text).split())


def _named(query: str, known: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """The authors that a query means, with how sure that is, and what it calls them."""
    tokens = re.findall(r"[^\W_][\w-]*", query)
    beginnings = frozenset(_beginnings(query))
    written: dict[str, list[str]] = {}
    for token in tokens:
        written.setdefault(token.lower(), []).append(token)
    authors: dict[str, float] = {}
    called: dict[str, None] = {}
    folded = query.casefold()
    places = {form: place for place, form in enumerate(written)}
    longest = max(map(len, places), default=0)
    for author in known:
        name = author.casefold().strip()
        if not name or name in USERS or name in ASSISTANTS:
            continue
        if " " in name and name in folded:
            start = folded.index(name)
            authors[name] = 1.0
            called[query[start : start + len(name)]] = None
            continue
        forms = _written_as_name(name, written, places, longest, beginnings)
        if forms:
            authors[name] = 1.0
            called |= dict.fromkeys(forms)
    if not authors:
        authors = _spoken_of(query, {author.casefold().strip() for author in known})
    return authors, list(called)


def _written_as_name(
    name: str,
    written: dict[str, list[str]],
    places: dict[str, int],
    longest: int,
    beginnings: frozenset[str],
) -> list[str]:
    """How a query writes this name: all of it, its first part, or a short form of that.

    `written` are its words, each as it stands there; `places` says in which order they come, and
    `longest` how long they are at the most.
    """
    first = _words(name)[0] if _words(name) else name
    for form in dict.fromkeys((name, first)):
        if form.isdigit() or len(form) < 2 or (form in STOP_WORDS and form != name):
            continue
        found = written.get(form, [])
        if form in WORDS_AND_NAMES or form in STOP_WORDS:
            found = [token for token in found if token[0].isupper() and token != "Will"]
        if found:
            return found
    # Looked up rather than gone through: a question may have thousands of words, and be asked where
    # a thousand have written.
    beginning = (first[:end] for end in range(3, min(len(first), longest + 1)))
    shorts = [short for short in beginning if short in places and short not in STOP_WORDS]
    return [
        token
        for short in sorted(shorts, key=places.__getitem__)
        for token in written[short]
        if token[0].isupper()
        and token[1:].islower()
        # "Plan the release" speaks to nobody called planner.
        and not (token in beginnings and _does(short, first))
    ]


def _does(verb: str, name: str) -> bool:
    """Whether a name says who does something: deploy and deployer, plan and planner."""
    return name in (f"{verb}er", f"{verb}or", f"{verb}r", f"{verb}{verb[-1]}er")


def _spoken_of(query: str, known: set[str]) -> dict[str, float]:
    """In a chat of somebody with an assistant, "you told me" and "my" say whose turn is meant."""
    if not (known & USERS and known & ASSISTANTS):
        return {}
    if _told_me(query):
        return dict.fromkeys(known & ASSISTANTS, 0.75)
    if _me(query):
        return dict.fromkeys(known & USERS, 0.5)
    return {}
