"""The command line as tests drive it: real processes, in a folder and environment of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tests.harness.forks import FORKS
from tests.harness.ports import free_port
from tests.harness.processes import LIGHT
from tests.harness.storages import CHOSEN

ENDS_WITHIN_S = 60.0
HAPPENS_WITHIN_S = 30.0
RECOLLECT = (sys.executable, "-m", "recollect")


class Result(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """Standard output, which must be one JSON object and nothing else."""
        answer: dict[str, Any] = json.loads(self.out)
        return answer


class CommandLine:
    """Runs `recollect …` in one folder, against one endpoint."""

    def __init__(self, folder: Path, endpoint: str | None = None) -> None:
        self.folder = folder
        self.endpoint = endpoint

    def environment(self, **env: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RECOLLECT_")} | LIGHT
        named = {"RECOLLECT_ENDPOINT": self.endpoint} if self.endpoint else {}
        # Commands that open a store themselves are given the folder that the tests keep it in.
        named |= CHOSEN.env_of(self.folder / "data")
        # Wide enough for whole ids and paths, and without colours.
        return {**kept, "COLUMNS": "200", "NO_COLOR": "1", **named, **env}

    def __call__(self, *args: str | Path, given: str = "", **env: str) -> Result:
        with tempfile.TemporaryDirectory() as scratch:
            streams = Path(scratch)
            (streams / "in").write_text(given)
            process = FORKS.start(
                [*map(str, args)],
                folder=self.folder,
                env=self.environment(**env),
                given=streams / "in",
                out=streams / "out",
                err=streams / "err",
            )
            try:
                code = process.wait(ENDS_WITHIN_S)
            finally:
                process.kill()
            return Result(code, (streams / "out").read_text(), (streams / "err").read_text())


class Up:
    """`recollect up` on a data folder of its own."""

    def __init__(
        self,
        folder: Path,
        *,
        data: Path | None = None,
        env: Mapping[str, str] | None = None,
        without: Sequence[str] = ("scheduler", "gateway", "health"),
    ) -> None:
        """Most tests are about the orchestrator, and do `without` the rest."""
        self.data = data or folder / "data"
        self.endpoint = f"tcp://127.0.0.1:{free_port()}"
        self.recollect = CommandLine(folder, self.endpoint)
        self._output = folder / "up.log"
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(
                [
                    *(*RECOLLECT, "up", "--data", str(self.data), "--bind", self.endpoint),
                    *(part for name in without for part in ("--without", name)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                env=self.recollect.environment(**(env or {})),
            )

    def output(self) -> str:
        return self._output.read_text()

    def wait_ready(self) -> Up:
        self.wait_for(lambda: "is up" in self.output())
        return self

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Return once it happened; fail with the output if it does not."""
        wait_for(happened, self.output)

    def child(self) -> psutil.Process | None:
        """The orchestrator that runs now, if one is ready."""
        try:
            announced = json.loads((self.data / "orchestrator.json").read_text())
            return psutil.Process(announced["pid"])
        except (FileNotFoundError, psutil.NoSuchProcess):
            return None

    def running_child(self) -> psutil.Process:
        child = self.child()
        assert child is not None, self.output()
        return child

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait_ended(self) -> int:
        return self.process.wait(ENDS_WITHIN_S)

    def close(self) -> None:
        child = self.child()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(ENDS_WITHIN_S)
        if child is not None and child.is_running():
            child.kill()


def wait_for(happened: Callable[[], bool], explain: Callable[[], str] = str) -> None:
    """Return once it happened; fail if it does not within a bound."""
    deadline = time.monotonic() + HAPPENS_WITHIN_S
    while not happened():
        assert time.monotonic() < deadline, f"it did not happen in time:\n{explain()}"
        time.sleep(0.01)
