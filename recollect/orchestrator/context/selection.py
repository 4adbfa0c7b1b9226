"""Chooses what goes into a context: the most valuable for its tokens, each thing once, all of it
within the budget.

A short memory is worth more for its tokens than a long one that helps as much, but not in
proportion: otherwise crumbs would always win. What is like something chosen before is worth less,
and what is like many still less; what says the same is left out. A tier that has given much gives
way to one that has given little.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from recollect.orchestrator.context.cutting import Cut, cut_to
from recollect.orchestrator.context.fencing import Quotation, preamble
from recollect.orchestrator.context.live import LivePiece
from recollect.orchestrator.context.weighing import Considered
from recollect.tokens import TokenCounter

LENGTH_EXPONENT = 0.3
LIKENESS_RATE = 0.5
"""How much of its worth a memory loses if one just like it was chosen."""
CROWD_LIKENESS = 0.8
CROWD_RATE = 0.15
"""From such a likeness on, each one that was chosen makes it worth still less."""
LIVE_SHARE = 0.25
FIRST_SHARE = 0.5
"""How much of the budget may go to how things stand, and to what comes first."""
PIECE_SHARE = 1 / 3
"""How much one piece may take at first; what is left in the end goes to those that were cut."""
CUT_VALUE_MIN = 0.5
"""What is worth less is not given in part."""
SAME_LIKENESS = 0.95
SAME_WORDS = 0.7

_words = re.compile(r"\w+").findall
_negations = frozenset({"not", "no", "never", "t", "none", "without"})


class Pick(msgspec.Struct, frozen=True):
    """A memory that is given, and how much of it."""

    considered: Considered
    quotation: Quotation
    tokens: int
    chars: int | None = None


class Selected(msgspec.Struct, frozen=True):
    """A context and what it is made of; without pieces if none fits."""

    text: str
    tokens: int
    live: list[tuple[LivePiece, int]]
    """Each with its tokens."""
    picks: list[Pick]


class Selection:
    """One context in the making."""

    def __init__(
        self,
        counter: TokenCounter,
        nonce: str,
        tokens_max: int,
        quoted: Sequence[tuple[Considered, Quotation]],
    ) -> None:
        self._counter = counter
        self._nonce = nonce
        self._tokens_max = tokens_max
        self._quoted = quoted
        self._left = tokens_max - counter.count(preamble(nonce))
        self._live: list[tuple[LivePiece, int]] = []
        self._picks: list[Pick] = []

    def run(self, live: Sequence[LivePiece]) -> Selected:
        """The context."""
        self._take_live(live)
        self._take_memories()
        self._lengthen()
        return self._written()

    def _take_live(self, live: Sequence[LivePiece]) -> None:
        share = min(self._left, int(LIVE_SHARE * self._tokens_max))
        for piece in live:
            fitted = self._first_lines(piece, share)
            if fitted is not None:
                share -= fitted[1]
                self._left -= fitted[1]
                self._live.append(fitted)

    def _first_lines(self, piece: LivePiece, room: int) -> tuple[LivePiece, int] | None:
        """As many lines of a piece as have room, with their tokens."""
        n = len(self._live) + 1
        lines = piece.text.split("\n")
        for count in range(len(lines), 0, -1):
            shorter = msgspec.structs.replace(piece, text="\n".join(lines[:count]))
            tokens = self._counter.count(shorter.quotation.block(self._nonce, n))
            if tokens <= room:
                return shorter, tokens
        return None

    def _take_memories(self) -> None:
        if not self._quoted or self._left <= 0:
            return
        # With the largest number that any of them can get.
        last = len(self._live) + len(self._quoted)
        tokens = np.array(
            [self._counter.count(quoted.block(self._nonce, last)) for _, quoted in self._quoted]
        )
        piece_max = max(1, int(PIECE_SHARE * self._tokens_max))
        least = int(tokens.min())
        merit = np.array([considered.value for considered, _ in self._quoted])
        merit /= np.minimum(tokens, piece_max) ** LENGTH_EXPONENT
        first = np.array([considered.first for considered, _ in self._quoted])
        tiers = np.array([considered.tier for considered, _ in self._quoted])
        matrix = _matrix([considered for considered, _ in self._quoted])
        likeness, crowd = np.zeros(len(merit)), np.zeros(len(merit))
        open_ = np.ones(len(merit), dtype=bool)
        spent_first = 0
        spent = dict.fromkeys(set(tiers.tolist()), 0)
        while open_.any() and self._left >= min(least, piece_max):
            worth = merit * (1 - LIKENESS_RATE * likeness) / (1 + CROWD_RATE * crowd)
            for tier, given in spent.items():
                worth[tiers == tier] /= 1 + given / self._tokens_max
            ahead = open_ & first
            if not ahead.any() or spent_first >= FIRST_SHARE * self._tokens_max:
                ahead = open_
            place = int(np.where(ahead, worth, -1.0).argmax())
            open_[place] = False
            pick = self._fitted(place, int(tokens[place]), piece_max)
            if pick is None or self._said(pick, likeness[place]):
                continue
            self._picks.append(pick)
            self._left -= pick.tokens
            spent[pick.considered.tier] += pick.tokens
            spent_first += pick.tokens if pick.considered.first else 0
            alike = np.clip(matrix @ matrix[place], 0.0, 1.0)
            likeness = np.maximum(likeness, alike)
            crowd += alike >= CROWD_LIKENESS

    def _fitted(self, place: int, tokens: int, piece_max: int) -> Pick | None:
        """A memory whole, or cut to what there is room for if it is worth that."""
        considered, quoted = self._quoted[place]
        room = min(self._left, piece_max)
        if tokens <= room:
            whole = self._counter.count(quoted.block(self._nonce, self._next))
            return Pick(considered, quoted, min(whole, tokens))
        if considered.value < CUT_VALUE_MIN and not considered.first:
            return None
        cut = cut_to(self._counter, self._nonce, self._next, quoted, room)
        return None if cut is None else Pick(considered, quoted, cut.tokens, cut.chars)

    @property
    def _next(self) -> int:
        """The number of the next piece."""
        return len(self._live) + len(self._picks) + 1

    def _said(self, pick: Pick, likeness: float) -> bool:
        """Whether something that is chosen says the same."""
        if likeness < SAME_LIKENESS:
            return False
        text = pick.considered.row.content
        return any(same(text, other.considered.row.content) for other in self._picks)

    def _lengthen(self) -> None:
        """Give what is left to those that were cut."""
        for place, pick in enumerate(self._picks):
            if pick.chars is None:
                continue
            n = len(self._live) + place + 1
            room = pick.tokens + self._left
            whole = self._counter.count(pick.quotation.block(self._nonce, n))
            longer: Cut | None
            if whole <= room:
                longer = Cut(whole, None)
            else:
                longer = cut_to(self._counter, self._nonce, n, pick.quotation, room)
            if longer is not None and longer.tokens > pick.tokens:
                self._left -= longer.tokens - pick.tokens
                self._picks[place] = msgspec.structs.replace(
                    pick, tokens=longer.tokens, chars=longer.chars
                )

    def _written(self) -> Selected:
        """The text as a whole, which is what counts; the last pieces make room if it must be."""
        while self._live or self._picks:
            pieces: list[tuple[Quotation, int | None]] = [
                *((piece.quotation, None) for piece, _ in self._live),
                *((pick.quotation, pick.chars) for pick in self._picks),
            ]
            blocks = [q.block(self._nonce, n, chars) for n, (q, chars) in enumerate(pieces, 1)]
            text = written(self._nonce, blocks)
            tokens = self._counter.count(text)
            if tokens <= self._tokens_max:
                return Selected(text, tokens, self._live, self._picks)
            (self._picks or self._live).pop()
        return Selected("", 0, [], [])


def written(nonce: str, blocks: Sequence[str]) -> str:
    """A context of some pieces, in their order."""
    return preamble(nonce) + "".join(blocks)


def same(one: str, other: str) -> bool:
    """Whether two texts that mean nearly the same also say it: in most of the same words, with the
    same numbers and negations."""
    words, others = set(_words(one.casefold())), set(_words(other.casefold()))
    if len(words & others) < SAME_WORDS * len(words | others):
        return False
    return not any(word[0].isdigit() or word in _negations for word in words ^ others)


def _matrix(considered: Sequence[Considered]) -> npt.NDArray[np.float32]:
    """The vectors, one a row; what has none is like nothing."""
    length = max((len(one.vector) for one in considered if one.vector is not None), default=1)
    none = np.zeros(length, dtype=np.float32)
    return np.stack([none if one.vector is None else one.vector for one in considered])
