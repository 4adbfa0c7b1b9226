"""Answers within a number of tokens: fewer records, then shorter texts, and how to get the rest."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from recollect.gateway.mcp.answers import USER_DATA, Answer
from recollect.tokens import Estimate

COUNTER: Final = Estimate()
CUT_MARK: Final = " […]"
TEXTS_CUT: Final = "Text ending in […] was cut; the resource memory://ID holds all of a memory."
NOTHING_FITS: Final = "The answer is too long to show any of it: ask for less."
ROUNDS_MAX: Final = 32
# What is taken off a text beside what is too much, for the mark and for escapes in JSON.
MARGIN: Final = 8


class Fitted(NamedTuple):
    """An answer that fits, and how it is written."""

    answer: Answer
    text: str
    list_name: str | None = None
    """The list that was shortened, if one was."""
    shown: int = 0
    """How many of its items are left."""


def written(answer: Any) -> str:
    """An answer as a model reads it."""
    return msgspec.json.encode(answer).decode()


def told(shown: int, total: int, list_name: str, advice: str) -> str:
    """What an answer says of the records that are not in it."""
    return f"{shown} of {total} {list_name} fit. {advice}"


def fit(answer: Answer, tokens_max: int, advice: str) -> Fitted:
    """An answer in no more tokens; `advice` tells how to get the records that do not fit."""
    text = written(answer)
    if COUNTER.count(text) <= tokens_max:
        return Fitted(answer, text)
    name = _longest_list(answer)
    if name is None:
        return _shortened(answer, tokens_max, TEXTS_CUT)
    items = answer[name]
    fewest, most = 0, len(items) - 1
    while fewest < most:
        tried = (fewest + most + 1) // 2
        if _fits(_with_first(answer, name, tried, advice), tokens_max):
            fewest = tried
        else:
            most = tried - 1
    if fewest > 0:
        fitting = _with_first(answer, name, fewest, advice)
        return Fitted(fitting, written(fitting), name, fewest)
    fitted = _shortened(_with_first(answer, name, 1, advice), tokens_max, TEXTS_CUT)
    return fitted._replace(list_name=name if len(items) > 1 else None, shown=1)


def _longest_list(answer: Answer) -> str | None:
    """The list that takes the most room; None if there is none."""
    lists = [name for name, value in answer.items() if isinstance(value, list) and value]
    return max(lists, key=lambda name: len(written(answer[name])), default=None)


def _with_first(answer: Answer, name: str, number: int, advice: str) -> Answer:
    items = answer[name]
    if number == len(items):
        return answer
    # A cursor leads on behind all of the page, past what is left out here.
    made = {key: value for key, value in answer.items() if key != "cursor"}
    made[name] = items[:number]
    if "count" in made:
        made["count"] = number
    made["cut"] = told(number, len(items), name, advice)
    return made


def _fits(answer: Answer, tokens_max: int) -> bool:
    return COUNTER.count(written(answer)) <= tokens_max


def _shortened(answer: Answer, tokens_max: int, note: str) -> Fitted:
    """An answer whose longest texts end early."""
    made = msgspec.json.decode(written(answer))
    made["cut"] = f"{made['cut']} {note}" if "cut" in made else note
    for _ in range(ROUNDS_MAX):
        text = written(made)
        excess = COUNTER.count(text) - tokens_max
        if excess <= 0:
            return Fitted(made, text)
        parts = _parts(made)
        if not parts:
            break
        holder, name = max(parts, key=lambda part: len(written(part[0][part[1]])))
        if not _shorten(holder, name, excess):
            break
    made = {"status": answer.get("status", "success"), "cut": NOTHING_FITS}
    return Fitted(made, written(made))


def _parts(record: Any) -> list[tuple[Any, Any]]:
    """Where the values of an answer are that may be shortened: each holder with the name there."""
    found: list[tuple[Any, Any]] = []
    entries = record.items() if isinstance(record, dict) else enumerate(record)
    for name, value in entries:
        if name in ("status", "cut"):
            continue
        inner = isinstance(value, dict) or (isinstance(value, list) and len(value) == 1)
        if inner and value and name not in USER_DATA:
            found += _parts(value)
        else:
            found.append((record, name))
    return found


def _shorten(holder: Any, name: Any, excess: int) -> bool:
    """Take about so many tokens off a value; False if there is nothing to take."""
    value = holder[name]
    text = value if isinstance(value, str) else written(value)
    encoded = COUNTER.count(written(value))
    if encoded <= 2 or text == CUT_MARK.strip():
        return False
    wanted = max(0, encoded - excess - MARGIN)
    beginning = COUNTER.cut(text.removesuffix(CUT_MARK), COUNTER.count(text) * wanted // encoded)
    holder[name] = beginning + CUT_MARK if wanted and beginning else CUT_MARK.strip()
    return True
