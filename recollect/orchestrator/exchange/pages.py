"""One page of an export in the making, and what belongs into it."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.access.grants import covers
from recollect.orchestrator.search.filters import Condition, namespace_condition
from recollect.protocol.own_namespaces import HEALTH_NAMESPACE


class Page:
    """Records, up to a number of them and about so many bytes."""

    def __init__(self, records_max: int, bytes_max: int) -> None:
        self.records: list[dict[str, Any]] = []
        self._records_max = records_max
        self._bytes_left = bytes_max

    @property
    def full(self) -> bool:
        return len(self.records) >= self._records_max or self._bytes_left <= 0

    def add(self, kind: str, record: dict[str, Any], size: int) -> None:
        """Add a record; its size need not be exact."""
        self.records.append({"kind": kind, **record})
        self._bytes_left -= size

    def rows(self, most: int) -> int:
        """How many rows to read at once: what is read and does not fit is read again."""
        return max(1, min(most, self._records_max - len(self.records)))


class Extent:
    """Which namespaces are exported: one and those below it, or all.

    Of all, what the health manager tries out is nobody's memory.
    """

    def __init__(self, namespace: str | None) -> None:
        self.namespace = namespace

    def condition(self, column: str = "namespace") -> Condition:
        """In SQL."""
        if self.namespace is not None:
            return namespace_condition(self.namespace, column)
        sql, params = namespace_condition(HEALTH_NAMESPACE, column)
        return f"NOT {sql}", params

    def holds(self, namespace: str) -> bool:
        """Whether something there is exported."""
        if self.namespace is not None:
            return covers(self.namespace, namespace)
        return not covers(HEALTH_NAMESPACE, namespace)
