"""The filter language, compiled to a condition in SQL.

`{"memory_type": "general"}` is equality; `{"importance": {"gte": 0.5}}` compares with eq, ne, gt,
gte, lt, lte, in, nin, contains; several keys must all hold; AND, OR and NOT combine. `$gte` and
`$and` spellings are accepted as well. `metadata.a.b` reaches into the metadata.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from typing import Any

import msgspec

from recollect.orchestrator.clock import parse_moment
from recollect.orchestrator.search import json_paths
from recollect.orchestrator.search.json_paths import JsonPaths
from recollect.protocol.errors import InvalidArgument, LimitExceeded
from recollect.protocol.explaining import NAME_CHARS_SHOWN

KEPT_MAX = 1_024
KEPT_BYTES_MAX = 512
"""A longer filter is compiled anew each time."""
CONDITIONS_MAX = 256
VALUES_MAX = 16_384
DEPTH_MAX = 16

Condition = json_paths.Condition
COLUMNS = {
    "id": "id",
    "namespace": "namespace",
    "key": "key",
    "version": "version",
    "seq": "seq",
    "collection": "collection",
    "memory_type": "memory_type",
    "memory_tier": "tier",
    "content": "memories.content",
    "importance": "importance",
    "trust": "trust",
    "source": "source",
    "access_count": "access_count",
    "parent_id": "parent_id",
    "session_id": "session_id",
    "created_by": "created_by",
    "updated_by": "updated_by",
}
NUMBERS = frozenset({"version", "seq", "importance", "trust", "access_count"})
MOMENTS = {
    "created_at": "created_us",
    "updated_at": "updated_us",
    "last_accessed_at": "last_access_us",
    "fades_at": "fades_us",
    "expires_at": "expires_us",
    "valid_from": "valid_from_us",
    "valid_to": "valid_to_us",
    "archived_at": "archived_us",
}
_encode = msgspec.msgpack.Encoder().encode
COMPARISONS = {"eq": "=", "ne": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
OPERATORS = (*COMPARISONS, "in", "nin", "contains")


def _too_large() -> LimitExceeded:
    return LimitExceeded(
        f"filters has more than {CONDITIONS_MAX} conditions, {VALUES_MAX:,} values or "
        f"{DEPTH_MAX} levels.",
        field="filters",
        limit="filters",
    )


class FilterCompiler:
    """Compiles filters for one storage."""

    def __init__(self, paths: JsonPaths) -> None:
        self.paths = paths
        # By what was asked for, as bytes: the same filters come again and again. Only a shortcut:
        # threads may overwrite each other's.
        self._known: dict[bytes, Condition] = {}

    def compile(self, filters: dict[str, Any]) -> Condition:
        """A condition over the columns of `memories`, with its parameters, which stay as they
        are."""
        try:
            asked = _encode(filters)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return _Compilation(self.paths).compile(filters)
        known = self._known.get(asked)
        if known is None:
            known = _Compilation(self.paths).compile(filters)
            if len(asked) <= KEPT_BYTES_MAX:
                if len(self._known) >= KEPT_MAX:
                    self._known.clear()
                self._known[asked] = known
        return known


class _Compilation:
    """One filter on its way to SQL."""

    def __init__(self, paths: JsonPaths) -> None:
        self._paths = paths
        self._conditions_left = CONDITIONS_MAX

    def compile(self, filters: dict[str, Any]) -> Condition:
        sql, params = self._all(filters, 1)
        if len(params) > VALUES_MAX:
            raise _too_large()
        return sql, params

    def _count(self, conditions: int = 1) -> None:
        self._conditions_left -= conditions
        if self._conditions_left < 0:
            raise _too_large()

    def _all(self, filters: Any, depth: int) -> Condition:
        if not isinstance(filters, dict):
            raise InvalidArgument(
                'A filter is an object such as {"memory_type": "general"}.', field="filters"
            )
        if depth > DEPTH_MAX:
            raise _too_large()
        if not filters:
            self._count()
        parts = [self._entry(str(key), value, depth) for key, value in filters.items()]
        return _join(parts, "AND")

    def _entry(self, key: str, value: Any, depth: int) -> Condition:
        match key.removeprefix("$").upper():
            case "AND" | "OR" as word:
                if not isinstance(value, list) or not value:
                    raise InvalidArgument(f"{key} takes a list of filters.", field="filters")
                return _join([self._all(item, depth + 1) for item in value], word)
            case "NOT":
                sql, params = self._all(value, depth + 1)
                return f"NOT coalesce(({sql}), FALSE)", params
        if not isinstance(value, dict):
            return self._compare(key, "eq", value)
        if not value:
            self._count()
        parts = []
        for name, operand in value.items():
            operator = str(name).removeprefix("$")
            if operator not in OPERATORS:
                raise InvalidArgument(
                    f"{name!r} is no comparison; there are {', '.join(OPERATORS)}.",
                    field=f"filters.{key}",
                )
            parts.append(self._compare(key, operator, operand))
        return _join(parts, "AND")

    def _compare(self, field: str, operator: str, operand: Any) -> Condition:
        self._count(len(operand) if field == "tags" and isinstance(operand, list) else 1)
        if field == "tags":
            return self._compare_tags(operator, operand)
        if field.startswith("metadata."):
            path = field.split(".")[1:]
            if operator == "contains":
                return self._paths.contains("metadata", path, _scalar(field, operand))
            sql, params = self._paths.extract("metadata", path)
            return _comparison(field, sql, params, operator, operand, _scalar, self._paths.operand)
        if field in MOMENTS:
            return _comparison(field, MOMENTS[field], [], operator, operand, _moment)
        if field not in COLUMNS:
            known = [*COLUMNS, *MOMENTS, "tags"]
            # Looking for what is alike takes long for what is long.
            field = field[:NAME_CHARS_SHOWN]
            near = difflib.get_close_matches(field, known, 1)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else f"these can: {', '.join(sorted(known))}, and metadata.NAME."
            )
            raise InvalidArgument(f"{field!r} cannot be filtered on; {hint}", field="filters")
        if field in NUMBERS:
            if operator == "contains":
                raise InvalidArgument(f"{field} is a number.", field=f"filters.{field}")
            return _comparison(field, COLUMNS[field], [], operator, operand, _number)
        if operator == "contains":
            item = _scalar(field, operand)
            return self._paths.contains_text(COLUMNS[field], str(item))
        return _comparison(field, COLUMNS[field], [], operator, operand, _scalar)

    def _compare_tags(self, operator: str, operand: Any) -> Condition:
        wanted = operand if isinstance(operand, list) else [operand]
        parts = [self._paths.contains("tags", [], _scalar("tags", tag)) for tag in wanted]
        if not parts and operator in ("in", "nin", "ne"):
            return ("FALSE" if operator == "in" else "TRUE"), []
        match operator:
            case "contains" | "eq":
                return _join(parts, "AND")
            case "in":
                return _join(parts, "OR")
            case "ne" | "nin":
                sql, params = _join(parts, "OR")
                return f"NOT ({sql})", params
        raise InvalidArgument("tags takes contains, in, nin, eq or ne.", field="filters.tags")


def namespace_condition(namespace: str, column: str = "namespace") -> Condition:
    """A namespace and everything below it, and nothing that merely begins alike."""
    # ';' is the character after ':', so the range holds exactly what begins with 'namespace:'.
    return (
        f"({column} = ? OR ({column} >= ? AND {column} < ?))",
        [namespace, f"{namespace}:", f"{namespace};"],
    )


def _comparison(
    field: str,
    sql: str,
    params: list[Any],
    operator: str,
    operand: Any,
    convert: Callable[[str, Any], Any],
    marked: Callable[[Any], tuple[str, Any]] = lambda value: ("?", value),
) -> Condition:
    """`marked` says how a value stands in the statement, and its parameter."""
    if operator in ("in", "nin"):
        if not isinstance(operand, list) or len(operand) > CONDITIONS_MAX * 4:
            raise InvalidArgument(
                f"{operator} takes a list of at most {CONDITIONS_MAX * 4} values.",
                field=f"filters.{field}",
            )
        pairs = [marked(convert(field, item)) for item in operand]
        if not pairs:
            return ("FALSE", []) if operator == "in" else ("TRUE", [])
        marks = ", ".join(mark for mark, _ in pairs)
        values = [value for _, value in pairs]
        if operator == "in":
            return f"{sql} IN ({marks})", [*params, *values]
        return f"({sql} IS NULL OR {sql} NOT IN ({marks}))", [*params, *params, *values]
    if operand is None:
        if operator not in ("eq", "ne"):
            raise InvalidArgument("null can only be eq or ne.", field=f"filters.{field}")
        return f"{sql} IS {'NOT ' if operator == 'ne' else ''}NULL", params
    mark, value = marked(convert(field, operand))
    if operator == "ne":
        return f"({sql} IS NULL OR {sql} <> {mark})", [*params, *params, value]
    if operator not in COMPARISONS:
        raise InvalidArgument(f"{field} does not take {operator}.", field=f"filters.{field}")
    return f"{sql} {COMPARISONS[operator]} {mark}", [*params, value]


def _scalar(field: str, value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgument(f"{value} cannot be compared with.", field=f"filters.{field}")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise InvalidArgument(f"{value} is too large.", field=f"filters.{field}")
    if isinstance(value, str | int | float):
        return value
    raise InvalidArgument("A filter compares with text or a number.", field=f"filters.{field}")


def _number(field: str, value: Any) -> Any:
    if isinstance(value, str):
        raise InvalidArgument(f"{field} is compared with a number.", field=f"filters.{field}")
    return _scalar(field, value)


def _moment(field: str, value: Any) -> Any:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return parse_moment(f"filters.{field}", value)
    raise InvalidArgument("Compare a time with ISO 8601 text.", field=f"filters.{field}")


def _join(parts: list[Condition], word: str) -> Condition:
    if not parts:
        return "TRUE", []
    sql = f" {word} ".join(f"({part})" for part, _ in parts)
    return sql, [param for _, params in parts for param in params]
