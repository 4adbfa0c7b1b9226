"""An orchestrator for an example: the one that is named, or one of its own that goes with it.

Where Recollect runs already (`recollect up`), give its endpoint and nothing is started.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READY_WITHIN_S = 60.0
STOPPED_WITHIN_S = 30.0


class Orchestrator:
    """Where the memory is reached."""

    def __init__(self, endpoint: str | None, data: Path) -> None:
        self._data = data
        self._process: subprocess.Popen[bytes] | None = None
        self.own = endpoint is None
        self.endpoint = endpoint if endpoint is not None else self._start()

    def restart(self) -> bool:
        """Stop it and start it on the same data; whether it is one that may be stopped."""
        if self.own:
            self.stop()
            self.endpoint = self._start()
        return self.own

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOPPED_WITHIN_S)
            self._process = None

    def _start(self) -> str:
        announced = self._data / "orchestrator.json"
        announced.unlink(missing_ok=True)
        command = [sys.executable, "-m", "recollect", "orchestrator"]
        with (self._data / "orchestrator.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--data", str(self._data), "--bind", "tcp://127.0.0.1:*"],
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < until and self._process.poll() is None:
            if announced.exists():
                endpoint: str = json.loads(announced.read_text())["endpoint"]
                return endpoint
            time.sleep(0.02)
        self._process.kill()
        raise SystemExit((self._data / "orchestrator.log").read_text())


@contextmanager
def orchestrator(endpoint: str | None = None) -> Iterator[Orchestrator]:
    """The orchestrator at an endpoint; without one, a new one with nothing in it."""
    with tempfile.TemporaryDirectory(prefix="recollect-example-") as folder:
        serving = Orchestrator(endpoint, Path(folder))
        try:
            yield serving
        finally:
            serving.stop()


def endpoint_given(about: str | None) -> str | None:
    """The endpoint on the command line of an example, if there is one."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "--endpoint",
        help="where Recollect runs, such as tcp://127.0.0.1:7331; "
        "without it the example starts an orchestrator of its own",
    )
    given: str | None = parser.parse_args().endpoint
    return given
