"""The Python of a page, in one process, each block going on where the one before it ended.

Run as a program, this is that process: it reads a block a line, and says what it printed and how
it failed, if it did.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from tests.harness.pages import Block

KILLED_WITHIN_S = 10.0


class PagePython:
    """A process that runs blocks of one page."""

    def __init__(self, name: str, folder: Path, env: Mapping[str, str]) -> None:
        self._name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=dict(env),
        )

    def run(self, block: Block, source: str) -> str:
        """What it printed; fails with the traceback, by the lines of the page."""
        assert self._process.stdin is not None and self._process.stdout is not None
        # Empty lines before it, so that its lines have the numbers that they have in the page.
        asked = {"name": self._name, "source": "\n" * (block.line - 1) + source}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        assert told["error"] is None, f"{told['printed']}\n{told['error']}"
        return str(told["printed"])

    def close(self) -> None:
        self._process.kill()
        self._process.wait(KILLED_WITHIN_S)


def serve() -> None:
    """Run what is asked for, until nothing more can be."""
    answers = sys.stdout
    known: dict[str, object] = {"__name__": "__main__"}
    for line in sys.stdin:
        asked = json.loads(line)
        printed = io.StringIO()
        error = None
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(asked["source"], asked["name"], "exec"), known)
            except BaseException:
                error = traceback.format_exc()
        print(json.dumps({"printed": printed.getvalue(), "error": error}), file=answers, flush=True)


if __name__ == "__main__":
    serve()
