"""What this process takes of its machine: from /proc where there is one, else what the C library
tells."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from pathlib import Path

from recollect.protocol.records import ProcessFigures

PAGE_BYTES = resource.getpagesize()
OWN = Path("/proc/self")


def process_figures() -> ProcessFigures:
    """The figures of this moment."""
    try:
        rss_bytes = int((OWN / "statm").read_bytes().split()[1]) * PAGE_BYTES
        # Behind the name, which may hold anything: state is the first, the threads the 18th.
        threads = int((OWN / "stat").read_bytes().rpartition(b")")[2].split()[17])
        open_files = len(os.listdir(OWN / "fd"))
    except (OSError, ValueError, IndexError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # The most it ever had is the nearest that is known; in bytes on macOS, else in kilobytes.
        rss_bytes = most if sys.platform == "darwin" else most * 1024
        threads = threading.active_count()
        open_files = _open_files_counted()
    return {
        "pid": os.getpid(),
        "rss_bytes": rss_bytes,
        "cpu_s": time.process_time(),
        "threads": threads,
        "open_files": open_files,
    }


def _open_files_counted() -> int:
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return 0
