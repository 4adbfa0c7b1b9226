"""Files that are not what they should be."""

from __future__ import annotations


class BadFile(Exception):
    """A file cannot be read as what it was given as: which, where in it, and what was expected."""

    def __init__(self, path: str, message: str, expected: str = "", *, line: int | None = None):
        place = path if line is None else f"{path}, line {line:,}"
        super().__init__(f"{place}: {message}")
        self.path = path
        self.line = line
        self.expected = expected
        """What to do, or what such a file looks like."""
