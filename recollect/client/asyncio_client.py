"""The asyncio client."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from recollect.client.calling import Attempt, Outcome, Plan
from recollect.client.encoding import Call
from recollect.client.methods import Awaiting
from recollect.client.reporting import once, source_name
from recollect.client.sans_io import SansIoClient, may_wait, must_wait, no_outbox
from recollect.client.sockets import closed
from recollect.protocol.errors import RecollectError, TransportError
from recollect.protocol.operation import Operation

if TYPE_CHECKING:
    import asyncio

    from recollect.client.delivery import Outbox
    from recollect.client.outbox import OutboxStatus, Queued

R = TypeVar("R")


class AsyncMemoryClient(SansIoClient, Awaiting):
    """A client of the memory orchestrator for asyncio; it belongs to the loop that uses it first.

    async with AsyncMemoryClient(agent_id="planner") as memory:
        await memory.add_memory("The build is green since Tuesday.")
        await memory.search_memory("build")
    """

    def _open(self) -> None:
        # asyncio takes long to import, and a blocking client does without it.
        from recollect.client.async_transport import AsyncTransport

        self._closed = False
        self._reports: set[asyncio.Task[None]] = set()
        self._transport = AsyncTransport(
            self.endpoint,
            keys=self._keys,
            connect_s=self._timeouts.connect_s,
            in_flight_max=self._pool.in_flight_max,
            clock=self._clock,
        )

    async def call(self, operation: Operation[R], /) -> R:
        """Carry out any operation; every other method goes through here."""
        # An answer has the shape that the operation promises; that is not checked again here.
        answer: Any
        try:
            call = self._prepare(operation)
            if self._outbox is None or not may_wait(operation, call):
                answer = await self._run(call)
            else:
                answer = await self._write(call, self._outbox)
        except RecollectError as error:
            if self.raise_errors:
                raise
            answer = error.reply()
        return answer  # type: ignore[no-any-return]

    async def _run(self, call: Call) -> dict[str, Any]:
        answer = await self._follow(self._plan(call))
        if self._errors.waiting:
            self._report_errors()
        return answer

    async def _write(self, call: Call, outbox: Outbox) -> dict[str, Any] | Queued:
        """Write now, or through the outbox: behind what waits there, or if there is no answer."""
        from asyncio import to_thread

        if self._closed:
            raise closed()
        if await to_thread(outbox.is_empty):
            try:
                return await self._run(call)
            except TransportError as error:
                if not must_wait(error):
                    raise
        return await to_thread(outbox.put, call, self._speaker)

    async def _follow(self, plan: Plan) -> dict[str, Any]:
        request = self._transport.request
        outcome: Outcome = None
        try:
            step = next(plan)
            while True:
                if isinstance(step, Attempt):
                    try:
                        outcome = await request(*step)
                    except RecollectError as error:
                        outcome = error
                else:
                    from asyncio import sleep

                    await sleep(step.seconds)
                    outcome = None
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
