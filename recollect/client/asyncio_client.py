"""The asyncio client."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakSet, ref

from recollect.client.calling import Attempt, Outcome, Pause, Plan, Planner
from recollect.client.encoding import Call, Speaker
from recollect.client.methods import Awaiting
from recollect.client.reporting import once, source_name
from recollect.client.sans_io import SansIoClient, must_wait, no_outbox
from recollect.client.sockets import closed
from recollect.protocol.errors import RecollectError, TransportError
from recollect.protocol.operation import Operation
from recollect.protocol.operations import ReadChanges

if TYPE_CHECKING:
    import asyncio

    from recollect.client.async_subscribing import AsyncSubscription, Request
    from recollect.client.async_transport import AsyncTransport
    from recollect.client.delivery import Outbox
    from recollect.client.fleet.awaiting import AsyncFleetTransport, ProbingTask
    from recollect.client.outbox import OutboxStatus, Queued

R = TypeVar("R")


class AsyncMemoryClient(SansIoClient, Awaiting):
    """A client of the memory orchestrator for asyncio; it belongs to the loop that uses it first.

    async with AsyncMemoryClient(agent_id="planner") as memory:
        await memory.add_memory("The build is green since Tuesday.")
        await memory.search_memory("build")
    """

    def _open(self) -> None:
        self._closed = False
        self._reports: set[asyncio.Task[None]] = set()
        self._subscriptions: WeakSet[AsyncSubscription] = WeakSet()
        self._lines: AsyncFleetTransport | None = None
        self._probing: ProbingTask | None = None
        self._transport: AsyncTransport | AsyncFleetTransport
        self._request: Request
        making, fleet = self._making, self._fleet
        if fleet is None:
            single = self._transport = making.async_transport(None, self.endpoint)
            self._request = single.request
        else:
            from recollect.client.fleet.awaiting import AsyncFleetTransport, ProbingTask

            lines = AsyncFleetTransport(fleet, partial(making.async_transport, fleet))
            self._transport = self._lines = lines
            self._request = lines.staying()
            probes = making.probes(fleet, self._planner.new_id)
            self._probing = ProbingTask(fleet, lines, probes, ref(self))

    async def call(self, operation: Operation[R], /, *, speaker: Speaker | None = None) -> R:
        """Carry out any operation; every other method goes through here.

        speaker: for whom, where that is not the client itself: a gateway has many callers.
        """
        # An answer has the shape that the operation promises; that is not checked again here.
        answer: Any
        try:
            call, speaker = self._prepare(operation), speaker or self._speaker
            if self._outbox is None or not self._may_wait(operation, call, speaker):
                answer = await self._run(call, speaker)
            else:
                answer = await self._write(call, speaker, self._outbox)
        except RecollectError as error:
            if self.raise_errors:
                raise
            answer = error.reply()
        return answer  # type: ignore[no-any-return]

    async def _run(self, call: Call, speaker: Speaker) -> dict[str, Any]:
        single = self._single
        if single is None:
            answer = await self._follow(self._planner.plan(call, speaker))
        else:
            answer = await self._attempt(single, call, speaker)
        if self._errors.waiting:
            self._report_errors()
        return answer

    async def _attempt(self, planner: Planner, call: Call, speaker: Speaker) -> dict[str, Any]:
        """Carry out a call; a plan is followed only if its first attempt fails."""
        begun = planner.begin(call, speaker)
        outcome: Outcome
        try:
            outcome = await self._request(begun.frame, begun.request_id, begun.timeout_s)
        except RecollectError as error:
            outcome = error
        except BaseException:
            begun.permit.abandoned()
            raise
        answer = planner.answer_of(outcome, begun.permit)
        if isinstance(answer, RecollectError):
            return await self._follow(planner.going_on(call, speaker, begun, answer))
        return answer

    async def _write(self, call: Call, speaker: Speaker, outbox: Outbox) -> dict[str, Any] | Queued:
        """Write now, or through the outbox: behind what waits there, or if there is no answer."""
        from asyncio import to_thread

        if self._closed:
            raise closed()
        if await to_thread(outbox.is_empty):
            try:
                return await self._run(call, speaker)
            except TransportError as error:
                if not must_wait(error):
                    raise
        return await to_thread(outbox.put, call, speaker)

    async def _follow(self, plan: Plan) -> dict[str, Any]:
        request = self._request
        outcome: Outcome = None
        try:
            step = next(plan)
            while True:
                if isinstance(step, Attempt):
                    try:
                        outcome = await request(*step)
                    except RecollectError as error:
                        outcome = error
                elif isinstance(step, Pause):
                    from asyncio import sleep

                    await sleep(step.seconds)
                    outcome = None
                else:
                    assert self._lines is not None, "only the plans of a fleet have such steps"
                    outcome = await self._lines.take(step)
                step = plan.send(outcome)
        except StopIteration as end:
            answer: dict[str, Any] = end.value
            return answer
        except BaseException:
            plan.close()
            raise

    def _report_errors(self) -> None:
        """Tell the orchestrator, beside the calls, what went wrong while it was away."""
        from asyncio import create_task

        if not self._closed:
            task = create_task(self._send_report())
            self._reports.add(task)
            task.add_done_callback(self._reports.discard)

    async def _send_report(self) -> None:
        report = self._errors.take(source_name(self.agent_id))
        if report is None:
            return
        arrived = False
        try:
            await self._follow(self._plan(once(self._prepare(report))))
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
    ) -> AsyncSubscription:
        """The changes as they come, in order, each once; over restarts too, until it is closed.

        async with memory.subscribe(namespace="user:alice") as changes:
            async for change in changes:
                print(change["seq"], change["operation"], change["subject"])

        from_seq: the last change that is known, such as the `seq` of an earlier subscription; from
            the `async with` on if absent. The rest narrows what is told.
        """
        from recollect.client.async_subscribing import AsyncSubscription

        wanted = ReadChanges(
            from_seq,
            namespace=namespace,
            operations=None if operations is None else list(operations),
            subject=subject,
            agent=agent,
            session_id=session_id,
            task_id=task_id,
        )
        request = self._request if self._lines is None else self._lines.staying()
        subscription = AsyncSubscription(self._follower(wanted), request)
        self._subscriptions.add(subscription)
        return subscription

    async def outbox_status(self) -> OutboxStatus:
        """How many writes wait in the outbox, and how many the orchestrator refused."""
        from asyncio import to_thread

        if self._outbox is None:
            raise no_outbox()
        return await to_thread(self._outbox.status)

    async def flush_outbox(self, timeout: float = 10.0) -> OutboxStatus:
        """Wait until the outbox is delivered; raises RequestTimeout if it is not in time."""
        from asyncio import to_thread

        if self._outbox is None:
            raise no_outbox()
        return await to_thread(self._outbox.flush, timeout)

    async def close(self) -> None:
        """Close the connection; calls under way end with ClientClosed. Once is enough."""
        self._closed = True
        for task in list(self._reports):
            task.cancel()
        for subscription in list(self._subscriptions):
            subscription.end()
        if self._probing is not None:
            self._probing.close()
        self._transport.close()
        if self._outbox is not None:
            from asyncio import to_thread

            await to_thread(self._outbox.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
