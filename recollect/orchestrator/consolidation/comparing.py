"""Whether two texts say the same, or contradict each other, or neither.

Rather nothing is found than something wrong: what is taken for a duplicate or for outdated will be
archived.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

import msgspec

from recollect.orchestrator.consolidation.statements import (
    FILLERS,
    NEGATIONS,
    Statement,
    Token,
    opposites,
)
from recollect.orchestrator.consolidation.subjects import Said

Kind = Literal["duplicate", "contradiction"]

SPELLING_RATIO = 0.8
SPELLED_CHARS_MIN = 5
COMMON_WORDS_MIN = 3
"""Below that, two texts that differ in a number have too little in common to be about the same."""
CHANGED_TOKENS_MAX = 4
OPPOSITES = opposites()
COPULAS = frozenset({"is", "are", "was", "were"})
# Verbs that state how something is, and not that something happened: what is so cannot be
# otherwise as well, what happened may have happened twice.
STATES = COPULAS | frozenset(
    [
        "has",
        "have",
        "costs",
        "cost",
        "needs",
        "need",
        "takes",
        "take",
        "requires",
        "require",
        "expires",
        "expire",
        "starts",
        "start",
        "ends",
        "end",
        "listens",
        "listen",
        "supports",
        "support",
        "contains",
        "contain",
        "lasts",
        "last",
        "weighs",
        "weigh",
        "must",
        "should",
        "can",
        "will",
        "runs",
        "run",
        "opens",
        "open",
        "closes",
        "close",
        "owns",
        "allows",
        "allow",
        "holds",
        "hold",
        "uses",
        "use",
        "equals",
        "measures",
        "keeps",
        "keep",
        "stores",
        "store",
        "lives",
        "live",
        "works",
        "work",
        "belongs",
        "belong",
        "likes",
        "like",
        "eats",
        "eat",
        "drinks",
        "drink",
        "wants",
        "want",
        "prefers",
        "prefer",
    ]
)


class Verdict(msgspec.Struct, frozen=True):
    """What two texts are to each other, and why."""

    kind: Kind
    reason: str


def same(one: Statement, other: Statement) -> bool:
    """Whether two texts say the same in nearly the same words."""
    if one.negated != other.negated or one.historic != other.historic:
        return False
    left, right = _spoken(one), _spoken(other)
    if not left or not right:
        return False
    if [t.stem for t in left if t.number] != [t.stem for t in right if t.number]:
        return False
    if not _alike(sorted(left, key=_stem), sorted(right, key=_stem)):
        return False
    return _alike(left, right) or _turned(one, other)


def contradiction(one: Statement, other: Statement) -> str | None:
    """Why two texts that are near in meaning cannot both hold; None if they can."""
    if one.historic != other.historic:
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
    if frozenset((*gone, *came)) in OPPOSITES and len(gone) == len(came) == 1:
        return f"{gone[0]} against {came[0]}"
    return _other_number(one, other, (start, end), (other_start, other_end))


def said_otherwise(one: Said, other: Said, *, historic: bool) -> str | None:
    """Why two things said of the same subject cannot both hold; None if they can.

    `historic` says that one text is about the past and the other is not.
    """
    if historic or one.place != other.place:
        return None
    left, right = one.rest.bag, other.rest.bag
    if one.rest.negated or other.rest.negated:
        denied = one.rest.negated != other.rest.negated and left == right
        return "one denies what the other says" if denied else None
    # What says more than the other does not contradict it.
    if left <= right or right <= left:
        return None
    if bool(one.rest.numbers) != bool(other.rest.numbers):
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
    at = one.tokens.index(gone[0])
    before = [token.word for token in one.tokens[:at]]
    if not any(word in STATES for word in before[1:]):
        return None
    return f"{' '.join(t.word for t in gone)} against {' '.join(t.word for t in came)}"


def _spoken(statement: Statement) -> list[Token]:
    return [token for token in statement.content if token.word not in FILLERS]


def _bare(statement: Statement) -> list[str]:
    """The words that say something but for negations and helping verbs."""
    return [t.stem for t in _spoken(statement) if t.word not in NEGATIONS]


def _alike(left: Sequence[Token], right: Sequence[Token]) -> bool:
    """The same words in the same order, but for ways of spelling them."""
    return len(left) == len(right) and all(map(_same_word, left, right))


def _same_word(one: Token, other: Token) -> bool:
    if one.stem == other.stem:
        return True
    if one.number or other.number or one.name or other.name:
        return False
    if min(len(one.stem), len(other.stem)) < SPELLED_CHARS_MIN or one.stem[0] != other.stem[0]:
        return False
    if frozenset((one.stem, other.stem)) in OPPOSITES:
        return False
    return SequenceMatcher(None, one.stem, other.stem, False).ratio() >= SPELLING_RATIO


def _turned(one: Statement, other: Statement) -> bool:
    """ "A is B" and "B is A": the same, if there is but one verb and it is this one."""
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
