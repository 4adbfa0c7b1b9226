"""Patterns of paths: `*` and `?` within a name, `**` for any number of folders."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from recollect.protocol.errors import InvalidArgument

PATTERN_CHARS_MAX = 1024
ANY_FOLDERS = "**"


class Pattern:
    """One pattern, such as `**/*.md`."""

    def __init__(self, pattern: str) -> None:
        if not pattern.strip("/") or len(pattern) > PATTERN_CHARS_MAX or "\x00" in pattern:
            raise InvalidArgument(
                f"pattern is empty or has more than {PATTERN_CHARS_MAX} characters: give one such "
                "as **/*.md.",
                field="pattern",
            )
        self._parts = pattern.strip("/").split("/")

    def fits(self, parts: Sequence[str]) -> bool:
        """Whether a path, given by its names, fits."""
        # Which ends of the pattern are left to fit, name by name; never more than it has parts.
        left = self._opened({0})
        for name in parts:
            following = set()
            for at in left:
                if at < len(self._parts):
                    part = self._parts[at]
                    if part == ANY_FOLDERS:
                        following.add(at)
                    elif fnmatchcase(name, part):
                        following.add(at + 1)
            left = self._opened(following)
            if not left:
                return False
        return len(self._parts) in left

    def _opened(self, places: set[int]) -> set[int]:
        """The places, with those behind a `**`, which may stand for no folder at all."""
        found = set(places)
        for at in sorted(places):
            while at < len(self._parts) and self._parts[at] == ANY_FOLDERS:
                at += 1
                found.add(at)
        return found
