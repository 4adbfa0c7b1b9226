"""Reads the YAML file into values that remember their line.

Plain scalars follow YAML 1.2: `off` and `yes` are text, `010` is not eight, `1e3` is a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import yaml
from msgspec import Struct

from recollect.config.declarations import KEYS, SECTIONS, nearest_key
from recollect.config.problems import Problem, did_you_mean, nearest

FILE_BYTES_MAX = 1_048_576

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?((\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
_NOT_FINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_STR_TAG = "tag:yaml.org,2002:str"


class Given(Struct, frozen=True):
    """A value that somebody gave for a key, and where."""

    key: str
    value: object
    source: str


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Leaves every scalar as it is written; `plain_value` gives it its type.

    Written in C where PyYAML has it: reading the complete file takes a tenth of the time.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, object]] = {}


def plain_value(text: str) -> object:
    """What an unquoted scalar stands for: null, true or false, a number, or its own text."""
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    except ValueError:  # Thousands of digits, or an underscore out of place.
        return text
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def read_document(path: Path) -> Iterator[Given | Problem]:
    """Everything the file gives, and everything that is wrong with its form, in its order."""
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        yield Problem(str(path), "", "there is no such file")
        return
    except OSError as error:
        yield Problem(str(path), "", f"the file cannot be read: {error.strerror or error}")
        return
    if len(raw) > FILE_BYTES_MAX:
        yield Problem(str(path), "", f"the file is larger than {FILE_BYTES_MAX} bytes")
        return
    try:
        root = yaml.compose(raw.decode("utf-8-sig"), Loader=_Loader)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        yield Problem(f"{path}:{line}", "", "the file is not UTF-8 text")
        return
    except (yaml.YAMLError, RecursionError) as error:
        yield _syntax_problem(path, error)
        return
    if root is not None and not _is_null(root):
        yield from _sections(path, root)


def _syntax_problem(path: Path, error: Exception) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        source = f"{path}:{mark.line + 1}" if mark else str(path)
        parts = [part for part in (error.context, error.problem) if part]
        return Problem(source, "", f"not valid YAML: {', '.join(parts)}")
    if isinstance(error, RecursionError):
        return Problem(str(path), "", "not valid here: nested too deeply")
    reason = getattr(error, "reason", "it cannot be parsed")
    return Problem(str(path), "", f"not valid YAML: {reason}")


def _sections(path: Path, root: yaml.Node) -> Iterator[Given | Problem]:
    if not isinstance(root, yaml.MappingNode):
        yield Problem(_at(path, root), "", "the file must hold sections, such as `storage:`")
        return
    for section, node, source, problem in _entries(path, root, ""):
        if problem:
            yield problem
        elif section not in SECTIONS:
            yield Problem(source, section, "no such section", _section_hint(section))
        else:
            yield from _section(path, section, node, source)


def _section(path: Path, section: str, node: yaml.Node, source: str) -> Iterator[Given | Problem]:
    """What stands in a section and in the sections within it."""
    if not isinstance(node, yaml.MappingNode):
        if not _is_null(node):  # A section whose keys are all commented out is null.
            yield Problem(source, section, "must hold keys, indented under it")
        return
    for name, inner, inner_source, problem in _entries(path, node, f"{section}."):
        if problem:
            yield problem
        elif name in SECTIONS:
            yield from _section(path, name, inner, inner_source)
        else:
            yield _given(path, name, inner, inner_source)


def _entries(
    path: Path, mapping: yaml.MappingNode, prefix: str
) -> Iterator[tuple[str, yaml.Node, str, Problem | None]]:
    """Each name, its node and its source; with a problem where the name itself is wrong."""
    first_lines: dict[str, int] = {}
    for name_node, node in mapping.value:
        source = _at(path, name_node)
        if not isinstance(name_node, yaml.ScalarNode):
            where = prefix.rstrip(".")
            yield where, node, source, Problem(source, where, "a name must be plain text")
            continue
        name = prefix + name_node.value
        if name in first_lines:
            message = f"given twice, first in line {first_lines[name]}"
            yield name, node, source, Problem(source, name, message)
            continue
        first_lines[name] = name_node.start_mark.line + 1
        yield name, node, source, None


def _given(path: Path, key: str, node: yaml.Node, source: str) -> Given | Problem:
    if key not in KEYS:
        return Given(key, None, source)  # An unknown key is reported whatever its value.
    if KEYS[key].is_list and isinstance(node, yaml.SequenceNode):
        return _given_list(path, key, node)
    if not isinstance(node, yaml.ScalarNode):
        return Problem(_at(path, node), key, "must be one value, not a list or a group of keys")
    if node.tag != _STR_TAG:
        return Problem(_at(path, node), key, "tags such as `!name` are not understood")
    value = plain_value(node.value) if not node.style else node.value
    return Given(key, value, _at(path, node))


def _given_list(path: Path, key: str, node: yaml.SequenceNode) -> Given | Problem:
    texts = []
    for item in node.value:
        if not isinstance(item, yaml.ScalarNode) or item.tag != _STR_TAG:
            return Problem(_at(path, item), key, "must be a list of plain texts")
        texts.append(item.value)
    return Given(key, texts, _at(path, node))


def _section_hint(name: str) -> str:
    if name in KEYS:
        key = KEYS[name]
        return f"write `{key.name}:` under `{key.section}:`"
    home = nearest_key("", name)
    return did_you_mean(home.dotted if home else nearest(name, SECTIONS))


def _is_null(node: yaml.Node) -> bool:
    plain = isinstance(node, yaml.ScalarNode) and not node.style
    return plain and plain_value(node.value) is None


def _at(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
