"""How work in the background tells what went wrong, without knowing whom it tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

Trouble = Callable[[str, str], None]
"""Told on the event loop, by code and message, what went wrong. A message quotes no memory."""


class Troubled(Protocol):
    """What works in the background and says when something goes wrong."""

    trouble: Trouble


def unheard(code: str, message: str) -> None:
    """For what is not part of an orchestrator."""


def from_threads(loop: asyncio.AbstractEventLoop, trouble: Callable[[], Trouble]) -> Trouble:
    """One that any thread may tell; whom it tells is looked up then."""

    def tell(code: str, message: str) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody hears it
            loop.call_soon_threadsafe(lambda: trouble()(code, message))

    return tell
