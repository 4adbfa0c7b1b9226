"""What a short text states, taken apart so that two texts can be compared word by word.

No model is asked: the same two texts are always judged alike, and a reason can be given.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import msgspec

from recollect.orchestrator.search.calendar_words import MONTHS, WEEKDAYS
from recollect.orchestrator.search.lexical.stopwords import STOP_WORDS

STATEMENT_CHARS_MAX = 600
"""A longer text says many things; it is only compared as a whole."""


def words_in(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


NEGATIONS = words_in("not no never none nobody nothing neither nor without cannot")
# Words that say when, and so whether two texts speak of the same time at all.
HISTORIC = words_in("was were used formerly previously until ago earlier former had once")
FIRST_PERSON = words_in("i my me mine myself i'm i've we our ours us we're we've")
# Words that may be added without anything else being said.
FILLERS = words_in(
    "really very also actually currently definitely generally please remember note that user "
    "said says mentioned now still today basically simply just"
)
NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        (
            *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
            *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
            *("seventeen", "eighteen", "nineteen", "twenty"),
        )
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "hundred": "100"}
# "one" mostly stands for a thing, not for a number.
del NUMBER_WORDS["one"]
DATE_WORDS = frozenset(word.lower() for word in (*MONTHS, *WEEKDAYS)) | frozenset(
    ["today", "tomorrow", "tonight", "morning", "afternoon", "evening", "noon", "midnight"]
)
# Kept though they stand among the words that nearly every text holds.
TELLING = NEGATIONS | words_in("before after above below on off up down under over more like")
# What something is or is not; before a noun they tell two things apart, as in "the private key".
_STATES = (
    "enabled disabled|on off|open closed|allowed forbidden|true false|accepted rejected|"
    "approved rejected|above below|public private|online offline|active inactive|"
    "available unavailable|required optional|mandatory optional|supported unsupported|"
    "married divorced|passed failed|succeeded failed|synchronous asynchronous|alive dead|up down|"
    "safe unsafe"
)
_VERBS = "enable disable|allow forbid|likes dislikes|loves hates"
# Words that carry no meaning of their own; all other small words tell "from Rome" and "to Rome"
# apart, or "he" and "she".
IDLE = words_in("a an the is are am do does always")

_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)?\d*|\d+\w*")
_NOT = re.compile(r"(?:n['\u2019]t)$")
_VOWEL = re.compile(r"[^\W\d_bcdfghjklmnpqrstvwxz]")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")


class Token(msgspec.Struct, frozen=True):
    """One word: as it compares, and what kind of word it is."""

    word: str
    stem: str
    number: bool
    name: bool
    """Written with a capital where nothing but a name asks for one."""


class Statement(msgspec.Struct, frozen=True):
    """A text as a row of words."""

    text: str
    tokens: tuple[Token, ...]
    content: tuple[Token, ...]
    """The words that say something, in their order, without negations."""
    negated: bool
    historic: bool
    personal: bool
    """It speaks of whoever wrote it."""
    asks: bool
    """It is a question, and so states nothing."""

    @property
    def links(self) -> list[str]:
        """The small words that tell how the others belong together."""
        return [
            t.word
            for t in self.tokens
            if t.word in STOP_WORDS
            and t.word not in IDLE
            and t.word not in FILLERS
            and t.word not in TELLING
        ]

    @property
    def bag(self) -> frozenset[str]:
        return frozenset(token.stem for token in self.content)

    @property
    def numbers(self) -> list[str]:
        return [token.stem for token in self.content if token.number]

    @property
    def names(self) -> list[str]:
        return [token.stem for token in self.content if token.name]


def opposite_states() -> frozenset[frozenset[str]]:
    """Pairs of stems of which a thing is only one at a time."""
    return frozenset(frozenset(map(stem, pair.split())) for pair in _STATES.split("|"))


def opposite_verbs() -> frozenset[frozenset[str]]:
    """Pairs of stems of which one does only one."""
    return frozenset(frozenset(map(stem, pair.split())) for pair in _VERBS.split("|"))


def normalised(text: str) -> str:
    """A text without the differences that do not matter: case, spaces, marks at its end."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    return " ".join(folded.split()).rstrip(".!;, ")


def stem(word: str) -> str:
    """A word without the endings that do not change what is said, roughly."""
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word]
    if _THOUSANDS.fullmatch(word):
        return word.replace(",", "")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    # An abbreviation such as https has no plural.
    if not _VOWEL.search(word[:-1]):
        return word
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-2] if word.endswith(("ches", "shes", "sses", "xes")) else word[:-1]
    return word


def statement_of(text: str, *, begins: bool = True) -> Statement:
    """A text taken apart; `begins` says that it is the beginning of a sentence."""
    tokens: list[Token] = []
    negated = False
    plain = unicodedata.normalize("NFKC", text)
    for found in _WORD.finditer(plain):
        written = found.group().replace("\u2019", "'")
        word = written.casefold()
        if _NOT.search(word):
            negated = not negated
            word = {"won't": "will", "can't": "can"}.get(word, word[:-3])
        word = word.removesuffix("'s")
        # "No, she left" answers something else.
        if word in NEGATIONS and not (word == "no" and plain[found.end() :].startswith(",")):
            negated = not negated
        first = (begins and not tokens) or plain[: found.start()].rstrip()[-1:] in (
            ".",
            "!",
            "?",
            ":",
            "\u201c",
        )
        tokens.append(
            Token(
                word,
                stem(word),
                written[0].isdigit() or word in NUMBER_WORDS or word in DATE_WORDS,
                written[0].isupper() and (not first or written[1:2].isupper()) and word != "i",
            )
        )
    return Statement(
        text,
        tuple(tokens),
        tuple(t for t in tokens if _tells(t) and t.word not in NEGATIONS),
        negated,
        any(token.word in HISTORIC for token in tokens),
        any(token.word in FIRST_PERSON for token in tokens),
        "?" in text,
    )


def telling(tokens: Sequence[Token]) -> list[Token]:
    """The words among some that say something."""
    return [token for token in tokens if _tells(token)]


def _tells(token: Token) -> bool:
    return token.number or token.name or token.word in TELLING or token.word not in STOP_WORDS
