"""Names of a framework as parts of namespaces and as keys, and back.

A framework's names may be any text. What has no place in a part of a namespace, or in a key, is
percent-encoded, and so is the percent sign: two names never become one. The empty name is a lone
percent sign, which encodes nothing.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

_NOT_IN_PARTS = re.compile(r"[%:\s\x00]")
_NOT_IN_KEYS = re.compile(r"[%\x00]")
EMPTY = "%"


def part_of(name: str) -> str:
    """A name as one part of a namespace."""
    return _encoded(_NOT_IN_PARTS, name)


def key_of(name: str) -> str:
    """A name as a key."""
    return _encoded(_NOT_IN_KEYS, name)


def name_of(text: str) -> str:
    """The name that a part or a key was made from."""
    return "" if text == EMPTY else unquote(text)


def namespace_of(root: str, names: tuple[str, ...]) -> str:
    """The namespace of some names below a root."""
    return ":".join((root, *map(part_of, names)))


def names_below(root: str, namespace: str) -> tuple[str, ...]:
    """The names that a namespace below a root was made from."""
    below = namespace.removeprefix(root).removeprefix(":")
    return tuple(map(name_of, below.split(":"))) if below else ()


def _encoded(reserved: re.Pattern[str], name: str) -> str:
    return reserved.sub(lambda found: quote(found[0], safe=""), name) or EMPTY
