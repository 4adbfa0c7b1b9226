"""Conditions as people type them, `importance>=0.5`, on their way to the filter language."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.cli.failures import USAGE, Failure
from recollect.cli.given import object_from

_CONDITION = re.compile(
    r"\s*(?P<field>[^=<>!~]+?)\s*(?P<sign>>=|<=|!=|==|=|>|<|~)\s*(?P<value>.*)", re.DOTALL
)
OPERATORS = {
    "=": "eq",
    "==": "eq",
    "!=": "ne",
    ">": "gt",
    ">=": "gte",
    "<": "lt",
    "<=": "lte",
    "~": "contains",
}
# What the options and the tables call a field, beside the field's own name.
SHORT_NAMES = {
    "type": "memory_type",
    "tier": "memory_tier",
    "tag": "tags",
    "session": "session_id",
    "parent": "parent_id",
    "by": "created_by",
}
NUMBERS = frozenset({"importance", "trust", "version", "seq", "access_count"})
TAG_SIGNS = frozenset({"=", "==", "!=", "~"})
ADVICE = (
    "Write it as a field, one of = != > >= < <= ~ and a value, all in quotes: "
    "--where 'importance>=0.5' --where tag=ops --where 'metadata.page<10'."
)


def filters_from(
    filter_text: str | None, conditions: Sequence[str] | None
) -> dict[str, Any] | None:
    """Everything that --filter and --where ask for, all of which must hold; None if nothing."""
    parts = [condition_from(text) for text in conditions or ()]
    given = object_from("--filter", filter_text, example='{"importance": {"gte": 0.5}}')
    return all_of(given, *parts)


def all_of(*filters: dict[str, Any] | None) -> dict[str, Any] | None:
    """One filter for several, absent ones left out."""
    parts = [part for part in filters if part is not None]
    if len(parts) > 1:
        return {"AND": parts}
    return parts[0] if parts else None


def condition_from(text: str) -> dict[str, Any]:
    """The filter that one `field>=value` means."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        # An unquoted > or < never arrives here: the shell takes it, and what follows, for a file.
        reason = "has no field" if text.lstrip()[:1] in "=<>!~" else "has no comparison"
        raise _refused(text, f"{reason}.")
    field = SHORT_NAMES.get(match["field"], match["field"])
    sign = match["sign"]
    if field == "tags" and sign not in TAG_SIGNS:
        raise _refused(text, "compares tags, which are only there or not: use = or !=.")
    value = _value(text, field, match["value"].strip())
    if value is None and OPERATORS[sign] not in ("eq", "ne"):
        raise _refused(text, "compares with null, which only = and != can do.")
    return {field: value if sign in ("=", "==") else {OPERATORS[sign]: value}}


def moment_from(text: str | None) -> str | float | None:
    """A moment as operations take it: a number is seconds since 1970, anything else is a date."""
    return text if text is None else _number(text, text)


def _value(text: str, field: str, given: str) -> Any:
    if not given:
        raise _refused(text, 'has no value; an empty text is "".')
    if given == "null":
        return None
    if given[0] == '"':
        try:
            return msgspec.json.decode(given, type=str)
        except msgspec.MsgspecError:
            raise _refused(text, "has a quotation mark that does not close.") from None
    if field in NUMBERS:
        number = _number(given, None)
        if number is None:
            raise _refused(text, f"compares {field} with what is not a number.")
        return number
    if field.startswith("metadata."):
        return {"true": True, "false": False}.get(given, _number(given, given))
    if field.endswith("_at") or field in ("valid_from", "valid_to"):
        return moment_from(given)
    return given


def _number(text: str, otherwise: Any) -> Any:
    """The number that a text spells, whole if it can be."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else otherwise
    return otherwise


def _refused(text: str, reason: str) -> Failure:
    return Failure(
        "invalid_argument", f"--where {text!r} {reason}", ADVICE, exit_code=USAGE, field="filters"
    )
