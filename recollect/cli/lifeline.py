"""The line between a supervisor and its children: when one end is gone, the other one knows.

The supervisor holds the writing end of a pipe and never writes; each child has the reading end as
its standard input. However the supervisor ends, also by kill -9, the system closes its end, and
the child reads the end of the file.
"""

from __future__ import annotations

import os
import signal
import threading


def follow(descriptor: int = 0) -> None:
    """Tell this process to stop, as SIGTERM does, when the other end is gone."""

    def wait() -> None:
        try:
            while os.read(descriptor, 4096):
                pass
        except OSError:
            pass  # A line that cannot be read is as good as one that was cut.
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()
