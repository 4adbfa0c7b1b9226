"""Filters of LangGraph's stores, checked here and, as far as it goes, before that by Recollect.

Recollect filters by metadata. So an item carries those of its fields there that a filter is likely
to name: the short plain ones, as they are under `fields`, and as the numbers that they are compared
as under `numbers`. A condition that Recollect can check leaves out nothing that the filter keeps;
what it keeps too much is left out here. An item with more of them than fit is marked `partial` and
never left out by Recollect.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

FIELDS_MAX = 64
TEXT_CHARS_MAX = 128
CONDITIONS_MAX = 32
_INTEGER_MAX = 1 << 63
# A path of the filter language is cut at dots, and the rest is better plain as well.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def mirrored(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an item that Recollect can filter by, as metadata."""
    fields = {name: item for name, item in value.items() if _is_plain(name, item)}
    numbers = {name: _number(item) for name, item in value.items() if _PLAIN_NAME.fullmatch(name)}
    known = {name: number for name, number in numbers.items() if number is not None}
    if len(fields) > FIELDS_MAX or not all(map(math.isfinite, known.values())):
        return {"partial": True}
    if len(known) > FIELDS_MAX:
        return {"partial": True}
    return {"fields": fields, "numbers": known}


def narrowed(wanted: Mapping[str, Any] | None) -> dict[str, Any]:
    """A filter of Recollect that keeps all that the filter keeps, and maybe more."""
    conditions = [
        condition
        for name, condition_on in (wanted or {}).items()
        if _PLAIN_NAME.fullmatch(name)
        for condition in _conditions(name, condition_on)
    ]
    if not conditions:
        return {}
    return {"OR": [{"metadata.partial": True}, {"AND": conditions[:CONDITIONS_MAX]}]}


def check(wanted: Any) -> None:
    """Refuse comparisons that there are not, however deep they stand."""
    if isinstance(wanted, list | tuple):
        for item in wanted:
            check(item)
    elif _compares(wanted):
        for name, operand in wanted.items():
            if name in _ORDERS:
                float(operand)
            elif name not in ("$eq", "$ne"):
                raise ValueError(
                    f"Unsupported operator: {name}; there are $eq, $ne, {', '.join(_ORDERS)}."
                )
    elif isinstance(wanted, Mapping):
        for item in wanted.values():
            check(item)


def keeps(wanted: Mapping[str, Any] | None, value: Mapping[str, Any]) -> bool:
    """Whether an item passes a filter, as LangGraph's own InMemoryStore judges it."""
    return all(_holds(value.get(name), condition) for name, condition in (wanted or {}).items())


def _compares(condition: Any) -> bool:
    return isinstance(condition, Mapping) and any(str(name).startswith("$") for name in condition)


def _holds(item: Any, condition: Any) -> bool:
    if _compares(condition):
        return all(_compared(item, name, operand) for name, operand in condition.items())
    if isinstance(condition, Mapping):
        return isinstance(item, Mapping) and keeps(condition, item)
    if isinstance(condition, list | tuple):
        return (
            isinstance(item, list | tuple)
            and len(item) == len(condition)
            and all(map(_holds, item, condition))
        )
    return bool(item == condition)


def _compared(item: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(item == operand)
    if name == "$ne":
        return bool(item != operand)
    number = _number(item)
    # What is no number is neither more nor less than one.
    return number is not None and _ORDERS[name](number, float(operand))


def _conditions(name: str, condition: Any) -> list[dict[str, Any]]:
    if not _compares(condition):
        return _equal(name, condition)
    found: list[dict[str, Any]] = []
    for comparison, operand in condition.items():
        if comparison == "$eq":
            found += _equal(name, operand)
        elif comparison == "$ne":
            if _is_plain(name, operand):
                found.append({f"metadata.fields.{name}": {"ne": operand}})
        elif comparison in _ORDERS and math.isfinite(number := float(operand)):
            found.append({f"metadata.numbers.{name}": {comparison.removeprefix("$"): number}})
    return found


def _equal(name: str, operand: Any) -> list[dict[str, Any]]:
    if operand is None or _is_plain(name, operand):
        return [{f"metadata.fields.{name}": operand}]
    return []


def _is_plain(name: str, item: Any) -> bool:
    """Whether a field can be compared by Recollect just as Python would."""
    if not _PLAIN_NAME.fullmatch(name):
        return False
    if isinstance(item, str):
        return len(item) <= TEXT_CHARS_MAX and "\x00" not in item
    if isinstance(item, bool):
        return True
    if isinstance(item, int):
        return abs(item) < _INTEGER_MAX
    return isinstance(item, float) and math.isfinite(item)


def _number(item: Any) -> float | None:
    """An item as the number that it is compared as."""
    if not isinstance(item, str | int | float):
        return None
    try:
        return float(item)
    except (ValueError, OverflowError):
        return None
