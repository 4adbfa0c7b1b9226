"""Children that a test forks of itself."""

from __future__ import annotations

import os
import signal
import threading
import time

WAIT_S = 20.0


def wait_for_child(child: int) -> int:
    """The exit code of a child that was forked."""
    give_up_at_s = time.monotonic() + WAIT_S
    while time.monotonic() < give_up_at_s:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        threading.Event().wait(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child did not end")
