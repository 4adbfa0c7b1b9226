"""What a forked child must not share with its parent: sockets, threads, and locks held at the fork.

Whoever has such state registers here and is told in the child, before any other code runs there.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol


class ForkAware(Protocol):
    def after_fork(self) -> None:
        """Replace, in the child, all that belongs to the parent."""


_aware: weakref.WeakSet[ForkAware] = weakref.WeakSet()

# Objects of the parent. The child keeps them so that none is closed by the garbage collector.
_inherited: list[Any] = []


def register(state: ForkAware) -> None:
    """Call `state.after_fork()` in every child forked from now on, as long as `state` lives."""
    _aware.add(state)


def keep_unclosed(*objects: Any) -> None:
    """Put objects of the parent aside, never to be used or closed in this process."""
    _inherited.extend(objects)


def _in_child() -> None:
    for state in list(_aware):
        state.after_fork()


os.register_at_fork(after_in_child=_in_child)
