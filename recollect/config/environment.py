"""Reads settings from variables named RECOLLECT_<SECTION>_<KEY>.

A text key takes the variable's text as it is; a list is separated by commas, or JSON; any other
takes it as YAML would read it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import msgspec

from recollect.config.declarations import KEYS, SECTIONS, Key, nearest_key
from recollect.config.document import Given, plain_value
from recollect.config.problems import Problem, did_you_mean, nearest

PREFIX = "RECOLLECT_"

SHORT_NAMES: Mapping[str, str] = {"RECOLLECT_DATA": "storage.data"}

# Read elsewhere: by the client, by `find_config`, by whoever looks for models, and by the fault
# injection of the tests.
READ_ELSEWHERE = frozenset(
    {
        "RECOLLECT_ENDPOINT",
        "RECOLLECT_KEY_FILE",
        "RECOLLECT_BEARER",
        "RECOLLECT_CONFIG",
        "RECOLLECT_MODELS",
        "RECOLLECT_FAILPOINTS",
    }
)

# Folders are separated like PATH, and so are phases, which have commas of their own.
LIKE_PATH = frozenset({"documents.roots", "workflow.phases"})

VARIABLES: Mapping[str, str] = {
    **{key.variable: key.dotted for key in KEYS.values()},
    **SHORT_NAMES,
}


def from_text(key: Key, text: str) -> object:
    """The value that a text from outside any file stands for."""
    if key.is_text and not key.optional:
        return text
    if key.is_list:
        if text.lstrip().startswith("["):
            return _json_list(text)
        separator = os.pathsep if key.dotted in LIKE_PATH else ","
        return [part.strip() for part in text.split(separator) if part.strip()]
    value = plain_value(text.strip())
    return text if key.is_text and value is not None else value


def _json_list(text: str) -> object:
    """A list as JSON, for texts that hold the separator themselves; the text if it is none."""
    try:
        return msgspec.json.decode(text, type=list[str])
    except msgspec.MsgspecError:
        return text


def read_environment(environ: Mapping[str, str]) -> Iterator[Given | Problem]:
    """Everything the variables give, in the order of their names, and every unknown one."""
    first_names: dict[str, str] = {}
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in READ_ELSEWHERE:
            continue
        if name not in VARIABLES:
            yield Problem(name, "", "no such variable", _hint(name))
            continue
        dotted = VARIABLES[name]
        first = first_names.setdefault(dotted, name)
        if environ[first] != environ[name]:
            yield Problem(name, dotted, f"contradicts {first}", "set only one of them")
            continue
        yield Given(dotted, from_text(KEYS[dotted], environ[name]), name)


def _hint(name: str) -> str:
    bare = name.removeprefix(PREFIX)
    # The longest first: a section within a section is nearer than the one around it.
    for section in sorted(SECTIONS, key=len, reverse=True):
        prefix = f"{section.replace('.', '_')}_".upper()
        if bare.startswith(prefix):
            near = nearest_key(section, bare.removeprefix(prefix).lower())
            return did_you_mean(near.variable if near else None)
    if home := nearest_key("", bare.lower()):
        return did_you_mean(home.variable)
    # The prefix that all share would make any two names look alike.
    known = [variable.removeprefix(PREFIX) for variable in sorted({*VARIABLES, *READ_ELSEWHERE})]
    near_bare = nearest(bare, known)
    return did_you_mean(PREFIX + near_bare if near_bare else None)
