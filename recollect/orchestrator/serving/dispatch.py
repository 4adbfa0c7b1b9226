"""From a frame to an answer: decode, check, hand to the service, encode.

Every frame gets exactly one answer, whatever it holds. Cheap reads are answered on the spot; the
rest are counted while in flight, and beyond the bound a request is refused at once rather than
queued.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import msgspec
import structlog

from recollect.config.settings import Settings
from recollect.orchestrator.access.identities import LOCAL, Identity
from recollect.orchestrator.access.rates import Rates
from recollect.orchestrator.access.refusals import RefusalLog
from recollect.orchestrator.calls import Call, Kind
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.feed.waiting import WaitingRoom
from recollect.orchestrator.jobs.fencing import check_fence
from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.serving.admission import Admission
from recollect.orchestrator.serving.error_answers import Answer, ErrorAnswers, defect_of
from recollect.orchestrator.serving.idempotency import Once
from recollect.orchestrator.serving.latencies import (
    BOUNDS_S,
    FAILED,
    SUM,
    answered,
    figures,
    meters_of,
)
from recollect.orchestrator.serving.requests import (
    read_operation,
    read_request,
    salvaged_id,
)
from recollect.orchestrator.serving.routes import Route, Routes
from recollect.orchestrator.serving.visibility import visible
from recollect.orchestrator.storage.interface import Storage, WriteFunction
from recollect.orchestrator.troubles.error_bus import ErrorBus
from recollect.orchestrator.trust.echoes import Echoes
from recollect.orchestrator.trust.secret_policy import policy_of
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.envelope import (
    PROTOCOL_VERSION,
    Reply,
    Request,
)
from recollect.protocol.errors import (
    LimitExceeded,
    RecollectError,
    ShuttingDown,
    Unauthenticated,
)
from recollect.protocol.operation import Operation

log = structlog.get_logger()

_encode = msgspec.msgpack.Encoder().encode


class Dispatcher:
    """Takes frames, gives answers. Lives on the event loop."""

    def __init__(
        self,
        handlers: dict[str, tuple[Kind, Callable[..., Any]]],
        storage: Storage,
        clock: Clock,
        errors: ErrorBus,
        settings: Settings,
        refusals: RefusalLog,
        rates: Rates,
        validator: Validator,
        check_still_allowed: Callable[[Call], None],
        bearer_identity: Callable[[Request], Identity],
        room: WaitingRoom,
        echoes: Echoes | None = None,
    ) -> None:
        """`check_still_allowed` refuses a call whose caller may no longer do what it might when it
        was begun; any thread may ask it. `bearer_identity` says whose bearer key a request carries,
        or refuses it."""
        self._routes = Routes(handlers)
        self._storage = storage
        self._clock = clock
        self._network = settings.network
        self._refusals = refusals
        self._check_still_allowed = check_still_allowed
        self._bearer_identity = bearer_identity
        self._room = room
        self._echoes = echoes
        # Whether other orchestrators are to know what an agent is told, before it is told.
        self._shares = echoes is not None and echoes.shared
        self._payload_bytes_max = settings.limits.payload_bytes_max
        self._secrets = policy_of(settings.trust.secrets)
        self._admission = Admission(
            self._routes, settings.network, room, rates, validator, self._secrets
        )
        self._tasks: set[asyncio.Future[Any]] = set()
        self._meters = meters_of(handlers)
        self._error_answers = ErrorAnswers(clock, self._meters, errors, refusals, self._secrets)
        self._answer_error = self._error_answers.answer

    @property
    def in_flight(self) -> int:
        """Requests in work; those that only wait for a change are no work."""
        return self._admission.in_flight

    @property
    def draining(self) -> bool:
        """Whether only what was accepted is still answered."""
        return self._admission.draining

    def dispatch(self, frame: bytes, answer: Answer, identity: Identity = LOCAL) -> None:
        """Answer one frame that an identity sent, or carries for somebody; now or later."""
        now_us = self._clock.now_us()
        try:
            request = read_request(frame, self._payload_bytes_max)
        except RecollectError as error:
            self._answer_error(salvaged_id(frame), "unreadable", error, answer, now_us)
            return
        call = None
        try:
            if request.bearer is not None:
                identity = self._bearer_identity(request)
            call, route = self._admission.admit(request, now_us, identity)
            operation = read_operation(route.decode, request)
            self._admission.check_access(call, route, operation)
            if self._secrets is not None:
                for name in route.names:
                    self._secrets.name(name, getattr(operation, name) or "")
            if route.has_min_seq and (operation.min_seq or 0) > self._storage.committed_seq:  # type: ignore[attr-defined]
                self._later(request, call, self._when_visible(call, route, operation), answer)
            elif call.fence is not None and call.access in ("write", "admin"):
                self._later(request, call, self._fenced(call, route, operation), answer)
            else:
                self._run(request, call, route, operation, answer)
        except RecollectError as error:
            self._answer_error(request.id, request.op, error, answer, now_us, call)
        except Exception as error:
            defect = defect_of(request.op, error)
            self._answer_error(request.id, request.op, defect, answer, now_us, call)

    def refuse(
        self, request_id: int | str | None, name: str, error: RecollectError, answer: Answer
    ) -> None:
        """Answer with an error what is not let in."""
        self._answer_error(request_id, name, error, answer, self._clock.now_us())

    def describe(self) -> dict[str, Any]:
        """Counts for `stats`."""
        served = {name: answered(meter) - meter[FAILED] for name, meter in self._meters.items()}
        return {
            "in_flight": self.in_flight,
            "in_flight_max": self._network.in_flight_max,
            "waiting": self._room.count,
            "waiting_max": self._room.waiting_max,
            "served": {name: number for name, number in served.items() if number},
            "failed": dict(self._error_answers.counts),
        }

    def figures(self) -> records.RequestFigures:
        """Counts and durations for `metrics`, of the operations that were asked for."""
        return {
            "in_flight": self.in_flight,
            "in_flight_max": self._network.in_flight_max,
            "waiting": self._storage.write_queue_length(),
            "by_operation": {
                name: figures(meter) for name, meter in self._meters.items() if any(meter)
            },
            "bucket_bounds_s": BOUNDS_S,
            "failed_by_code": dict(self._error_answers.counts),
        }

    async def under_way(self, within_s: float) -> None:
        """Wait until what is being worked on now is answered, and no longer than that."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=within_s)

    async def drained(self) -> None:
        """Refuse what comes from now on and wait until everything accepted is answered."""
        self._admission.draining = True
        self._room.close()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _run(
        self,
        request: Request,
        call: Call,
        route: Route,
        operation: Operation[Any],
        answer: Answer,
    ) -> None:
        result = route.handler(call, operation)
        if isinstance(result, bytes):
            # A write that the storage has no part in.
            self._answer(request, call, result, answer)
        elif route.kind == "read":
            if isinstance(result, dict):
                self._answer(request, call, _encode(result), answer)
                self._served(call, result)
            else:
                self._later(request, call, result, answer)
        elif callable(result):
            self._later(request, call, self._write_finished(call, operation, result), answer)
        else:
            self._later(request, call, self._write_prepared(call, operation, result), answer)

    async def _fenced(self, call: Call, route: Route, operation: Operation[Any]) -> Any:
        """The answer to what is done under a lease, which is looked at before anything is begun.

        It is looked at again in every write. But not every effect is one of the storage: a backup
        is none, and takes long.
        """
        await self._storage.read(partial(check_fence, call))
        result = route.handler(call, operation)
        if isinstance(result, bytes | dict):
            return result
        if route.kind == "read":
            return await result
        function = result if callable(result) else await result
        return await self._write_finished(call, operation, function)

    def _write(
        self, call: Call, operation: Operation[Any], function: WriteFunction[Any]
    ) -> asyncio.Future[bytes]:
        once = Once(call, operation, function, self._clock, self._check_still_allowed)
        # Told when it is known whether the function has had its effect, whatever became of it.
        settled: Callable[[], None] | None = getattr(function, "settled", None)
        if settled is None:
            return self._storage.write(once)
        try:
            writing = self._storage.write(once)
        except RecollectError:
            settled()
            raise
        writing.add_done_callback(lambda _: settled())
        return writing

    async def _write_prepared(
        self, call: Call, operation: Operation[Any], preparing: Coroutine[Any, Any, Any]
    ) -> bytes:
        return await self._write_finished(call, operation, await preparing)

    def _write_finished(
        self, call: Call, operation: Operation[Any], function: WriteFunction[Any]
    ) -> Awaitable[bytes]:
        writing = self._write(call, operation, function)
        finish = getattr(function, "finish", None)
        return _finished(writing, finish) if finish else writing

    async def _when_visible(self, call: Call, route: Route, operation: Operation[Any]) -> Any:
        min_seq: int = operation.min_seq  # type: ignore[attr-defined]
        # However far the deadline, a change that is not there by then will not come.
        until_us = min(call.deadline_us, call.now_us + 1000 * self._network.deadline_ms_default)
        await visible(
            self._storage, min_seq, lambda: self._clock.now_us() >= until_us or self.draining
        )
        result = route.handler(call, operation)
        return result if isinstance(result, dict) else await result

    def _later(self, request: Request, call: Call, work: Any, answer: Answer) -> None:
        """Answer when the work is done; it counts as in flight until then."""
        if self._shares and call.agent is not None and self._routes[request.op].kind == "read":
            work = self._shared(call, work)
        future = work if isinstance(work, asyncio.Future) else asyncio.ensure_future(work)
        self._admission.under_way += 1
        self._tasks.add(future)

        def done(finished: asyncio.Future[Any]) -> None:
            self._admission.under_way -= 1
            self._tasks.discard(finished)
            if finished.cancelled():
                error: BaseException | None = ShuttingDown("The orchestrator was stopped.")
            else:
                error = finished.exception()
            if error is None and not isinstance(finished.result(), bytes):
                error = self._outdated(call)
            if error is None:
                result = finished.result()
                if isinstance(result, bytes):
                    self._answer(request, call, result, answer)
                else:
                    self._answer(request, call, _encode(result), answer)
                    self._served(call, result)
            else:
                if not isinstance(error, RecollectError):
                    error = defect_of(request.op, error)
                self._answer_error(request.id, request.op, error, answer, call.now_us, call)

        future.add_done_callback(done)

    async def _shared(self, call: Call, work: Awaitable[Any]) -> Any:
        """The answer to a read, when others know of it."""
        result = await work
        if self._echoes is not None and isinstance(result, dict):
            try:
                await self._echoes.share(call, result)
            except Exception:  # it can be answered, and that is what counts
                log.exception("What is served was not shared.", action="echoes")
        return result

    def _outdated(self, call: Call) -> RecollectError | None:
        """Why what was read meanwhile is not told, if so; a write has seen to that itself."""
        try:
            self._check_still_allowed(call)
        except Unauthenticated as error:
            return error
        except RecollectError as error:
            # What has had an effect is not sent again.
            return error if call.access == "read" else None
        return None

    def _served(self, call: Call, result: dict[str, Any]) -> None:
        """Keep in view what an agent was told; the next request comes after this."""
        if self._echoes is not None:
            try:
                self._echoes.served(call, result)
            except Exception:  # it was answered, and that is what counts
                log.exception("What was served was not noted.", action="echoes")

    def _answer(self, request: Request, call: Call, body: bytes, answer: Answer) -> None:
        if len(body) > self._payload_bytes_max and self._routes[request.op].kind == "read":
            error = LimitExceeded(
                f"The answer has {len(body):,} bytes; the limit limits.payload_bytes_max is "
                f"{self._payload_bytes_max:,}. Ask for fewer at once.",
                limit="limits.payload_bytes_max",
                maximum=self._payload_bytes_max,
                actual=len(body),
            )
            self._answer_error(request.id, request.op, error, answer, call.now_us, call)
            return
        if call.refusals:
            self._refusals.note(call)
        now_us = self._clock.now_us()
        # As `latencies.count` does it, without the call.
        meter = self._meters[request.op]
        took_us = now_us - call.now_us
        if took_us > 0:
            meter[SUM] += took_us
            meter[took_us.bit_length()] += 1
        else:
            meter[0] += 1
        failpoint("before_reply")
        answer(_encode(Reply(PROTOCOL_VERSION, request.id, now_us // 1000, body)))


async def _finished(writing: asyncio.Future[bytes], finish: Callable[..., Any]) -> bytes:
    """The answer of a write that has more to tell when it is done."""
    return _encode(await finish(msgspec.msgpack.decode(await writing)))
