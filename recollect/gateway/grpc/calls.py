"""Calls with one answer: an operation each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import structlog
from grpc.aio import ServicerContext

from recollect.gateway.admission import Admission
from recollect.gateway.asking import Backend
from recollect.gateway.callers import Doorman
from recollect.gateway.grpc.answering import Writer
from recollect.gateway.grpc.descriptors import Messages
from recollect.gateway.grpc.metadata import said_in
from recollect.gateway.grpc.proto_file import Rpc
from recollect.gateway.grpc.reading import OperationReader
from recollect.gateway.grpc.statuses import status_of
from recollect.protocol.errors import InternalError, RecollectError
from recollect.protocol.operation import Operation

log = structlog.get_logger()

Context = ServicerContext[bytes, bytes]
Answer = Callable[[bytes, Context], Awaitable[bytes]]
Read = Callable[..., Operation[Any]]
Write = Callable[[Any], Any]

NOBODY = "nobody"
# Somebody whose time is up already is asked for nothing; the least time there is to ask within.
TIMEOUT_S_MIN = 0.001


class Calls:
    """Makes the handlers of the operations, for callers who all share one line."""

    def __init__(
        self,
        backend: Backend,
        doorman: Doorman,
        admission: Admission,
        messages: Messages,
        *,
        timeout_s: float,
    ) -> None:
        self._backend = backend
        self._doorman = doorman
        self._admission = admission
        self._messages = messages
        self._timeout_s = timeout_s
        self._shapes = {shape.name: shape for shape in messages.file.messages}

    def answering(self, rpc: Rpc, operation: type[Operation[Any]]) -> Answer:
        """The handler of one operation; what turns its messages is made when it is first called."""
        converters: tuple[Read, Write] | None = None
        doorman, admission, timeout_s_max = self._doorman, self._admission, self._timeout_s
        ask = self._backend.ask

        async def answer(data: bytes, context: Context) -> bytes:
            nonlocal converters
            try:
                said = said_in(context.invocation_metadata(), doorman)
                admission.enter(said.speaker.bearer or NOBODY)
                try:
                    left_s = context.time_remaining()
                    timeout_s = None
                    if left_s is not None and left_s < timeout_s_max:
                        timeout_s = max(TIMEOUT_S_MIN, left_s)
                    read, write = converters = converters or self._converters(rpc, operation)
                    asked = read(data, timeout=timeout_s, idempotency_key=said.idempotency_key)
                    result = await ask(asked, said.speaker)
                    encoded: bytes = write(result).SerializeToString()
                    return encoded
                finally:
                    admission.leave()
            except RecollectError as error:
                await refuse(context, error)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                await refuse(context, defect(rpc.name, error))

        return answer

    def _converters(self, rpc: Rpc, operation: type[Operation[Any]]) -> tuple[Read, Write]:
        reader = OperationReader(operation, self._shapes[rpc.request], self._messages)
        return reader.parse, Writer(self._shapes[rpc.response], self._messages).write


async def refuse(context: Context, error: RecollectError) -> NoReturn:
    """End a call with an error."""
    status = status_of(error)
    await context.abort(status.code, status.message, status.trailing)
    raise AssertionError("a call that was ended goes on")


def defect(name: str, error: Exception) -> InternalError:
    """What a caller is told of a defect of ours; the log has the rest."""
    log.error("A call failed by a defect.", action="defect", rpc=name, exc_info=error)
    return InternalError(f"{name} failed in the gateway; its log has the details.")
