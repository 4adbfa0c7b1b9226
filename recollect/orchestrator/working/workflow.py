"""Which phase of its workflow a task can go to from which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recollect.config.phases import read_phases
from recollect.protocol.errors import InvalidArgument, TransitionRefused


class Workflow:
    """The phases as they are configured."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._leads_to: Mapping[str, tuple[str, ...]] = read_phases(lines)

    @property
    def first(self) -> str:
        """Where a task begins."""
        return next(iter(self._leads_to))

    def after(self, phase: str) -> tuple[str, ...]:
        """Where a task can go from a phase: from one that is no longer configured, anywhere."""
        return self._leads_to.get(phase, tuple(self._leads_to))

    def check(self, phase: str) -> str:
        """A phase that there is."""
        if phase not in self._leads_to:
            raise InvalidArgument(
                f"There is no phase {phase!r}: the workflow has {', '.join(self._leads_to)}.",
                field="phase",
                possible=list(self._leads_to),
            )
        return phase

    def check_step(self, task_id: str, before: str, after: str) -> None:
        """Refuse a step that the workflow does not have."""
        possible = self.after(before)
        if after == before or after in possible:
            return
        choices = f"from there it can go to {_listed(possible)}" if possible else "it stays there"
        raise TransitionRefused(
            f"Task {task_id} is in the phase {before} and cannot go to {after}: {choices}.",
            task_id=task_id,
            phase=before,
            possible=list(possible),
        )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
