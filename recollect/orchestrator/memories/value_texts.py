"""The text to find a JSON value by, when none was given with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

BETWEEN = "; "
SCALARS_LISTED_MAX = 64
"""Of one list; the value itself has the rest."""


def text_of(value: Any, key: str, *, chars_max: int) -> str:
    """A string as it is, anything else as short readable text; never empty, never too long.

    What says nothing by itself, such as a number, comes with the name of its key.
    """
    if isinstance(value, str):
        text = value
    elif isinstance(value, dict):
        text = _joined(value, chars_max)
    else:
        text = _joined({key: value}, chars_max)
    return (text if text.strip() else key)[:chars_max]


def _joined(value: dict[str, Any], chars_max: int) -> str:
    """Leaf after leaf, until there is enough."""
    parts: list[str] = []
    length = 0
    for path, leaf in _leaves("", value):
        part = f"{path}: {leaf}"
        parts.append(part)
        length += len(part) + len(BETWEEN)
        if length > chars_max:
            break
    return BETWEEN.join(parts)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """What the value says, each with the path to it; how deep it goes was checked before."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(f"{path}.{name}" if path else name, item)
    elif isinstance(value, list):
        if any(isinstance(item, dict | list) for item in value):
            for item in value:
                yield from _leaves(path, item)
        elif said := [text for item in value[:SCALARS_LISTED_MAX] if (text := _scalar(item))]:
            yield path, ", ".join(said)
    elif text := _scalar(value):
        yield path, text


def _scalar(value: Any) -> str:
    """Nothing for null and blank text: they say nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.strip() if isinstance(value, str) else str(value)
