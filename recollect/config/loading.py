"""Loads the settings: defaults, then the file, then variables, then the command line.

A later source wins. Whatever is wrong in any of them is reported together, in one ConfigError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from msgspec import Struct, structs

from recollect.config.checks import check
from recollect.config.declarations import KEYS, SECTIONS, Refused, nearest_key
from recollect.config.document import Given, read_document
from recollect.config.environment import from_text, read_environment
from recollect.config.problems import ConfigError, Problem, did_you_mean, nearest
from recollect.config.settings import Settings

FILE_NAME = "memory_config.yaml"
COMMAND_LINE = "command line"
ADDRESSED = ("address", "bind", "endpoint", "listen", "url")
"""What people look for who want to say where something listens."""

S = TypeVar("S", bound=Struct)

_NO_OVERRIDES: Mapping[str, object] = MappingProxyType({})


def load(
    path: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, object] = _NO_OVERRIDES,
) -> Settings:
    """The settings in force. Raises ConfigError with everything that is wrong.

    `path` None means no file. `overrides` maps dotted keys, such as `storage.data`, to values; a
    text given for a number is read as a variable's would be. A flag that was not given must be
    left out: None stands for null.
    """
    file = read_document(path) if path is not None else iter(())
    sources = chain(file, read_environment(environ), _read_overrides(overrides))
    accepted, problems = _accept(sources)
    settings = _build(accepted)
    problems.extend(_broken_rules(settings, accepted, {p.key for p in problems}))
    if problems:
        raise ConfigError(problems)
    return settings


def find_config(explicit: str | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The file to load: the one named, else RECOLLECT_CONFIG, else `memory_config.yaml` in `cwd`.

    A file that was named is returned even if it is missing, so that `load` can say so.
    """
    named = explicit or environ.get("RECOLLECT_CONFIG")
    if named:
        return cwd / named
    usual = cwd / FILE_NAME
    return usual if usual.exists() else None


def _read_overrides(overrides: Mapping[str, object]) -> Iterator[Given]:
    for dotted, value in overrides.items():
        if isinstance(value, str) and dotted in KEYS:
            value = from_text(KEYS[dotted], value)
        yield Given(dotted, value, COMMAND_LINE)


def _accept(sources: Iterable[Given | Problem]) -> tuple[dict[str, Given], list[Problem]]:
    """The last value given for each key, in its type; and what had to be refused."""
    accepted: dict[str, Given] = {}
    problems: list[Problem] = []
    for item in sources:
        if isinstance(item, Problem):
            problems.append(item)
        elif item.key not in KEYS:
            problems.append(Problem(item.source, item.key, "no such key", _key_hint(item.key)))
        else:
            try:
                value = KEYS[item.key].accept(item.value)
            except Refused as refused:
                problems.append(Problem(item.source, item.key, refused.message, refused.suggestion))
            else:
                accepted[item.key] = Given(item.key, value, item.source)
    return accepted, problems


def _key_hint(dotted: str) -> str:
    section, _, name = dotted.rpartition(".")
    if section in SECTIONS:
        if near_section := nearest(dotted, (s for s in SECTIONS if s.startswith(f"{section}."))):
            return did_you_mean(near_section)
        if name in ADDRESSED and {f"{section}.host", f"{section}.port"} <= KEYS.keys():
            return f"where it listens is `{section}.host` and `{section}.port`"
        near = nearest_key(section, name)
        return did_you_mean(near.dotted if near else None)
    return did_you_mean(nearest(dotted, KEYS))


def _build(accepted: Mapping[str, Given]) -> Settings:
    settings = Settings()
    for given in accepted.values():
        settings = _with(settings, given.key.split("."), given.value)
    return settings


def _with(section: S, path: Sequence[str], value: object) -> S:
    """The same section with another value at one place within it."""
    name, *rest = path
    if rest:
        value = _with(getattr(section, name), rest, value)
    return structs.replace(section, **{name: value})


def _broken_rules(
    settings: Settings, accepted: Mapping[str, Given], refused: set[str]
) -> Iterator[Problem]:
    """Rules broken by values that are right by themselves, reported where one was given."""
    for finding in check(settings):
        if refused.isdisjoint(finding.keys):  # A refused value stands at its default here.
            given = next((accepted[key] for key in finding.keys if key in accepted), None)
            source = given.source if given else "defaults"
            yield Problem(source, finding.keys[0], finding.message, finding.suggestion)
