"""The blocking client."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakSet, ref

import msgspec

from recollect.client.calling import Attempt, Outcome, Pause, Plan, Planner
from recollect.client.encoding import Call, Speaker
from recollect.client.methods import Blocking
from recollect.client.reporting import once, source_name
from recollect.client.sans_io import SansIoClient, must_wait, no_outbox
from recollect.client.sockets import closed
from recollect.protocol.errors import RecollectError, TransportError
from recollect.protocol.operation import Operation
from recollect.protocol.operations import ReadChanges

if TYPE_CHECKING:
    from recollect.client.delivery import Outbox
    from recollect.client.fleet.blocking import FleetTransport, ProbingThread
    from recollect.client.outbox import OutboxStatus, Queued
    from recollect.client.subscribing import Subscription
    from recollect.client.transport import Requests

R = TypeVar("R")


class MemoryClient(SansIoClient, Blocking):
    """A client of the memory orchestrator, safe to use from any number of threads.

    with MemoryClient(agent_id="planner") as memory:
        memory.add_memory("The build is green since Tuesday.")
        memory.search_memory("build")
    """

    def _open(self) -> None:
        self._closing = threading.Event()
        self._subscriptions: WeakSet[Subscription] = WeakSet()
        making, fleet = self._making, self._fleet
        make = partial(making.transport, fleet, making.pool.connections_max)
        self._lines: FleetTransport | None = None
        self._probing: ProbingThread | None = None
        self._transport: Requests
        if fleet is None:
            self._transport = make(self.endpoint)
        else:
            from recollect.client.fleet.blocking import FleetTransport, ProbingThread

            self._transport = self._lines = FleetTransport(fleet, make)
            probes = making.probes(fleet, self._planner.new_id)
            self._probing = ProbingThread(fleet, self._lines, probes, ref(self))

    def call(self, operation: Operation[R], /) -> R:
        """Carry out any operation; every other method goes through here."""
        # An answer has the shape that the operation promises; that is not checked again here.
        answer: Any
        try:
            call, speaker = self._prepare(operation), self._speaker
            if self._outbox is None or not self._may_wait(operation, call, speaker):
                answer = self._run(call, speaker)
            else:
                answer = self._write(call, speaker, self._outbox)
        except RecollectError as error:
            if self.raise_errors:
                raise
            answer = error.reply()
        return answer  # type: ignore[no-any-return]

    def _run(self, call: Call, speaker: Speaker) -> dict[str, Any]:
        single = self._single
        if single is None:
            answer = self._follow(self._planner.plan(call, speaker))
        else:
            answer = self._attempt(single, call, speaker)
        if self._errors.waiting:
            self._report_errors()
        return answer

    def _attempt(self, planner: Planner, call: Call, speaker: Speaker) -> dict[str, Any]:
        """Carry out a call; a plan is followed only if its first attempt fails."""
        begun = planner.begin(call, speaker)
        outcome: Outcome
        try:
            outcome = self._transport.request(begun.frame, begun.request_id, begun.timeout_s)
        except RecollectError as error:
            outcome = error
        except BaseException:
            begun.permit.abandoned()
            raise
        answer = planner.answer_of(outcome, begun.permit)
        if isinstance(answer, RecollectError):
            return self._follow(planner.going_on(call, speaker, begun, answer))
        return answer

    def _write(self, call: Call, speaker: Speaker, outbox: Outbox) -> dict[str, Any] | Queued:
        """Write now, or through the outbox: behind what waits there, or if there is no answer."""
        if self._closing.is_set():
            raise closed()
        if outbox.is_empty():
            try:
                return self._run(call, speaker)
            except TransportError as error:
                if not must_wait(error):
                    raise
        return outbox.put(call, speaker)

    def _follow(self, plan: Plan) -> dict[str, Any]:
        request = self._transport.request
        outcome: Outcome = None
        try:
            step = next(plan)
            while True:
                if isinstance(step, Attempt):
                    try:
                        outcome = request(*step)
                    except RecollectError as error:
                        outcome = error
                elif isinstance(step, Pause):
                    outcome = closed() if self._closing.wait(step.seconds) else None
                else:
                    assert self._lines is not None, "only the plans of a fleet have such steps"
                    outcome = self._lines.take(step)
                step = plan.send(outcome)
        except StopIteration as end:
            answer: dict[str, Any] = end.value
            return answer
        except BaseException:
            plan.close()
            raise

    def _report_errors(self) -> None:
        """Tell the orchestrator, in one round trip, what went wrong while it was away."""
        report = self._errors.take(source_name(self.agent_id))
        if report is None:
            return
        arrived = False
        try:
            self._follow(self._plan(once(self._prepare(report))))
            arrived = True
        except RecollectError as error:
            # A report that is not wanted is not sent again either.
            arrived = not error.retryable
        finally:
            self._errors.done(arrived)

    def subscribe(
        self,
        from_seq: int | None = None,
        *,
        namespace: str | None = None,
        operations: Sequence[str] | None = None,
        subject: str | None = None,
        agent: str | None = None,
        session_id: str | None = None,
        task_id: str | None = None,
    ) -> Subscription:
        """The changes as they come, in order, each once; over restarts too, until it is closed.

        with memory.subscribe(namespace="user:alice") as changes:
            for change in changes:
                print(change["seq"], change["operation"], change["subject"])

        from_seq: the last change that is known, such as the `seq` of an earlier subscription; from
            now on if absent. The rest narrows what is told.
        """
        from recollect.client.subscribing import Subscription

        wanted = ReadChanges(
            from_seq,
            namespace=namespace,
            operations=None if operations is None else list(operations),
            subject=subject,
            agent=agent,
            session_id=session_id,
            task_id=task_id,
        )
        if from_seq is None:
            # Whatever is written from here on comes behind this.
            present = self._run(self._prepare(wanted), self._speaker)
            wanted = msgspec.structs.replace(wanted, after_seq=present["next_seq"])
        line = self._making.one_line(self._fleet, self.endpoint)
        subscription = Subscription(self._follower(wanted), line)
        self._subscriptions.add(subscription)
        if self._closing.is_set():
            subscription.close()
        return subscription

    def outbox_status(self) -> OutboxStatus:
        """How many writes wait in the outbox, and how many the orchestrator refused."""
        if self._outbox is None:
            raise no_outbox()
        return self._outbox.status()

    def flush_outbox(self, timeout: float = 10.0) -> OutboxStatus:
        """Wait until the outbox is delivered; raises RequestTimeout if it is not in time."""
        if self._outbox is None:
            raise no_outbox()
        return self._outbox.flush(timeout)

    def close(self) -> None:
        """Close the connections; calls under way end with ClientClosed. Once is enough."""
        self._closing.set()
        for subscription in list(self._subscriptions):
            subscription.close()
        if self._probing is not None:
            self._probing.close()
        self._transport.close()
        if self._outbox is not None:
            self._outbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
