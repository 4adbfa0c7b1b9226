"""Whether two texts say the same, or contradict each other, or neither.

Rather nothing is found than something wrong: what is taken for a duplicate or for outdated will be
archived.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from recollect.orchestrator.consolidation.regions import is_region
from recollect.orchestrator.consolidation.statements import (
    DATE_WORDS,
    FILLERS,
    IDLE,
    NEGATIONS,
    Statement,
    Token,
    opposite_states,
    opposite_verbs,
    words_in,
)
from recollect.orchestrator.consolidation.subjects import Said
from recollect.orchestrator.search.calendar_words import MONTHS, WEEKDAYS

SPELLED_CHARS_MIN = 5
COMMON_WORDS_MIN = 3
"""Below that, two texts that differ in a number have too little in common to be about the same."""
CHANGED_TOKENS_MAX = 4
OPPOSITE_STATES = opposite_states()
OPPOSITE_VERBS = opposite_verbs()
COPULAS = frozenset({"is", "are", "was", "were"})
DEFINITE = frozenset({"the", "my", "our", "his", "her", "its", "their", "your"})
# What stands right after one of these is how much something is, which it is only once. A number
# anywhere else tells things apart, as in "ticket 7 is closed", or is one of several, as in "the bus
# leaves at 9".
MEASURING = COPULAS | words_in(
    "costs cost needs need takes take requires require lasts last weighs weigh equals measures "
    "holds hold has have allows allow"
)


# British and American.
_SPELLINGS = {"grey": "gray"}
_WAYS = (
    (re.compile(r"is(e|ed|er|ing|ation)$"), r"iz\1"),
    (re.compile(r"our(|ed|ing|ite|able|ful)$"), r"or\1"),
    (re.compile(r"([tb])re$"), r"\1er"),
    (re.compile(r"logue$"), "log"),
    (re.compile(r"programme$"), "program"),
    (re.compile(r"ll(ed|er|ing)$"), r"l\1"),
    (re.compile(r"ence$"), "ense"),
)
# One word for each pair of opposites.
_OPPOSED = {word: min(pair) for pair in OPPOSITE_STATES | OPPOSITE_VERBS for word in pair}
_WEEKDAYS = frozenset(word.lower() for word in WEEKDAYS)
_MONTHS = frozenset(word.lower() for word in MONTHS)


def same(one: Statement, other: Statement) -> bool:
    """Whether two texts say the same in nearly the same words."""
    if one.negated != other.negated or one.historic != other.historic or one.asks != other.asks:
        return False
    left, right = _spoken(one), _spoken(other)
    if not left or not right:
        return False
    if [t.stem for t in left if t.number] != [t.stem for t in right if t.number]:
        return False
    if one.links != other.links or _twice_negated(one) or _twice_negated(other):
        return False
    return _alike(left, right) or _turned(one, other)


def skeleton(statement: Statement) -> tuple[str, ...]:
    """What two short texts have in common if they say the same or contradict each other by a
    negation, a number or a word and its opposite."""
    words = ((t.number, _OPPOSED.get(t.stem, t.stem)) for t in _spoken(statement))
    return tuple(sorted("#" if number else _spelled(word) for number, word in words))


def contradiction(one: Statement, other: Statement) -> str | None:
    """Why two texts that are near in meaning cannot both hold; None if they can."""
    # What was may have been otherwise at another time, and a question denies nothing.
    if one.historic or other.historic or one.asks or other.asks or one.links != other.links:
        return None
    left, right = [t.stem for t in _spoken(one)], [t.stem for t in _spoken(other)]
    if one.negated != other.negated:
        alike = _bare(one) == _bare(other) and len(_bare(one)) >= 2
        return "one denies what the other says" if alike else None
    if one.negated:
        return None
    changes = [
        op for op in SequenceMatcher(None, left, right, False).get_opcodes() if op[0] != "equal"
    ]
    if len(changes) != 1 or changes[0][0] != "replace":
        return None
    _, start, end, other_start, other_end = changes[0]
    gone, came = left[start:end], right[other_start:other_end]
    if len(gone) == len(came) == 1 and _opposed(one, other, start, other_start):
        return f"{gone[0]} against {came[0]}"
    return _other_number(one, other, (start, end), (other_start, other_end))


def said_otherwise(one: Said, other: Said) -> str | None:
    """Why two things said of the same subject cannot both hold; None if they can."""
    if one.rest.historic or other.rest.historic or one.rest.asks or other.rest.asks:
        return None
    if one.place != other.place or one.terms != other.terms or _shapes(one) != _shapes(other):
        return None
    # Berlin and Germany may both be where somebody lives.
    if is_region(one.rest.text) != is_region(other.rest.text):
        return None
    left, right = one.rest.bag, other.rest.bag
    if one.rest.negated or other.rest.negated:
        denied = one.rest.negated != other.rest.negated and left == right
        return "one denies what the other says" if denied else None
    # What says more than the other does not contradict it.
    if left <= right or right <= left:
        return None
    if _alike(sorted(one.rest.content, key=_stem), sorted(other.rest.content, key=_stem)):
        return None
    return f"{_shown(one.rest)} against {_shown(other.rest)}"


def _other_number(
    one: Statement, other: Statement, left: tuple[int, int], right: tuple[int, int]
) -> str | None:
    """The numbers or dates by which two texts differ, if they are what is stated.

    A number before the verb tells things apart, as in "ticket 7 is closed".
    """
    spoken, others = _spoken(one), _spoken(other)
    gone, came = spoken[slice(*left)], others[slice(*right)]
    if len(gone) > CHANGED_TOKENS_MAX or len(came) > CHANGED_TOKENS_MAX:
        return None
    if not all(token.number for token in (*gone, *came)):
        return None
    if len(spoken) - len(gone) < COMMON_WORDS_MIN:
        return None
    if any(token.word in DATE_WORDS for token in (*gone, *came)):
        return None
    at = _index_of(one, gone[0])
    if at == 0 or one.tokens[at - 1].word not in MEASURING:
        return None
    return f"{' '.join(t.word for t in gone)} against {' '.join(t.word for t in came)}"


def _opposed(one: Statement, other: Statement, at: int, other_at: int) -> bool:
    """Whether two texts differ in words that exclude each other, where they do."""
    left, right = _spoken(one)[at], _spoken(other)[other_at]
    pair = frozenset((left.stem, right.stem))
    if pair in OPPOSITE_VERBS:
        return True
    if pair not in OPPOSITE_STATES:
        return False
    places = ((one, left), (other, right))
    return all(
        at > 0 and text.tokens[at - 1].word in COPULAS
        for text, at in ((text, _index_of(text, token)) for text, token in places)
    )


def _index_of(statement: Statement, token: Token) -> int:
    return next(at for at, other in enumerate(statement.tokens) if other is token)


def _twice_negated(statement: Statement) -> bool:
    """Two negations may cancel out or not: better not to judge."""
    return not statement.negated and any(t.word in NEGATIONS for t in statement.tokens[1:])


def _shapes(said: Said) -> tuple[str, ...]:
    """The kinds of numbers and dates in a value: a Friday and the third of May may be one day."""
    return tuple(sorted({_shape(token) for token in said.rest.content if token.number}))


def _shape(token: Token) -> str:
    if token.word in _WEEKDAYS:
        return "weekday"
    if token.word in _MONTHS:
        return "month"
    return re.sub(r"\d+", "9", token.stem) if token.stem[0].isdigit() else "daytime"


def _spoken(statement: Statement) -> list[Token]:
    return [token for token in statement.content if token.word not in FILLERS]


def _bare(statement: Statement) -> list[str]:
    """The words that say something but for negations and helping verbs."""
    return [t.stem for t in _spoken(statement) if t.word not in NEGATIONS | IDLE]


def _alike(left: Sequence[Token], right: Sequence[Token]) -> bool:
    """The same words in the same order, but for ways of spelling them."""
    return len(left) == len(right) and all(map(_same_word, left, right))


def _same_word(one: Token, other: Token) -> bool:
    return one.stem == other.stem or _spelled(one.stem) == _spelled(other.stem)


def _spelled(word: str) -> str:
    """A word in one of the ways of spelling it; what merely looks alike is another word."""
    if len(word) < SPELLED_CHARS_MIN:
        return _SPELLINGS.get(word, word)
    for pattern, spelling in _WAYS:
        word = pattern.sub(spelling, word)
    return word


def _turned(one: Statement, other: Statement) -> bool:
    """ "A is the B" and "the B is A": the same, if there is but one verb and B is the only one."""
    if not any(token.word in DEFINITE for token in one.tokens):
        return False
    sides = _around_copula(one), _around_copula(other)
    if sides[0] is None or sides[1] is None:
        return False
    return _alike(sides[0][0], sides[1][1]) and _alike(sides[0][1], sides[1][0])


def _around_copula(statement: Statement) -> tuple[list[Token], list[Token]] | None:
    places = [at for at, token in enumerate(statement.tokens) if token.word in COPULAS]
    if len(places) != 1:
        return None
    spoken = _spoken(statement)
    before = set(map(id, statement.tokens[: places[0]]))
    return [t for t in spoken if id(t) in before], [t for t in spoken if id(t) not in before]


def _shown(statement: Statement) -> str:
    return statement.text[:60].strip()


def _stem(token: Token) -> str:
    return token.stem
