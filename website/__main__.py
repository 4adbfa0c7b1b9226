"""Builds the documentation site into build/site: `python -m website`, or into `site` of a folder
that is named.

It needs `pip install 'recollect[docs]'` and nothing from the network. Links and anchors that lead
nowhere fail the build.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from website.staging import stage

ROOT = Path(__file__).parents[1]
CONFIGURATION = Path(__file__).parent / "zensical.toml"
BUILD = ROOT / "build"


def present(nav: list[Any], pages: set[str]) -> list[Any]:
    """The navigation without pages that are not there; what a section has left stays."""
    kept: list[Any] = []
    for entry in nav:
        [(title, leads)] = entry.items()
        if isinstance(leads, list):
            leads = present(leads, pages)
            if leads:
                kept.append({title: leads})
        elif leads in pages:
            kept.append(entry)
    return kept


def named(nav: list[Any]) -> list[str]:
    """The pages that a navigation names, in its order."""
    found: list[str] = []
    for entry in nav:
        for leads in entry.values():
            found += named(leads) if isinstance(leads, list) else [leads]
    return found


def written(nav: list[Any], depth: int = 1) -> str:
    """A navigation as TOML."""
    lines = []
    for entry in nav:
        [(title, leads)] = entry.items()
        value = written(leads, depth + 1) if isinstance(leads, list) else f'"{leads}"'
        lines.append(f'{"  " * depth}{{ "{title}" = {value} }},\n')
    return "[\n" + "".join(lines) + "  " * (depth - 1) + "]"


def main(build: Path = BUILD) -> int:
    """Stage the pages, write the configuration for them, build."""
    pages = set(stage(ROOT, build / "site-pages"))
    text = CONFIGURATION.read_text(encoding="utf-8")
    nav = tomllib.loads(text)["project"]["nav"]
    before, _, rest = text.partition("nav = [")
    after = rest.partition("\n]\n")[2]
    folders = 'docs_dir = "site-pages"\nsite_dir = "site"\n'
    configuration = build / "zensical.toml"
    configuration.write_text(f"{before}{folders}nav = {written(present(nav, pages))}\n{after}")
    for page in named(nav):
        if page not in pages:
            print(f"left out of the navigation, because it is not there: {page}")
    generator = str(Path(sys.executable).parent / "zensical")
    command = [generator, "build", "--strict", "--clean", "--config-file", str(configuration)]
    try:
        return subprocess.run(command).returncode
    except FileNotFoundError:
        print("The generator is missing: run `pip install 'recollect[docs]'`.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
