"""Listeners of the circuit breaker, called so that one that fails changes nothing else.

They are a caller's code, run in the middle of a call: what they raise would take the place of the
answer, or leave the circuit between two states.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pybreaker

log = logging.getLogger("recollect.client")


class Heeded(pybreaker.CircuitBreakerListener):
    """A listener whose exceptions are logged and go no further."""

    def __init__(self, listener: pybreaker.CircuitBreakerListener) -> None:
        self._listener = listener

    def before_call(
        self, cb: pybreaker.CircuitBreaker, func: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> None:
        self._tell("before_call", cb, func, *args, **kwargs)

    def failure(self, cb: pybreaker.CircuitBreaker, exc: BaseException) -> None:
        self._tell("failure", cb, exc)

    def success(self, cb: pybreaker.CircuitBreaker) -> None:
        self._tell("success", cb)

    def state_change(
        self,
        cb: pybreaker.CircuitBreaker,
        old_state: pybreaker.CircuitBreakerState | None,
        new_state: pybreaker.CircuitBreakerState,
    ) -> None:
        self._tell("state_change", cb, old_state, new_state)

    def _tell(self, what: str, *args: Any, **kwargs: Any) -> None:
        try:
            getattr(self._listener, what)(*args, **kwargs)
        except Exception:
            log.exception("A listener of the circuit breaker failed in %s.", what)
