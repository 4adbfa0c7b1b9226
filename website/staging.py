"""Lays out the pages as the site has them: all in one folder, the README as its first page.

In the repository the pages of the root link to `docs/…` and those in docs to `../…`. On the site
they stand side by side, and what they link to beside pages is put into the folder `files`.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

FILES = "files"
HOME = "index.md"
ROOT_PAGES = {
    "README.md": HOME,
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
"""Pages beside docs, with their names on the site."""

LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(\))")


def stage(root: Path, to: Path) -> list[str]:
    """Put all pages, and the files that they link to, into a folder; the names of the pages."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    pages = {root / name: called for name, called in ROOT_PAGES.items() if (root / name).exists()}
    pages |= {page: page.name for page in sorted((root / "docs").glob("*.md"))}
    for page, name in pages.items():
        (to / name).write_text(_moved(page, pages, root, to), encoding="utf-8")
    for folder in (root / "docs").iterdir():
        if folder.is_dir():  # pictures, charts and the like
            shutil.copytree(folder, to / folder.name)
    return sorted(pages.values())


def _moved(page: Path, pages: dict[Path, str], root: Path, to: Path) -> str:
    """The text of a page with its links as they are on the site."""

    def link(found: re.Match[str]) -> str:
        target = (page.parent / found[2]).resolve()
        if target in pages:
            led = pages[target]
        elif target.is_relative_to(root / "docs"):
            led = target.relative_to(root / "docs").as_posix()
        elif target.is_file():
            led = f"{FILES}/{target.name}"
            (to / FILES).mkdir(exist_ok=True)
            shutil.copyfile(target, to / FILES / target.name)
        elif target.is_dir():
            return f"]({FILES}/{target.name}.md)" if _listed(target, to) else found[0]
        else:
            return found[0]
        return f"{found[1]}{led}{found[3] or ''}{found[4]}"

    return LINK.sub(link, page.read_text(encoding="utf-8"))


def _listed(folder: Path, to: Path) -> bool:
    """Make a page of the programs in a folder, so that a link to it leads somewhere."""
    programs = sorted(folder.glob("*.py"))
    text = f"# {folder.name}\n" + "".join(
        f"\n## {program.name}\n\n```python\n{program.read_text(encoding='utf-8')}```\n"
        for program in programs
    )
    (to / FILES).mkdir(exist_ok=True)
    (to / FILES / f"{folder.name}.md").write_text(text, encoding="utf-8")
    return bool(programs)
