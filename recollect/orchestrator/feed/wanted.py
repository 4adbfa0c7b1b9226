"""Which changes a reader wants and may see: the same as a condition in SQL and in memory."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.orchestrator.access.grants import covers
from recollect.orchestrator.search.scope import readable_condition
from recollect.orchestrator.storage.interface import Change

Condition = tuple[str, list[Any]]
COMPARED = ("subject", "agent", "session_id", "task_id")


class Wanted(msgspec.Struct, frozen=True):
    """What of the feed one reader is given. Hashable, so that equal ones are asked once."""

    homes: tuple[str, ...] | None
    """Namespaces with what is below them; None is everything, also what belongs to none."""
    operations: frozenset[str] | None = None
    subject: str | None = None
    agent: str | None = None
    session_id: str | None = None
    task_id: str | None = None

    def fits(self, change: Change) -> bool:
        """Whether a change is one of them. Only what was done is ever told."""
        if change.outcome is not None:
            return False
        if self.operations is not None and change.operation not in self.operations:
            return False
        if self.subject is not None and change.subject != self.subject:
            return False
        if self.agent is not None and change.agent != self.agent:
            return False
        if self.session_id is not None and change.session_id != self.session_id:
            return False
        if self.task_id is not None and change.task_id != self.task_id:
            return False
        homes, namespace = self.homes, change.namespace
        if homes is None:
            return True
        return namespace is not None and any(covers(home, namespace) for home in homes)

    def condition(self) -> Condition:
        """The same over the columns of the journal."""
        parts, params = ["outcome IS NULL"], list[Any]()
        if self.homes is not None:
            sql, values = readable_condition(self.homes)
            parts.append(sql)
            params += values
        for name in COMPARED:
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name} = ?")
                params.append(value)
        if self.operations is not None:
            names = sorted(self.operations)
            parts.append(f"operation IN ({', '.join('?' for _ in names)})")
            params += names
        return " AND ".join(parts), params
