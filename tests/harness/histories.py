"""State machines whose steps do not depend on what goes wrong.

Beside many of them threads are at work, so that a step may fail in one run and pass when the same
steps are taken again. If a failure ended the history, the second run would draw more steps than the
first, and Hypothesis would complain of that instead of what was wrong. Here a failure is kept, the
rest of the history is drawn and not done, and the end tells what failed first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from hypothesis.stateful import RuleBasedStateMachine

F = TypeVar("F", bound=Callable[..., Any])


class History(RuleBasedStateMachine):
    """Its rules and invariants are all `noted`; the preconditions are of what was drawn alone."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: Exception | None = None

    def teardown(self) -> None:
        """Tell what went wrong; to be called last by those who have more to do."""
        if self.failure is not None:
            raise self.failure


def noted(step: F) -> F:
    """Keep the failure of a step, and take no step after one that failed."""

    @functools.wraps(step)
    def take(history: History, *args: Any, **kwargs: Any) -> Any:
        if history.failure is not None:
            return None
        try:
            return step(history, *args, **kwargs)
        except Exception as failure:
            history.failure = failure
            return None

    return cast(F, take)
