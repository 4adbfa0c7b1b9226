"""What a sentence is about, where it says of one thing the one value that it can have.

"Alice's favourite colour is blue" is about Alice's favourite colour, and that is blue. Only forms
are read that leave no choice: a person has one birthday, and many hobbies.
"""

from __future__ import annotations

import re

import msgspec

from recollect.orchestrator.consolidation.statements import (
    Statement,
    Token,
    statement_of,
    telling,
    words_in,
)

SUBJECT_CHARS_MAX = 80
# What there is one of at a time.
ATTRIBUTES = words_in(
    "name email phone address deadline birthday birthdate age city town country job title role "
    "manager boss supervisor salary budget price cost limit timeout port version location owner "
    "lead leader status password language timezone capital headquarters size date time weight "
    "height diet username id url host hostname region model employer spouse wife husband colour "
    "color quota threshold interval duration branch nickname nationality blood major passphrase "
    "endpoint database backend framework editor due start end launch release venue agenda "
    "landlord maintainer ceo cto chair president population temperature speed"
)
# Whatever follows one of these is one of a kind.
SINGULAR = words_in(
    "favourite favorite preferred default main primary current maximum minimum max min"
)
# Attributes whose value is a plain word. Of the others a plain word is mostly a judgement: a price
# may be high and negotiable.
WORD_VALUED = words_in(
    "colour color language diet status role job title editor framework database backend blood "
    "major nationality model branch region"
)
_ATTRIBUTE = r"(?P<attribute>[\w-]+(?: [\w-]+){0,3})"
_OWNER = r"(?P<owner>[\w.-]+(?: [\w.-]+){0,3})"
_IS = r" (?:is|will be) (?P<rest>.+)"
# Verbs whose object is one at a time.
_VERBS = (
    "lives in|lives at|works at|works for|works as|is married to|was born in|was born on|"
    "is based in|is located in|reports to|is called|is named|costs|is due on|is due by|is due|"
    "starts at|starts on|ends at|ends on|expires on|weighs|is written in|is hosted on|"
    "is hosted in|is hosted by|is owned by|is led by|is maintained by|is scheduled for|is set to|"
    "runs on port|listens on port|was founded in|is headquartered in|studies at|opens at|closes at"
)
PATTERNS = (
    re.compile(rf"{_OWNER}['\u2019]s? {_ATTRIBUTE}{_IS}", re.IGNORECASE),
    re.compile(rf"the {_ATTRIBUTE} (?:of|for) (?:the )?{_OWNER}{_IS}", re.IGNORECASE),
    re.compile(rf"(?P<owner>my|our) {_ATTRIBUTE}{_IS}", re.IGNORECASE),
    # The staging port is one; of a mere port nobody knows which.
    re.compile(rf"(?P<owner>the) (?P<attribute>[\w-]+(?: [\w-]+){{1,3}}){_IS}", re.IGNORECASE),
    re.compile(rf"{_OWNER} (?P<attribute>{_VERBS}) (?P<rest>.+)", re.IGNORECASE),
)
VERBS = PATTERNS[-1]
# What these stand for is said elsewhere.
POINTING = words_in("he she it they this that these those there one who which what")
# A judgement says nothing of which one it is.
JUDGING = words_in(
    "important good bad nice great fine new old big small large hard easy unknown unclear "
    "missing ready tight late early secret wrong right correct known set public private up down "
    "so"
)
PLACES = words_in("in at on by for from to with near")
# From here on a sentence says when, where or on what condition the rest holds.
QUALIFYING = PLACES | words_in(
    "since during until when if under as after before per while unless because of but though "
    "although except only through via"
)


class Said(msgspec.Struct, frozen=True):
    """A subject with what is said of it."""

    subject: str
    """As it compares."""
    shown: str
    rest: Statement
    place: str
    """The preposition that the rest begins with: at three and in Berlin are no rivals."""
    terms: tuple[str, ...]
    """When, where or on what condition it holds: as it compares."""


def said_by(text: str) -> Said | None:
    """What a single sentence says of its one subject; None if it has not that form."""
    plain = " ".join(text.split()).rstrip(".!; ")
    if not plain or "\n" in text.strip() or re.search(r"[.!?;]\s", plain):
        return None
    for pattern in PATTERNS:
        found = pattern.fullmatch(plain)
        if found is not None and (said := _said(found, pattern is VERBS)) is not None:
            return said
    return None


def _said(found: re.Match[str], verb: bool) -> Said | None:
    owner, attribute = found["owner"].strip(), found["attribute"].strip().casefold()
    owned = statement_of(owner).tokens
    if not verb and not _single(attribute):
        return None
    if len(owner) > SUBJECT_CHARS_MAX or any(token.word in POINTING for token in owned):
        return None
    rest = statement_of(found["rest"], begins=False)
    if not rest.content or rest.content[0].word in JUDGING:
        return None
    if not verb and not _valued(attribute, rest):
        return None
    first = rest.tokens[0].word
    bound = next((at for at, t in enumerate(rest.tokens) if at and t.word in QUALIFYING), None)
    return Said(
        " ".join([*_kept(owned), "/", *_kept(statement_of(attribute).tokens)]),
        f"{owner} {attribute}" if verb else f"{attribute} of {owner}",
        rest,
        first if first in PLACES else "",
        () if bound is None else tuple(t.stem for t in rest.tokens[bound:]),
    )


def _valued(attribute: str, rest: Statement) -> bool:
    """Whether what follows looks like a value, and not like an opinion."""
    words = attribute.split()
    if words[-1] in WORD_VALUED or words[0] in SINGULAR:
        return True
    return bool(rest.numbers or rest.names)


def _single(attribute: str) -> bool:
    words = attribute.split()
    return words[-1] in ATTRIBUTES or words[0] in SINGULAR


def _kept(tokens: tuple[Token, ...]) -> list[str]:
    """The words of a subject that tell it from others; all of them if none does."""
    return [t.stem for t in telling(tokens)] or [t.stem for t in tokens]
