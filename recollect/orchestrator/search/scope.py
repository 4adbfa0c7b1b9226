"""Which memories a query is about: the living ones, in a namespace, that fit its filters."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.search.filters import Condition, FilterCompiler, namespace_condition
from recollect.orchestrator.validation import Validator


class Scoping:
    """Turns the arguments that narrow a query into one condition in SQL."""

    def __init__(self, filters: FilterCompiler, validator: Validator) -> None:
        self._filters = filters
        self._validator = validator

    def condition(
        self,
        now_us: int,
        *,
        namespace: str | None = None,
        memory_type: str | None = None,
        parent_id: str | None = None,
        filters: dict[str, Any] | None = None,
        include_deleted: bool = False,
    ) -> Condition:
        """A condition over the columns of `memories`, with its parameters."""
        parts: list[str] = []
        params: list[Any] = []
        if not include_deleted:
            parts.append("deleted_us IS NULL AND (expires_us IS NULL OR expires_us > ?)")
            params.append(now_us)
        if namespace is not None:
            sql, values = namespace_condition(self._validator.namespace(namespace))
            parts.append(sql)
            params += values
        for column, value in (("memory_type", memory_type), ("parent_id", parent_id)):
            if value is not None:
                parts.append(f"{column} = ?")
                params.append(value)
        if filters:
            sql, values = self._filters.compile(filters)
            parts.append(f"({sql})")
            params += values
        return " AND ".join(parts) or "TRUE", params
