"""The declared settings as a table of keys: what the loader and the reference look things up in."""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from recollect.config.problems import did_you_mean, nearest
from recollect.config.settings import Settings

TYPE_TEXTS: Mapping[type, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    tuple: "list of texts",
}
SHOWN_CHARS_MAX = 40  # of a refused value, in the message that refuses it


class Refused(Exception):
    """A value that its key cannot take, with what may have been meant."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


class Key(Struct, frozen=True):
    """One setting, as its struct declares it."""

    section: str  # dotted where sections hold sections, such as `jobs.decay`
    name: str
    hint: Any  # the annotation, which msgspec.convert takes whole
    kind: type  # str, int, float, bool, or tuple for a list of texts; a choice is a str
    choices: tuple[str, ...]
    optional: bool
    default: str | int | float | tuple[str, ...] | None
    bounds: Mapping[str, float]
    help: str

    @property
    def dotted(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"RECOLLECT_{self.dotted.replace('.', '_')}".upper()

    @property
    def is_text(self) -> bool:
        return self.kind is str

    @property
    def is_list(self) -> bool:
        return self.kind is tuple

    @property
    def type_text(self) -> str:
        if self.choices:
            return "choice"
        text = TYPE_TEXTS[self.kind]
        return f"{text} or null" if self.optional else text

    @property
    def bounds_text(self) -> str:
        """The bounds in words, such as `1 to 64`; empty for text."""
        if self.choices:
            return "`" + "`, `".join(self.choices) + "`"
        if "ge" in self.bounds and "le" in self.bounds:
            return f"{self.bounds['ge']} to {self.bounds['le']}"
        words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
        return ", ".join(f"{words[n]} {v}" for n, v in self.bounds.items() if n in words)

    def accept(self, value: object) -> object:
        """The value in the type of this key. Raises Refused."""
        if isinstance(value, PurePath):
            value = str(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise Refused(f"must be {self._wanted}, and finite, not {value}")
        try:
            accepted: object = msgspec.convert(value, self.hint)
        except msgspec.ValidationError:
            raise self._refusal(value) from None
        return accepted

    @property
    def _wanted(self) -> str:
        if self.choices:
            return ("one of " if len(self.choices) > 1 else "") + self.bounds_text
        article = "" if self.is_text or self.kind is bool else "a "
        bounds = f", {self.bounds_text}" if self.bounds_text else ""
        return f"{article}{self.type_text}{bounds}"

    def _refusal(self, value: object) -> Refused:
        if value is None:
            return Refused(f"must be {self._wanted}, not null")
        if self.choices:
            return Refused(
                f"must be {self._wanted}, not {_shown(value)}",
                did_you_mean(nearest(str(value), self.choices)),
            )
        if self.is_text and isinstance(value, str):
            return Refused("must not be empty")  # the one bound that text has
        hint = "put quotes around it" if self.is_text else ""
        return Refused(f"must be {self._wanted}, not {_shown(value)}", hint)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(value)
    except ValueError:  # Python does not print numbers of thousands of digits.
        return "so large a number"
    return text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…"


def _key(section: str, name: str, default: Any, hint: Any) -> Key:
    plain, *metas = get_args(hint)
    optional = get_origin(plain) in (Union, types.UnionType)
    if optional:
        # The bounds of an optional key stand inside the union.
        [plain] = [part for part in get_args(plain) if part is not type(None)]
        plain, *inner = get_args(plain) or (plain,)
        metas += inner
    help_text = next((m.description for m in metas if isinstance(m, Meta) and m.description), "")
    bounds = {
        name: bound
        for meta in metas
        for name in ("gt", "ge", "lt", "le")
        if (bound := getattr(meta, name)) is not None
    }
    choices = get_args(plain) if get_origin(plain) is Literal else ()
    return Key(
        section=section,
        name=name,
        hint=hint,
        kind=str if choices else get_origin(plain) or plain,
        choices=choices,
        optional=optional,
        default=default,
        bounds=bounds,
        help=help_text,
    )


class Section(Struct, frozen=True):
    """One section: keys of its own, sections within it, or both."""

    struct: type[Struct]
    help: str


def _walk(path: str, default: Struct, text: str) -> None:
    """Take down a section, its keys and what is within it.

    Defaults are those of the instance: several sections may be of one struct, each with its own.
    """
    struct = type(default)
    if path:
        SECTIONS[path] = Section(struct, " ".join((text or inspect.getdoc(struct) or "").split()))
    hints = get_type_hints(struct, include_extras=True)
    for name in struct.__struct_fields__:
        value, inner = getattr(default, name), f"{path}.{name}".lstrip(".")
        if isinstance(value, Struct):
            metas = get_args(hints[name])[1:]
            _walk(inner, value, next((m.description or "" for m in metas), ""))
        else:
            key = _key(path, name, value, hints[name])
            KEYS[key.dotted] = key


def section_help(section: str) -> str:
    """What the section is for, on one line."""
    return SECTIONS[section].help


def keys_of(section: str) -> list[Key]:
    """The keys that stand in a section itself."""
    return [key for key in KEYS.values() if key.section == section]


def value_of(settings: Settings, dotted: str) -> Any:
    """The value of a key in some settings."""
    value: Any = settings
    for name in dotted.split("."):
        value = getattr(value, name)
    return value


def nearest_key(section: str, name: str) -> Key | None:
    """The key that was probably meant: near in its section, else of that name in another."""
    siblings = {key.name: key for key in keys_of(section)}
    if near := nearest(name, siblings):
        return siblings[near]
    return next((key for key in KEYS.values() if key.name == name), None)


SECTIONS: dict[str, Section] = {}
KEYS: dict[str, Key] = {}
_walk("", Settings(), "")
