"""What is told instead of a result: counted, noted in the audit, without a secret in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import structlog

from recollect.orchestrator.access.refusals import RefusalLog
from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.serving.latencies import FAILED, Meter, count
from recollect.orchestrator.troubles.error_bus import ErrorBus
from recollect.orchestrator.trust.secret_policy import SecretPolicy
from recollect.protocol.envelope import PROTOCOL_VERSION, Reply
from recollect.protocol.errors import InternalError, RecollectError

log = structlog.get_logger()

Answer = Callable[[bytes], None]
_encode = msgspec.msgpack.Encoder().encode


class ErrorAnswers:
    """Answers with errors. Lives on the event loop."""

    def __init__(
        self,
        clock: Clock,
        meters: dict[str, Meter],
        errors: ErrorBus,
        refusals: RefusalLog,
        secrets: SecretPolicy | None,
    ) -> None:
        self._clock = clock
        self._meters = meters
        self._errors = errors
        self._refusals = refusals
        self._secrets = secrets
        self.counts: Counter[str] = Counter()
        """How many there were, by their code."""

    def answer(
        self,
        request_id: int | str | None,
        name: str,
        error: RecollectError,
        answer: Answer,
        began_us: int,
        call: Call | None = None,
    ) -> None:
        """Tell why not, and keep count of it; `call` is there once the request was understood."""
        if call is not None and call.refusals:
            self._refusals.note(call)
        now_us = self._clock.now_us()
        self.counts[error.code] += 1
        if (meter := self._meters.get(name)) is not None:
            meter[FAILED] += 1
            count(meter, now_us - began_us)
        if self._secrets is not None:
            error = self._secrets.blotted(error)
        if isinstance(error, InternalError) or error.code.startswith("storage"):
            self._errors.report(
                "orchestrator", error.code, error.message, now_us, context={"operation": name}
            )
        try:
            body = _encode(error.reply())
        except (TypeError, ValueError, OverflowError) as unsendable:
            # It quotes something that no text can hold; whoever waits is answered all the same.
            body = _encode(defect_of(name, unsendable).reply())
        answer(_encode(Reply(PROTOCOL_VERSION, request_id, now_us // 1000, body)))


def defect_of(name: str, error: BaseException) -> InternalError:
    """What is told of an error that nobody foresaw; the log has all of it."""
    log.error("An operation failed by a defect.", action="dispatch", operation=name, exc_info=error)
    return InternalError(
        f"{name} failed by a defect of the orchestrator ({type(error).__name__}); the log has more."
    )
