"""`recollect …` as forks of a process that has imported its libraries already.

Most of what a short process does is to import libraries, and the tests start hundreds. So one
process imports everything once, and what is started is a fork of it, with a folder, an environment
and files of its own, as any process has. It can be killed, stopped and waited for like any other.

Run as a program, this is that process: it reads a request a line from standard input, and says of
each the number of the process, and later its exit code.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
FORKED_WITHIN_S = 30.0
IMPORTED = (
    "recollect.cli.app",
    "recollect.orchestrator.running.process",
    "recollect.health.process",
    "recollect.gateway.process",
    "recollect.gateway.mcp.http",
    "recollect.client.async_transport",
    "recollect.client.breaker",
    "recollect.scheduler.process",
)


class Forked:
    """One process that was started."""

    def __init__(self) -> None:
        self.pid = 0
        self.started = threading.Event()
        self.ended = threading.Event()
        self.code: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal, once it has ended."""
        return self.code

    def wait(self, timeout_s: float) -> int:
        """The same, when it has ended."""
        if not self.ended.wait(timeout_s):
            raise TimeoutError(f"process {self.pid} has not ended within {timeout_s} s")
        assert self.code is not None
        return self.code

    def send_signal(self, number: signal.Signals) -> None:
        if self.code is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forks:
    """Starts processes. Any thread may use it; it ends with the tests."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._started: dict[int, Forked] = {}
        self.before: tuple[str, ...] = ()
        """What each process calls before it is `recollect …`, as `module:function`. What watches or
        sabotages it is brought in this way, so that it has no switches of its own for that."""

    def start(
        self,
        args: Sequence[str],
        *,
        folder: Path,
        env: Mapping[str, str],
        out: Path,
        err: Path,
        given: Path | None = None,
        before: Sequence[str] = (),
    ) -> Forked:
        """Start `recollect …` with files in the place of its streams; it appends to its output."""
        forked = Forked()
        with self._lock:
            number = len(self._started)
            self._started[number] = forked
            request = {
                "number": number,
                "args": [*args],
                "folder": str(folder),
                "env": dict(env),
                "files": [str(given or os.devnull), str(out), str(err)],
                "before": [*self.before, *before],
            }
            server = self._running()
            assert server.stdin is not None
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
        assert forked.started.wait(FORKED_WITHIN_S), "nothing was forked"
        return forked

    def _running(self) -> subprocess.Popen[str]:
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.harness.forks"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            threading.Thread(target=self._listen, args=(self._server,), daemon=True).start()
            atexit.register(self._close)
        return self._server

    def _listen(self, server: subprocess.Popen[str]) -> None:
        assert server.stdout is not None
        for line in server.stdout:
            told = json.loads(line)
            forked = self._started[told["number"]]
            if "pid" in told:
                forked.pid = told["pid"]
                forked.started.set()
            else:
                forked.code = told["code"]
                forked.ended.set()

    def _close(self) -> None:
        if self._server is not None and self._server.stdin is not None:
            self._server.stdin.close()
            self._server.wait(FORKED_WITHIN_S)


def serve() -> None:
    """Fork what is asked for, until nothing more can be."""
    for name in IMPORTED:
        __import__(name)
    from recollect.cli import app, late_commands

    app.command()
    late_commands.bring_in_all()
    del sys.path[0]  # what stands beside the tests is not for the processes to see
    running: dict[int, int] = {}
    # A child that ends writes a byte here, so that there is one thing to wait for.
    awake, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    selector.register(awake, selectors.EVENT_READ)
    selector.register(0, selectors.EVENT_READ)
    pending = b""
    while True:
        for key, _ in selector.select():
            if key.fd == awake:
                os.read(awake, 65_536)
                tell_ended(running)
                continue
            read = os.read(0, 1 << 20)
            if not read:
                return
            *lines, pending = (pending + read).split(b"\n")
            for line in lines:
                request = json.loads(line)
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    selector.close()
                    os.close(awake)
                    os.close(waking)
                    become(request)
                running[pid] = request["number"]
                tell(number=request["number"], pid=pid)


def tell_ended(running: dict[int, int]) -> None:
    """Say which processes have ended."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        tell(number=running.pop(pid), code=os.waitstatus_to_exitcode(status))


def tell(**told: int) -> None:
    print(json.dumps(told), flush=True)


def become(request: dict[str, Any]) -> NoReturn:
    """Be `recollect …`, to its end."""
    import runpy

    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, name in enumerate(request["files"]):
        opened = os.open(name, appending if number else os.O_RDONLY, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
    from recollect.cli import output

    # They look at their streams and variables as they are made.
    for console in (output.out, output.err):
        console.__init__(stderr=console.stderr, **output.PLAIN)  # type: ignore[misc]
    sys.argv = ["recollect", *request["args"]]
    code: Any = 0
    try:
        for name in request["before"]:
            module, _, function = name.partition(":")
            getattr(importlib.import_module(module), function)()
        runpy.run_module("recollect", run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        code = ending.code
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    # As at the end of any process; the one that was forked has no part in it.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            code = code or 120
    os._exit(0 if code is None else code)


FORKS = Forks()

if __name__ == "__main__":
    serve()
