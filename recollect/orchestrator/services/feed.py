"""The change feed: what was done, told in order to those who may see it."""

from __future__ import annotations

from recollect.orchestrator.calls import Call, Refusal, reads
from recollect.orchestrator.clock import Clock, to_iso
from recollect.orchestrator.feed.live import LiveFeed
from recollect.orchestrator.feed.wanted import COMPARED, Wanted
from recollect.orchestrator.storage.interface import Change
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operations import ReadChanges

ANSWERED_BEFORE_S = 0.05
"""So long before its deadline a call that waits is answered."""


class FeedService:
    """Reads of the changes as they come."""

    def __init__(self, feed: LiveFeed, validator: Validator, clock: Clock) -> None:
        self._feed = feed
        self._validator = validator
        self._clock = clock

    @reads(ReadChanges)
    async def read_changes(self, call: Call, operation: ReadChanges) -> records.ChangesRead:
        limit = self._validator.page(operation.limit)
        wanted = self._wanted(call, operation)
        wait_s = self._wait_s(call, operation)
        page = await self._feed.page(operation.after_seq, wanted, limit)
        if wait_s > 0 and page.complete and not page.changes:
            page = await self._feed.next_page(call, page.next_seq, wanted, limit, wait_s)
        return {
            "status": "success",
            "changes": [told(change) for change in page.changes],
            "next_seq": page.next_seq,
            "seq": page.seq,
            "complete": page.complete,
        }

    def _wanted(self, call: Call, operation: ReadChanges) -> Wanted:
        """What is asked for, and of that what the caller may see."""
        namespace = operation.namespace
        if namespace is not None:
            self._validator.namespace(namespace)
        homes = call.grants.within(namespace)
        if homes is None and namespace is not None:
            homes = (namespace,)
        elif not homes and homes is not None:
            call.refusals.append(Refusal("", namespace, "not readable"))
        for name in COMPARED:
            value = getattr(operation, name)
            if value is not None:
                self._validator.asked(name, value, "key_chars_max")
        for value in operation.operations or ():
            self._validator.asked("operations", value, "key_chars_max")
        return Wanted(
            homes,
            None if operation.operations is None else frozenset(operation.operations),
            operation.subject,
            operation.agent,
            operation.session_id,
            operation.task_id,
        )

    def _wait_s(self, call: Call, operation: ReadChanges) -> float:
        if operation.wait_s != operation.wait_s:
            raise InvalidArgument("wait_s is not a number of seconds.", field="wait_s")
        left_s = (call.deadline_us - self._clock.now_us()) / 1_000_000 - ANSWERED_BEFORE_S
        return min(operation.wait_s, left_s)


def told(change: Change) -> records.FeedChange:
    """A change as the feed shows it."""
    return {
        "seq": change.seq,
        "at": to_iso(change.at_us),
        "operation": change.operation,
        "subject": change.subject,
        "namespace": change.namespace,
        "version_before": change.version_before,
        "version_after": change.version_after,
        "identity": change.identity,
        "agent": change.agent,
        "session_id": change.session_id,
        "task_id": change.task_id,
        "trace": change.trace,
    }
