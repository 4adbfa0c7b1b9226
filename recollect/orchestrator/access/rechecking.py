"""Writes of calls that take more than one transaction: each asks anew whether the caller may.

What a call may do is taken down when it comes in. A run or a document can be at work for long after
that; what it has not written when its key is revoked, its grants are changed or the lease under
which it works is given to somebody else, it does not write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from recollect.orchestrator.calls import Call
from recollect.orchestrator.jobs.fencing import check_fence
from recollect.orchestrator.storage.interface import Storage, WriteFunction, WriteTransaction

T = TypeVar("T")


class RecheckedWrites:
    """A storage to write to in the name of a caller, as long as they may."""

    def __init__(self, storage: Storage, check_still_allowed: Callable[[Call], None]) -> None:
        """`check_still_allowed` is asked in the thread of the writer."""
        self._storage = storage
        self._check_still_allowed = check_still_allowed

    def write(self, call: Call, function: WriteFunction[T]) -> asyncio.Future[T]:
        """Run a write as one transaction, unless its caller may no longer do what it might."""

        def checked(transaction: WriteTransaction) -> T:
            self._check_still_allowed(call)
            if call.fence is not None:
                check_fence(call, transaction)
            return function(transaction)

        return self._storage.write(checked)
