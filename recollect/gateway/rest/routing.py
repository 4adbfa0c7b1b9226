"""From method and path to a route, by the segments of the path as it was sent.

A segment is decoded after the path was split, so `%2F` inside a key stays inside it. The templates
form a tree, so what a search costs depends on the length of the path and not on how many there are.
"""

from __future__ import annotations

import re
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

from recollect.protocol.errors import InvalidArgument

T = TypeVar("T")

PARAMETER = re.compile(r"\{(\w+)\}")
PATH_BYTES_MAX = 16 * 1024


class Found(NamedTuple, Generic[T]):
    """What a path leads to: a target by method, and the values of its parameters in order."""

    targets: dict[str, T]
    values: tuple[str, ...]


class _Node(Generic[T]):
    """A place in the tree. What follows is a fixed segment, a parameter with a fixed ending such
    as `{job}:begin`, or a parameter."""

    __slots__ = ("endings", "fixed", "parameter", "targets")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node[T]] = {}
        self.endings: dict[str, _Node[T]] = {}
        self.parameter: _Node[T] | None = None
        self.targets: dict[str, T] = {}


class Router(Generic[T]):
    """Templates such as `/v1/memories/{memory_id}`, each with one target a method."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()

    def add(self, method: str, template: str, target: T) -> None:
        """Lead there from now on."""
        node = self._root
        for segment in template.removeprefix("/").split("/"):
            node = _below(node, segment)
        assert method not in node.targets, f"{method} {template} is declared twice"
        node.targets[method] = target

    def find(self, raw_path: bytes) -> Found[T] | None:
        """Where a path leads; None if nowhere. Raises InvalidArgument for one that is no path."""
        if len(raw_path) > PATH_BYTES_MAX:
            raise InvalidArgument(f"The path has more than {PATH_BYTES_MAX:,} bytes.")
        segments = raw_path.decode("latin-1").removeprefix("/").split("/")
        found = _walk(self._root, segments, 0)
        if found is None:
            return None
        node, values = found
        return Found(node.targets, tuple([decoded(value) for value in reversed(values)]))


def names_of(template: str) -> tuple[str, ...]:
    """The names of a template's parameters, in order."""
    return tuple(PARAMETER.findall(template))


def _below(node: _Node[T], segment: str) -> _Node[T]:
    """The place that a segment of a template leads to; it is made if it is not there."""
    parameter = PARAMETER.match(segment)
    if parameter is None:
        return node.fixed.setdefault(segment, _Node())
    ending = segment[parameter.end() :]
    if ending:
        return node.endings.setdefault(ending, _Node())
    if node.parameter is None:
        node.parameter = _Node()
    return node.parameter


def _walk(node: _Node[T], segments: list[str], place: int) -> tuple[_Node[T], list[str]] | None:
    """The last place of a path, with the raw values of its parameters, the last first.

    What is fixed goes before what is not; a wrong turn is taken back. So one level is looked at
    three times at most, and templates are short.
    """
    if place == len(segments):
        return (node, []) if node.targets else None
    segment = segments[place]
    following = node.fixed.get(segment)
    if following is not None and (found := _walk(following, segments, place + 1)):
        return found
    for ending, following in node.endings.items():
        if segment.endswith(ending) and len(segment) > len(ending):
            found = _walk(following, segments, place + 1)
            if found:
                found[1].append(segment[: -len(ending)])
                return found
    if node.parameter is not None and segment:
        found = _walk(node.parameter, segments, place + 1)
        if found:
            found[1].append(segment)
            return found
    return None


def decoded(segment: str) -> str:
    """A segment of a path as it is meant. Raises InvalidArgument for what cannot be meant."""
    if segment.isascii() and segment.isprintable() and "%" not in segment:
        text = segment
    else:
        try:
            text = unquote_to_bytes(segment.encode("latin-1")).decode()
        except UnicodeDecodeError:
            raise InvalidArgument("The path is not UTF-8, percent-encoded.") from None
        if any(character < " " or character == "\x7f" for character in text):
            raise InvalidArgument("The path holds a control character.")
    if text in (".", ".."):
        # Whatever stands between a client and us takes these for steps within the path.
        raise InvalidArgument(f"The path holds the segment {text!r}, which leads elsewhere.")
    return text
