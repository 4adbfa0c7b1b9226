"""How a storage reaches into the JSON text of a memory, and looks for a part of a text.

A value of JSON is compared as SQLite does: booleans are 1 and 0, and any text is greater than any
number.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

Condition = tuple[str, list[Any]]


class JsonPaths(Protocol):
    """What a storage says for it in SQL."""

    def extract(self, column: str, path: list[str]) -> Condition:
        """An expression for the value at a path."""
        ...

    def operand(self, value: Any) -> tuple[str, Any]:
        """What such an expression is compared with: a mark, and its parameter."""
        ...

    def contains(self, column: str, path: list[str], item: Any) -> Condition:
        """A condition: the list at a path has an item, or the text at a path contains a text."""
        ...

    def contains_text(self, column: str, text: str) -> Condition:
        """A condition: a column contains a text, in capitals or not."""
        ...


class SqliteJsonPaths:
    """JSON in SQLite."""

    def extract(self, column: str, path: list[str]) -> Condition:
        return f"json_extract({column}, ?)", [_path_text(path)]

    def operand(self, value: Any) -> tuple[str, Any]:
        return "?", value

    def contains(self, column: str, path: list[str], item: Any) -> Condition:
        text = _path_text(path)
        return (
            f"(EXISTS (SELECT 1 FROM json_each({column}, ?) WHERE value = ? AND key IS NOT NULL)"
            f" OR (json_type({column}, ?) = 'text' AND instr(json_extract({column}, ?), ?) > 0))",
            [text, item, text, text, str(item)],
        )

    def contains_text(self, column: str, text: str) -> Condition:
        return f"{column} LIKE ? ESCAPE '\\'", [f"%{_escape_like(text)}%"]


# A pair, of which the first tells texts from numbers, orders both as SQLite does.
COMPARABLE = """CASE jsonb_typeof({found})
    WHEN 'number' THEN jsonb_build_array(0, {found})
    WHEN 'boolean' THEN jsonb_build_array(0, CAST(CAST({found} AS BOOLEAN) AS INTEGER))
    WHEN 'string' THEN jsonb_build_array(1, {found})
    WHEN 'array' THEN jsonb_build_array(1, CAST({found} AS TEXT))
    WHEN 'object' THEN jsonb_build_array(1, CAST({found} AS TEXT)) END"""
# Strict: a path does not reach into the items of a list. And where it leads nowhere, nothing is
# found. The barrier has the text parsed once.
FOUND = """(SELECT jsonb_path_query_first(
    CAST({column} AS JSONB), CAST(? AS JSONPATH), '{{}}', TRUE
) AS found OFFSET 0) AS at_path"""
EXTRACT = f"(SELECT {COMPARABLE.format(found='found')} FROM {FOUND})"
CONTAINS = f"""(SELECT CASE jsonb_typeof(found)
    WHEN 'array' THEN EXISTS (
        SELECT 1 FROM jsonb_array_elements(found) AS items (item)
        WHERE {COMPARABLE.format(found="item")} = CAST(? AS JSONB)
    )
    WHEN 'object' THEN EXISTS (
        SELECT 1 FROM jsonb_each(found) AS items (name, item)
        WHERE {COMPARABLE.format(found="item")} = CAST(? AS JSONB)
    )
    WHEN 'string' THEN strpos(found #>> '{{{{}}}}', CAST(? AS TEXT)) > 0
    ELSE FALSE END FROM {FOUND})"""


class PostgresJsonPaths:
    """JSON in PostgreSQL."""

    def extract(self, column: str, path: list[str]) -> Condition:
        return EXTRACT.format(column=column), [f"strict {_path_text(path)}"]

    def operand(self, value: Any) -> tuple[str, Any]:
        return "CAST(? AS JSONB)", _comparable(value)

    def contains(self, column: str, path: list[str], item: Any) -> Condition:
        wanted = _comparable(item)
        return (
            f"coalesce({CONTAINS.format(column=column)}, FALSE)",
            [wanted, wanted, str(item), f"strict {_path_text(path)}"],
        )

    def contains_text(self, column: str, text: str) -> Condition:
        return f"{column} ILIKE ? ESCAPE '\\'", [f"%{_escape_like(text)}%"]


def _comparable(value: Any) -> str:
    return json.dumps([int(isinstance(value, str)), value])


def _path_text(path: list[str]) -> str:
    escaped = (part.replace("\\", "\\\\").replace('"', '\\"') for part in path)
    return "$" + "".join(f'."{part}"' for part in escaped)


def _escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
