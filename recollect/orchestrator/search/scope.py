"""Which memories a query is about: the living ones, in a namespace, that fit its filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.orchestrator.calls import Call, Refusal
from recollect.orchestrator.memories.rows import PRESENT
from recollect.orchestrator.search.filters import Condition, FilterCompiler, namespace_condition
from recollect.orchestrator.search.json_paths import SqliteJsonPaths
from recollect.orchestrator.validation import Validator
from recollect.protocol.collection_names import COLLECTIONS, MEMORIES
from recollect.protocol.errors import InvalidArgument


class Scope(msgspec.Struct, frozen=True):
    """Two conditions over the columns of `memories`, which together are the whole."""

    alive: Condition
    narrow: Condition | None
    """What the query narrows by; None if it is about all that live."""
    namespace: Condition | None = None
    """The part of it that is the namespace."""
    narrow_in_memory: Condition | None = None
    """What the query narrows by, as SQLite says it: for what is searched in memory."""

    @property
    def condition(self) -> Condition:
        """Both together."""
        return both(self.alive, self.narrow)

    @property
    def condition_in_memory(self) -> Condition:
        """Both together, for what is searched in memory."""
        return both(self.alive, self.narrow_in_memory)


def both(alive: Condition, narrow: Condition | None) -> Condition:
    """What fits the first and, if there is one, the second."""
    if narrow is None:
        return alive
    (sql, params), (narrow_sql, narrow_params) = alive, narrow
    return f"{sql} AND {narrow_sql}", [*params, *narrow_params]


class Scoping:
    """Turns the arguments that narrow a query into conditions in SQL."""

    def __init__(self, filters: FilterCompiler, validator: Validator) -> None:
        self._filters = filters
        # What is searched in memory is searched by SQLite, which may be the storage as well.
        same = isinstance(filters.paths, SqliteJsonPaths)
        self._filters_in_memory = filters if same else FilterCompiler(SqliteJsonPaths())
        self._validator = validator

    def scope(
        self,
        call: Call,
        now_us: int,
        *,
        namespace: str | None = None,
        memory_type: str | None = None,
        parent_id: str | None = None,
        filters: dict[str, Any] | None = None,
        collections: Sequence[str] | None = None,
        include_deleted: bool = False,
        include_archived: bool = False,
        only: Condition | None = None,
    ) -> Scope:
        """What a query is about: of that, what the caller may see."""
        parts: list[str] = []
        params: list[Any] = []
        home = self.home(call, namespace)
        if home is not None:
            parts.append(home[0])
            params += home[1]
        for column, value in (("memory_type", memory_type), ("parent_id", parent_id)):
            if value is not None:
                parts.append(f"{column} = ?")
                params.append(value)
        if collections is not None:
            sql, names = collections_condition(collections)
            parts.append(sql)
            params += names
        if only is not None:
            parts.append(only[0])
            params += only[1]
        plain = (" AND ".join(parts), params) if parts else None
        narrow = in_memory = plain
        if filters:
            narrow = _filtered(plain, self._filters.compile(filters))
            in_memory = narrow
            if self._filters_in_memory is not self._filters:
                in_memory = _filtered(plain, self._filters_in_memory.compile(filters))
        return Scope(
            ("TRUE", []) if include_deleted else alive_at(now_us, archived=include_archived),
            narrow,
            home,
            in_memory,
        )

    def home(self, call: Call, namespace: str | None) -> Condition | None:
        """What of a namespace and those below it the caller may see; None if it is everything."""
        if namespace is not None:
            self._validator.namespace(namespace)
        patterns = call.grants.within(namespace)
        if patterns is None:
            return None if namespace is None else namespace_condition(namespace)
        if not patterns:
            call.refusals.append(Refusal("", namespace, "not readable"))
        return readable_condition(patterns)


def _filtered(plain: Condition | None, filters: Condition) -> Condition:
    sql, params = filters
    if plain is None:
        return f"({sql})", params
    return f"{plain[0]} AND ({sql})", [*plain[1], *params]


def readable_condition(patterns: tuple[str, ...] | None, column: str = "namespace") -> Condition:
    """In one of some namespaces or below it; None is anywhere."""
    if patterns is None:
        return "TRUE", []
    parts = [namespace_condition(pattern, column) for pattern in patterns]
    if not parts:
        return "FALSE", []
    return (
        "(" + " OR ".join(sql for sql, _ in parts) + ")",
        [param for _, params in parts for param in params],
    )


def collections_condition(collections: Sequence[str]) -> Condition:
    """In one of some collections, of which there must be any and all be known."""
    names = list(dict.fromkeys(collections))
    unknown = [name for name in names if name not in COLLECTIONS]
    if unknown or not names:
        what = f"There is no collection {unknown[0]!r}" if unknown else "collections is empty"
        raise InvalidArgument(
            f"{what}: name some of {', '.join(COLLECTIONS)}; or leave it out to search them all.",
            field="collections",
        )
    sql = f"collection IN ({', '.join('?' for _ in names)})"
    # Plain memories are not in the index by collection, and said so it is known to have the rest.
    return (sql if MEMORIES in names else f"{OUTSIDE} AND {sql}"), names


OUTSIDE = f"collection <> '{MEMORIES}'"
"""In a collection of its own: the condition of the index by collection."""


def alive_at(moment_us: int, *, archived: bool = False) -> Condition:
    """Neither deleted nor expired nor, unless it is asked for, archived."""
    present = "deleted_us IS NULL" if archived else PRESENT
    return f"{present} AND (expires_us IS NULL OR expires_us > ?)", [moment_us]
