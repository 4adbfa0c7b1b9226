"""Whether a lock fits pyproject.toml: `python .ci/lock.py LOCK EXTRA` says what does not, and exits
with 1 if something does not.

It needs nothing but Python and pip, since it is asked before anything is installed.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

try:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
except ImportError:
    from pip._vendor.packaging.requirements import Requirement
    from pip._vendor.packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
NAME = "recollect"
HASH = "--hash=sha256:"


def wanted(project: dict, extra: str) -> Iterator[Requirement]:
    """What an extra asks for, with what the extras that it names ask for."""
    texts = [*project["dependencies"], *project["optional-dependencies"][extra]]
    for requirement in map(Requirement, texts):
        if canonicalize_name(requirement.name) != NAME:
            yield requirement
            continue
        for other in sorted(requirement.extras):
            yield from wanted(project, other)


def locked(lock: str) -> dict[str, list[tuple[str, int]]]:
    """Versions by name, each with the number of its hashes."""
    found: dict[str, list[tuple[str, int]]] = {}
    for entry in lock.replace("\\\n", " ").splitlines():
        if not entry.strip() or entry.lstrip().startswith("#"):
            continue
        text, *hashes = entry.split(HASH)
        requirement = Requirement(text.strip())
        [pinned] = requirement.specifier
        assert pinned.operator == "==", f"{text} is not pinned"
        found.setdefault(canonicalize_name(requirement.name), []).append(
            (pinned.version, len(hashes))
        )
    return found


def misfits(lock: str, pyproject: str, extra: str) -> list[str]:
    """What of pyproject.toml the lock does not hold."""
    pinned = locked(lock)
    wrong = [
        f"{name} {version} has no hash"
        for name, versions in pinned.items()
        for version, hashes in versions
        if not hashes
    ]
    for requirement in wanted(tomllib.loads(pyproject)["project"], extra):
        versions = [version for version, _ in pinned.get(canonicalize_name(requirement.name), [])]
        if not versions:
            wrong.append(f"{requirement} is not locked")
        elif not all(requirement.specifier.contains(version, True) for version in versions):
            wrong.append(f"{requirement} is locked as {', '.join(versions)}")
    return sorted(set(wrong))


def main() -> None:
    path, extra = ROOT / sys.argv[1], sys.argv[2]
    found = misfits(path.read_text(), (ROOT / "pyproject.toml").read_text(), extra)
    for text in found:
        print(f"{path.name}: {text}", file=sys.stderr)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
