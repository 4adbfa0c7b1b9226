"""Writes the commented `memory_config.yaml` and `docs/configuration.md` from the declarations.

Run `python -m recollect.config.reference` after changing a setting; a test fails until then.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import yaml

from recollect.config.declarations import KEYS, SECTIONS, Key, keys_of, section_help
from recollect.config.environment import READ_ELSEWHERE, SHORT_NAMES

COLUMNS_MAX = 96

_YAML_HEADING = """\
# Recollect: every setting, at its default.
#
# Keep what you change and delete the rest: a key that is missing has its default.
# A variable RECOLLECT_<SECTION>_<KEY>, such as RECOLLECT_NETWORK_BIND, wins over this file,
# and a command-line flag wins over both. Unknown keys and wrong values are refused at start.
#
# This file is written by `python -m recollect.config.reference`.
"""

_MARKDOWN_HEADING = """\
# Configuration

<!-- Written by `python -m recollect.config.reference`. -->

Recollect runs without any configuration: every key has a default. Later sources win over earlier
ones:

1. the defaults below;
2. the file: the one named by `--config`, else by the variable `RECOLLECT_CONFIG`, else
   `memory_config.yaml` in the current folder if there is one;
3. variables, named `RECOLLECT_<SECTION>_<KEY>`; of a section within a section, such as
   `jobs.decay`, `RECOLLECT_JOBS_DECAY_<KEY>`;
4. command-line flags.

Unknown keys and variables, wrong types, values out of bounds and keys given twice are refused at
start, all in one message, each with its line and, where one is near, what was probably meant:

```text
The configuration was refused because of 2 problems:
  - memory_config.yaml:12: network.bnd: no such key; did you mean `network.bind`?
  - RECOLLECT_STORAGE_READERS: storage.readers: must be a whole number, 1 to 64, not 0
```

In the file, text that looks like a number, `true`, `false` or `null` needs quotes. A variable of a
text key is taken as it is, and one of a list is separated by commas (`documents.roots` and
`workflow.phases` like `PATH`, by colons) or a JSON list. The repository's `memory_config.yaml`
holds every key with its help.
"""

_READ_ELSEWHERE_HELP = {
    "RECOLLECT_CONFIG": "Path of the configuration file.",
    "RECOLLECT_ENDPOINT": "Address of the orchestrator that a client connects to.",
    "RECOLLECT_BEARER": "A bearer key in whose name a client asks; see access.md.",
    "RECOLLECT_KEY_FILE": "Path of the key file with which a client comes in; see access.md.",
    "RECOLLECT_MODELS": "Folder in which local models are installed.",
    "RECOLLECT_FAILPOINTS": "Faults to inject, for tests.",
}


def render_yaml() -> str:
    """The complete `memory_config.yaml`: each key under its help, at its default."""
    parts = [
        # A section within another follows closer.
        ("\n" if "." in section else "\n\n") + "\n".join(_yaml_section(section)) + "\n"
        for section in SECTIONS
    ]
    return _YAML_HEADING + "".join(parts)


def _yaml_section(section: str) -> Iterator[str]:
    outside = "  " * section.count(".")
    yield from _comment(section_help(section), outside)
    yield f"{outside}{section.rpartition('.')[2]}:"
    inside = outside + "  "
    for position, key in enumerate(keys_of(section)):
        if position:
            yield ""
        yield from _comment(key.help, inside)
        yield from _comment(_yaml_facts(key), inside)
        yield from _yaml_value(key, inside)


def _yaml_value(key: Key, indent: str) -> Iterator[str]:
    """The key at its default: a long list on lines of its own."""
    if _is_long(key):
        yield f"{indent}{key.name}:"
        yield from (f"{indent}  - {_scalar(item)}" for item in cast("tuple[str, ...]", key.default))
    else:
        yield f"{indent}{key.name}: {_scalar(key.default)}"


def _is_long(key: Key) -> bool:
    return key.is_list and len(f"  {key.name}: {_scalar(key.default)}") > COLUMNS_MAX


def _yaml_facts(key: Key) -> str:
    facts = key.bounds_text or key.type_text
    if key.choices:
        facts = f"{'one of' if len(key.choices) > 1 else 'only'} {facts}"
    default = "as it stands here" if _is_long(key) else _scalar(key.default)
    return f"{facts[0].upper()}{facts[1:]}; default {default}."


def _comment(text: str, indent: str) -> list[str]:
    start = f"{indent}# "
    return textwrap.wrap(
        text,
        COLUMNS_MAX,
        initial_indent=start,
        subsequent_indent=start,
        break_long_words=False,
        break_on_hyphens=False,
    )


def render_markdown() -> str:
    """The page `docs/configuration.md`: a table for each section."""
    sections = "".join("\n" + "\n".join(_markdown_section(section)) + "\n" for section in SECTIONS)
    return _MARKDOWN_HEADING + sections + "\n" + "\n".join(_other_variables()) + "\n"


def _markdown_section(section: str) -> Iterator[str]:
    yield from (f"##{'#' * section.count('.')} `{section}`", "", section_help(section))
    if not keys_of(section):
        return
    yield ""
    yield _row("Key", "Type", "Default", "Bounds", "Variable", "Help")
    yield _row(*["---"] * 6)
    for key in keys_of(section):
        yield _row(
            f"`{key.name}`",
            key.type_text,
            f"`{_scalar(key.default)}`",
            key.bounds_text,
            f"`{key.variable}`",
            key.help,
        )


def _other_variables() -> Iterator[str]:
    yield from ("## Other variables", "", _row("Variable", "Help"), _row("---", "---"))
    for name, dotted in SHORT_NAMES.items():
        yield _row(f"`{name}`", f"Short for `{KEYS[dotted].variable}`.")
    for name in sorted(READ_ELSEWHERE):
        yield _row(f"`{name}`", _READ_ELSEWHERE_HELP[name])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _scalar(value: object) -> str:
    """The value as YAML, with quotes wherever some YAML reader would need them."""
    if isinstance(value, tuple):
        value = list(value)
    dumped: str = yaml.safe_dump(value, default_flow_style=True, width=10_000)
    return dumped.removesuffix("...\n").strip()


def write(root: Path) -> None:
    """Write both files under the repository's root."""
    (root / "docs").mkdir(exist_ok=True)
    (root / "memory_config.yaml").write_text(render_yaml(), encoding="utf-8")
    (root / "docs" / "configuration.md").write_text(render_markdown(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).resolve().parents[2])
