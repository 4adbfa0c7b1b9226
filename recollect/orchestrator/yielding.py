"""Work that nobody waits for leaves the processor to work that somebody waits for."""

from __future__ import annotations

import os
import threading

import structlog

log = structlog.get_logger()

NICENESS = 10


def yield_to_others() -> None:
    """Lower the priority of this thread alone, which Linux allows."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
    except OSError as error:
        log.debug("The priority stays as it is.", action="start", reason=str(error))
