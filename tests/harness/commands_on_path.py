"""Commands as a page names them, on a PATH of their own.

`recollect` is that of this tree, as a fork of a process that has imported it already. What would
stay until Ctrl-C is interrupted as a reader would do it, once it has shown something. `curl` fails
on an answer that is an error, and `pip install` checks that there is what it names, and installs
nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.harness.forks import FORKS, ROOT, Forked

ENDS_WITHIN_S = 60.0
STAYS_S = 2.0
"""So long does a command go on that shows nothing until something happens."""

RECOLLECT = """#!{python} -SE
import json, os, socket, sys

line = socket.socket(socket.AF_UNIX)
line.connect({address!r})
given = "" if sys.stdin.isatty() else sys.stdin.read()
asked = dict(args=sys.argv[1:], folder=os.getcwd(), env=dict(os.environ), given=given)
line.sendall(json.dumps(asked).encode() + b"\\n")
told = json.loads(line.makefile().readline())
sys.stdout.write(told["out"])
sys.stderr.write(told["err"])
sys.exit(told["code"])
"""
CURL = """#!/bin/sh
case " $* " in
*" -N "*) {curl} --noproxy '*' --fail-with-body --max-time 2 "$@"; [ $? = 28 ];;
*) exec {curl} --noproxy '*' --fail-with-body --max-time 30 "$@";;
esac
"""
PIP = """#!{python}
import importlib.metadata, sys, tomllib
from packaging.requirements import Requirement

extras = tomllib.load(open({project!r}, "rb"))["project"]["optional-dependencies"]
assert sys.argv[1] == "install", sys.argv
for given in (word for word in sys.argv[2:] if word != "--upgrade"):
    wanted = Requirement(given.replace(".", "recollect", 1) if given[0] == "." else given)
    if wanted.name != "recollect":
        importlib.metadata.version(wanted.name)
    assert wanted.extras <= extras.keys(), f"no such extra: {{wanted.extras - extras.keys()}}"
"""


class CommandsOnPath:
    """A folder of commands for PATH, served until it is closed."""

    def __init__(self, without: Sequence[str] = ()) -> None:
        """`recollect up` leaves out some processes that nobody is going to ask for."""
        self._left_out = [part for name in without for part in ("--without", name)]
        # The path of a socket must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="rc-"))
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.folder / "line"))
        self._listening.listen()
        curl = shutil.which("curl") or "curl"
        address = str(self.folder / "line")
        self._write("recollect", RECOLLECT.format(python=sys.executable, address=address))
        self._write("curl", CURL.format(curl=curl))
        project = str(ROOT / "pyproject.toml")
        self._write("pip", PIP.format(python=sys.executable, project=project))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def path(self) -> str:
        """A PATH with these commands before all others, and then those of this Python."""
        return os.pathsep.join(
            (str(self.folder), str(Path(sys.executable).parent), os.environ["PATH"])
        )

    def close(self) -> None:
        self._listening.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return  # it was closed
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: socket.socket) -> None:
        with line, line.makefile() as reading, tempfile.TemporaryDirectory() as scratch:
            asked = json.loads(reading.readline())
            told = self._run(asked, Path(scratch))
            line.sendall(json.dumps(told).encode() + b"\n")

    def _run(self, asked: dict[str, Any], streams: Path) -> dict[str, Any]:
        (streams / "in").write_text(asked["given"])
        (streams / "out").touch()
        args = asked["args"] + (self._left_out if asked["args"][:1] == ["up"] else [])
        process = FORKS.start(
            args,
            folder=Path(asked["folder"]),
            env=asked["env"],
            given=streams / "in",
            out=streams / "out",
            err=streams / "err",
        )
        try:
            if stays(args):
                interrupt(process, streams / "out")
            code = process.wait(ENDS_WITHIN_S)
        finally:
            process.kill()
        if stays(args) and code in (-signal.SIGINT, 128 + signal.SIGINT):
            code = 0
        return {
            "code": code % 256,
            "out": (streams / "out").read_text(),
            "err": (streams / "err").read_text(),
        }


def stays(args: list[str]) -> bool:
    """Whether a command goes on until it is interrupted."""
    return args[:1] == ["feed"] or "--watch" in args or (args[:1] == ["logs"] and "-f" in args)


def interrupt(process: Forked, out: Path) -> None:
    """Ctrl-C, once it has shown something or had time to."""
    until_s = time.monotonic() + STAYS_S
    while process.poll() is None and not out.stat().st_size and time.monotonic() < until_s:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
