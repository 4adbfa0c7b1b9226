"""The event loop that a process of Recollect runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec


def quickest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the quickest event loop that is installed; None stands for asyncio's own."""
    if find_spec("uvloop") is None:
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return make
