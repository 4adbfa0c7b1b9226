"""What a forked child must not share with its parent: sockets, threads, and locks held at the fork.

Whoever has such state registers here and is told in the child, before any other code runs there.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Protocol


class ForkAware(Protocol):
    def after_fork(self) -> None:
        """Replace, in the child, all that belongs to the parent."""


class Settling(ForkAware, Protocol):
    """What must be at rest while the process forks, because a library keeps what it was doing."""

    def before_fork(self) -> None:
        """Wait until nothing is under way, and let nothing begin."""

    def after_fork_in_parent(self) -> None:
        """Go on."""


_aware: weakref.WeakSet[ForkAware] = weakref.WeakSet()
_settling: weakref.WeakSet[Settling] = weakref.WeakSet()

# Two threads that fork at once would wait for each other's; held from before a fork to after it.
_forking = threading.Lock()
_settled: list[Settling] = []

# Objects of the parent. The child keeps them so that none is closed by the garbage collector.
_inherited: list[Any] = []


def register(state: ForkAware) -> None:
    """Call `state.after_fork()` in every child forked from now on, as long as `state` lives."""
    _aware.add(state)


def register_settling(state: Settling) -> None:
    """The same for what must also be at rest at a fork."""
    _settling.add(state)
    register(state)


def keep_unclosed(*objects: Any) -> None:
    """Put objects of the parent aside, never to be used or closed in this process."""
    _inherited.extend(objects)


def _before() -> None:
    _forking.acquire()
    for state in list(_settling):
        state.before_fork()
        _settled.append(state)


def _in_parent() -> None:
    while _settled:
        _settled.pop().after_fork_in_parent()
    _forking.release()


def _in_child() -> None:
    global _forking
    _forking = threading.Lock()
    _settled.clear()
    for state in list(_aware):
        state.after_fork()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
