"""What is wrong with an argument, in words a caller can act on."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import msgspec

from recollect.protocol.errors import InvalidArgument
from recollect.protocol.reference import description

NAME_CHARS_SHOWN = 64

_PLACE = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>.*?)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`")
_ITEM = re.compile(r"\[[^\]]*\]$")
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")


def explain(
    error: msgspec.ValidationError, shape: type[msgspec.Struct], what: str
) -> InvalidArgument:
    """An error of the decoder as one of ours, which names the field and says what it takes."""
    text = str(error)
    place = _PLACE.search(text)
    path = place["path"].lstrip(".") if place else ""
    reason = _PLACE.sub("", text)
    if unknown := _UNKNOWN.match(reason):
        return unknown_field(unknown["name"], shape, what)
    if missing := _MISSING.match(reason):
        reason, path = "is missing", f"{path}.{missing['name']}".lstrip(".")
    elif "of length >= 1" in reason:
        reason = "is empty"
    else:
        which = "has a key that is refused:" if place and place["key"] else "is refused:"
        reason = f"{which} {reason[0].lower()}{reason[1:]}".replace("`", "")
    help_text = _help(shape, path)
    if reason.startswith("is refused: invalid enum value") and (known := _choices(shape, path)):
        reason = f"{reason.replace('invalid enum', 'unknown')}; it is one of {', '.join(known)}"
        # A help that lists the words as well would only say it again.
        help_text = "" if all(word in help_text for word in known) else help_text
    message = f"{what}: {path or 'the argument list'} {reason}."
    if help_text:
        message += f" ({help_text})"
    return InvalidArgument(message, field=path)


def unknown_field(name: str, shape: type[msgspec.Struct], what: str) -> InvalidArgument:
    """A field that there is not, and the one that was probably meant."""
    # Looking for what is alike takes long for what is long.
    name = name[:NAME_CHARS_SHOWN]
    near = difflib.get_close_matches(name, shape.__struct_fields__, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InvalidArgument(f"{what} has no field {name!r}.{hint}", field=name)


def _help(shape: type[msgspec.Struct], path: str) -> str:
    return description(_type_of(shape, path))


def _choices(shape: type[msgspec.Struct], path: str) -> list[str]:
    """The words that a field takes, or that each item of it takes."""
    return list(_words(_type_of(shape, _ITEM.sub("", path))))


def _type_of(shape: type[msgspec.Struct], path: str) -> Any:
    return next((f.type for f in msgspec.structs.fields(shape) if f.name == path), None)


def _words(given: Any) -> Iterator[str]:
    """The words that a type allows, if it is made of some."""
    if get_origin(given) is Literal:
        yield from map(str, get_args(given))
    else:
        for part in get_args(given):
            yield from _words(part)
