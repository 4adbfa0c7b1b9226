"""Regular expressions over types of tasks, matched in a time that nobody can make long.

Python's own matcher tries one way after another, and some expressions have more ways than there is
time. Here all ways are followed at once: a step costs no more than the expression has states, and
both are bounded. What cannot be matched like that, such as a reference back to a group, is refused.

Understood are `|`, groups, `[…]`, `.`, `^`, `$`, `*`, `+`, `?`, `{m,n}`, `\\d`, `\\w`, `\\s` and
their opposites, and any other character after a backslash for itself.
"""

from __future__ import annotations

import string
from typing import NamedTuple, NoReturn

from recollect.protocol.errors import InvalidArgument

ALPHABET = frozenset(string.ascii_lowercase + string.digits + "_.-")
"""What a type of task is made of."""
STATES_MAX = 500
PARTS_MAX = 2_000
"""That are read, each as often as it is repeated; a group may be empty and have no state."""
DEPTH_MAX = 32
"""Groups within groups."""
STEPS_MAX = 1_000_000
KEPT_MAX = 4_000
"""Steps that are remembered, so that what comes again is looked up."""
TOO_LARGE = "it is too large, with its repetitions written out,"
_CLASSES = {
    "d": frozenset(string.digits),
    "w": frozenset(string.ascii_lowercase + string.digits + "_"),
    "s": frozenset[str](),
}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_QUANTIFIERS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class _State(NamedTuple):
    """A state: it takes one of some characters, or leads on without taking any."""

    takes: frozenset[str] | None = None
    asks: str = ""
    """`^` or `$` if it only leads on at the beginning or at the end."""
    ways: tuple[int, ...] = ()


class Expression:
    """An expression that a text contains or does not. In the hands of one thread."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._parts = 0
        self._depth = 0
        self._states: list[_State] = []
        self._end = self._add(_State())
        self._start = self._either(self._end)
        if self._at < len(source):
            self._refuse("unbalanced parenthesis")
        self.steps = 0
        self._kept: dict[tuple[frozenset[int], str, bool], frozenset[int]] = {}

    def contains(self, text: str) -> bool:
        """Whether a text has a part that the expression fits."""
        there = self._reached([self._start], first=True, last=not text)
        for place, char in enumerate(text, 1):
            if self._end in there:
                return True
            there = self._step(there, char, place == len(text))
        return self._end in there

    def _step(self, there: frozenset[int], char: str, last: bool) -> frozenset[int]:
        kept = self._kept.get((there, char, last))
        if kept is not None:
            return kept
        states = self._states
        taken = [
            states[state].ways[0]
            for state in there
            if (takes := states[state].takes) is not None and char in takes
        ]
        # A part may begin anywhere.
        reached = self._reached([*taken, self._start], first=False, last=last)
        if len(self._kept) < KEPT_MAX:
            self._kept[there, char, last] = reached
        return reached

    def _reached(self, waiting: list[int], *, first: bool, last: bool) -> frozenset[int]:
        """Where one stands without taking another character."""
        reached: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            reached.add(number)
            state = self._states[number]
            if state.takes is None and (not state.asks or (first if state.asks == "^" else last)):
                waiting.extend(state.ways)
        self.steps += len(reached)
        if self.steps > STEPS_MAX:
            raise InvalidArgument(
                "task_type takes too long to match; make the expression simpler.",
                field="task_type",
            )
        return frozenset(reached)

    # Each of the following reads a part of the expression and returns the state at which it
    # begins, given the one that comes after it.

    def _either(self, after: int) -> int:
        ways = [self._row(after)]
        while self._peek() == "|":
            self._at += 1
            ways.append(self._row(after))
        return ways[0] if len(ways) == 1 else self._add(_State(ways=tuple(ways)))

    def _row(self, after: int) -> int:
        """Parts one after another. They are read forward and put together backward."""
        parts: list[tuple[int, int, int | None, int]] = []
        while (char := self._peek()) and char not in "|)":
            begin = self._at
            self._skip_part()
            end = self._at
            low, high = self._quantifier()
            parts.append((begin, low, high, end))
        stop = self._at
        for begin, low, high, end in reversed(parts):
            after = self._repeated(begin, low, high, after)
            assert self._at == end
        self._at = stop
        return after

    def _repeated(self, begin: int, low: int, high: int | None, after: int) -> int:
        if high is None:
            again = self._add(_State())
            start = self._part(begin, again)
            self._states[again] = _State(ways=(start, after))
            after = again
        else:
            for _ in range(high - low):
                after = self._add(_State(ways=(self._part(begin, after), after)))
        for _ in range(low):
            after = self._part(begin, after)
        if not low:
            self._skip_from(begin)
        return after

    def _skip_from(self, begin: int) -> None:
        self._at = begin
        self._skip_part()

    def _part(self, begin: int, after: int) -> int:
        """One character, class, group or place."""
        self._parts += 1
        if self._parts > PARTS_MAX:
            self._refuse(TOO_LARGE)
        self._at = begin
        char = self._next()
        if char == "(":
            self._group_kind()
            start = self._either(after)
            self._next()
            return start
        if char in "^$":
            return self._add(_State(asks=char, ways=(after,)))
        return self._add(_State(takes=self._taken(char), ways=(after,)))

    def _taken(self, char: str) -> frozenset[str]:
        if char == ".":
            return ALPHABET
        if char == "[":
            return self._set()
        if char == "\\":
            return self._escape()
        return frozenset(char)

    def _skip_part(self) -> None:
        """Go past a part; here everything that is wrong with it is found."""
        char = self._next()
        if char == "(":
            self._group_kind()
            self._skip_group()
        elif char in _QUANTIFIERS:
            self._refuse("nothing to repeat", back=1)
        elif char not in "^$":
            self._taken(char)

    def _skip_group(self) -> None:
        opened = self._at - 1
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._refuse("too many groups within groups")
        while (char := self._peek()) != ")":
            if not char:
                self._at = opened
                self._refuse("a parenthesis is not closed")
            if char == "|":
                self._at += 1
                continue
            self._skip_part()
            self._quantifier()
        self._at += 1
        self._depth -= 1

    def _group_kind(self) -> None:
        if self._source.startswith("?:", self._at):
            self._at += 2
        elif self._peek() == "?":
            self._refuse("only plain groups and (?:…) can be matched")

    def _quantifier(self) -> tuple[int, int | None]:
        bounds: tuple[int, int | None] = (1, 1)
        char = self._peek()
        if char in _QUANTIFIERS:
            self._at += 1
            bounds = _QUANTIFIERS[char]
        elif char == "{":
            bounds = self._counted()
        else:
            return bounds
        if self._peek() == "?":
            self._at += 1  # whether as few or as many: it is contained or not
        if self._peek() in (*_QUANTIFIERS, "{"):
            self._refuse("a repetition of a repetition")
        return bounds

    def _counted(self) -> tuple[int, int | None]:
        end = self._source.find("}", self._at)
        low, comma, high = self._source[self._at + 1 : end if end >= 0 else None].partition(",")
        known = string.digits
        if end < 0 or not (low or high) or not all(char in known for char in low + high):
            self._refuse("a repetition is {m}, {m,}, {,n} or {m,n}; write \\{ for the character")
        if len(low) > 4 or len(high) > 4:
            self._refuse("it repeats too often")
        least = int(low or 0)
        most = (int(high) if high else None) if comma else least
        if most is not None and most < least:
            self._refuse("it repeats at least more often than at most")
        self._at = end + 1
        return least, most

    def _set(self) -> frozenset[str]:
        opened = self._at - 1
        negated = self._peek() == "^"
        self._at += negated
        chars: set[str] = set()
        first = True
        while first or self._peek() != "]":
            first = False
            if not self._peek():
                self._at = opened
                self._refuse("a set is not closed")
            low = self._member()
            ranged = self._peek() == "-" and self._source[self._at + 1 : self._at + 2] not in (
                "]",
                "",
            )
            if not ranged:
                chars |= low
                continue
            self._at += 1
            high = self._member()
            if len(low) != 1 or len(high) != 1 or min(high) < min(low):
                self._refuse("not a range")
            chars |= {char for char in ALPHABET if min(low) <= char <= min(high)}
        self._at += 1
        return frozenset(ALPHABET - chars if negated else chars)

    def _member(self) -> frozenset[str]:
        char = self._next()
        return self._escape() if char == "\\" else frozenset(char)

    def _escape(self) -> frozenset[str]:
        char = self._next()
        if not char:
            self._refuse("a backslash at the end", back=1)
        if char in _CLASSES:
            return _CLASSES[char]
        if char.lower() in _CLASSES:
            return ALPHABET - _CLASSES[char.lower()]
        if char in _ESCAPED:
            return frozenset(_ESCAPED[char])
        if char.isalnum():
            self._refuse(f"\\{char} cannot be matched", back=2)
        return frozenset(char)

    def _add(self, state: _State) -> int:
        if len(self._states) >= STATES_MAX:
            self._refuse(TOO_LARGE)
        self._states.append(state)
        return len(self._states) - 1

    def _peek(self) -> str:
        return self._source[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        self._at += len(char)
        return char

    def _refuse(self, why: str, back: int = 0) -> NoReturn:
        place = max(0, self._at - back)
        raise InvalidArgument(
            f"task_type is not an expression that can be matched: {why} at position {place}.",
            field="task_type",
            position=place,
        )
