"""What an embedded redis-server left behind whose guard was killed before it could tidy up.

Whoever looks holds the data folder, so that no living orchestrator uses what is found. A process is
ended only if it is certain to be that server: it answers on the socket, which lies in a folder of
our own, or its command line names that socket. A number in a file is no proof, since numbers come
again.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import structlog

from recollect.orchestrator.redis.home import Home

log = structlog.get_logger()

ANSWERED_WITHIN_S = 0.5
GONE_WITHIN_S = 2.0
POLL_S = 0.01
ANSWER_BYTES_MAX = 65_536


def clear(home: Home) -> None:
    """End the server that was left, if there is one, and remove its files."""
    pid = _pid_that_answers(home) or _pid_in_file(home)
    if pid is not None:
        log.warning("A redis-server was left behind and is ended.", action="redis", pid=pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        until_s = time.monotonic() + GONE_WITHIN_S
        while _command_line(pid) and time.monotonic() < until_s:
            time.sleep(POLL_S)
    home.remove()


def _pid_that_answers(home: Home) -> int | None:
    """The number that the server on our socket says it has."""
    answer = b""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(ANSWERED_WITHIN_S)
        asking.connect(str(home.socket))
        asking.sendall(b"INFO server\r\nQUIT\r\n")
        while len(answer) < ANSWER_BYTES_MAX and (some := asking.recv(4096)):
            answer += some
    found = re.search(rb"^process_id:(\d+)", answer, re.MULTILINE)
    return int(found[1]) if found else None


def _pid_in_file(home: Home) -> int | None:
    """The number in the file, if it is still that of a server on our socket."""
    try:
        pid = int(home.pid_file.read_text())
    except (OSError, ValueError):
        return None
    command = _command_line(pid)
    return pid if "redis" in command and str(home.socket) in command else None


def _command_line(pid: int) -> str:
    """How a process was called, or calls itself; nothing if there is none."""
    place = Path("/proc") / str(pid) / "cmdline"
    try:
        if place.parent.parent.joinpath("self").exists():
            return place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        asked = ["ps", "-p", str(pid), "-o", "args="]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
