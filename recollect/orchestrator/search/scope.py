"""Which memories a query is about: the living ones, in a namespace, that fit its filters."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.orchestrator.search.filters import Condition, FilterCompiler, namespace_condition
from recollect.orchestrator.validation import Validator


class Scope(msgspec.Struct, frozen=True):
    """Two conditions over the columns of `memories`, which together are the whole."""

    alive: Condition
    narrow: Condition | None
    """What the query narrows by; None if it is about all that live."""
    namespace: Condition | None = None
    """The part of it that is the namespace."""

    @property
    def condition(self) -> Condition:
        """Both together."""
        if self.narrow is None:
            return self.alive
        (sql, params), (narrow_sql, narrow_params) = self.alive, self.narrow
        return f"{sql} AND {narrow_sql}", [*params, *narrow_params]


class Scoping:
    """Turns the arguments that narrow a query into conditions in SQL."""

    def __init__(self, filters: FilterCompiler, validator: Validator) -> None:
        self._filters = filters
        self._validator = validator

    def scope(
        self,
        now_us: int,
        *,
        namespace: str | None = None,
        memory_type: str | None = None,
        parent_id: str | None = None,
        filters: dict[str, Any] | None = None,
        include_deleted: bool = False,
    ) -> Scope:
        """What a query is about."""
        parts: list[str] = []
        params: list[Any] = []
        home = None
        if namespace is not None:
            home = namespace_condition(self._validator.namespace(namespace))
            parts.append(home[0])
            params += home[1]
        for column, value in (("memory_type", memory_type), ("parent_id", parent_id)):
            if value is not None:
                parts.append(f"{column} = ?")
                params.append(value)
        if filters:
            sql, values = self._filters.compile(filters)
            parts.append(f"({sql})")
            params += values
        return Scope(
            ("TRUE", []) if include_deleted else alive_at(now_us),
            (" AND ".join(parts), params) if parts else None,
            home,
        )


def alive_at(moment_us: int) -> Condition:
    """Neither deleted nor expired."""
    return "deleted_us IS NULL AND (expires_us IS NULL OR expires_us > ?)", [moment_us]
