"""`recollect up` without a terminal: put into the background, and brought down again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect.cli.failures import FAILED, USAGE, Failure
from recollect.cli.output import note
from recollect.cli.up.keeping import UP
from recollect.cli.up.programs import log_path
from recollect.cli.up.supervisor import how_it_ended
from recollect.orchestrator.running.data_folder import announcement, holder_of, keep_to_owner

LOOK_S = 0.05
UP_WITHIN_S = 120.0
"""A large store takes long to open; a start that failed is seen at once."""
LOG_LINES_SHOWN = 10


def detach(folder: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Start `recollect up` in a session of its own; returns what it announced once it is up."""
    keep_to_owner()
    _refuse_second(folder)
    log = log_path(folder, UP)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        offset = file.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "recollect", "up", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        return _wait_until_up(process, folder, log, offset)
    except KeyboardInterrupt:
        # In its session it hears nothing of Ctrl-C: whoever gives up the start means all of it.
        note(f"Stopping it again (process {process.pid}); Ctrl-C again does not wait for it.")
        process.terminate()
        process.wait()
        raise


def _wait_until_up(
    process: subprocess.Popen[bytes], folder: Path, log: Path, offset: int
) -> dict[str, Any]:
    """What it announces; raises Failure if it ends, or takes too long."""
    until_s = time.monotonic() + UP_WITHIN_S
    while time.monotonic() < until_s:
        if process.poll() is not None:
            raise _not_up(log, offset, process.returncode)
        announced = announcement(folder, UP)
        if announced is not None and announced["pid"] == process.pid:
            return announced
        time.sleep(LOOK_S)
    raise Failure(
        "slow_start",
        f"It is still starting after {UP_WITHIN_S:.0f} s, as process {process.pid}.",
        f"`recollect status` shows how it goes; its log: {log}",
    )


def bring_down(folder: Path, within_s: float) -> int | None:
    """Stop what runs on a data folder, without losing a write; the process, None if there was none.

    Only a process that holds the folder is signalled: a number that was left behind may belong to
    somebody else by now.
    """
    holder = holder_of(folder, UP)
    if holder is None:
        return None
    pid = int(holder) if holder.isdecimal() else None
    if pid is None:
        raise Failure("unknown_process", f"It is not known which process runs on {folder}.")
    os.kill(pid, signal.SIGTERM)
    until_s = time.monotonic() + within_s
    while holder_of(folder, UP) == holder:
        if time.monotonic() >= until_s:
            raise Failure(
                "slow_stop",
                f"Process {pid} still runs after {within_s:.0f} s.",
                "Ask again, and it does not wait for anybody.",
            )
        time.sleep(LOOK_S)
    return pid


def _refuse_second(folder: Path) -> None:
    holder = holder_of(folder, UP)
    if holder is not None:
        raise Failure(
            "already_up",
            f"Recollect is up already on {folder} (process {holder}).",
            "`recollect status` shows how it is, `recollect down` stops it.",
        )


def _not_up(log: Path, offset: int, code: int) -> Failure:
    """What it said before it ended."""
    with log.open("rb") as file:
        file.seek(offset)
        lines = file.read().decode(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    said = "".join(f"\n  {line}" for line in lines)
    return Failure(
        "start_failed",
        f"It did not come up: it {how_it_ended(code)}.{said}",
        exit_code=USAGE if code == USAGE else FAILED,
    )
