"""LangGraph's long-term store on Recollect.

    store = RecollectStore()          # instead of InMemoryStore()
    graph = builder.compile(store=store)

How an item becomes a memory is in `langgraph_items`, how filters are checked in
`langgraph_filters`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeAlias

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchOp,
        TTLConfig,
    )
except ImportError as missing:  # pragma: no cover - depends on what is installed
    raise ImportError(
        "recollect.integrations.langgraph needs LangGraph: pip install 'recollect[langgraph]'"
    ) from missing

from recollect.integrations import langgraph_filters as filters
from recollect.integrations.clients import Clients
from recollect.integrations.langgraph_items import SEARCHED, UNSEARCHED, Items, is_item
from recollect.integrations.steps import Steps, afollow, follow
from recollect.protocol.errors import (
    InvalidArgument,
    LimitExceeded,
    NotFound,
    VersionConflict,
)
from recollect.protocol.operations import (
    DeleteByKey,
    GetByKey,
    ListMemories,
    ListNamespaces,
    SemanticSearch,
)
from recollect.protocol.records import MemoryRecord

ROOT = "app:langgraph"
Found: TypeAlias = dict[str, tuple[MemoryRecord, float | None]]
"""Memories by their ids with their scores, in the order in which they were found."""

PAGE_ITEMS = 100
NAMESPACES_PAGE_ITEMS = 1000
PAGES_MAX = 1000
CONCURRENT_MAX = 16


class RecollectStore(BaseStore):
    """A LangGraph store that is shared, durable, and searched by meaning.

    One store serves threads and any number of event loops.
    """

    supports_ttl = True

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        root: str = ROOT,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        clock: Callable[[], float] = time.time,
        **options: Any,
    ) -> None:
        """Make a store; it connects when it is first used.

        endpoint, options: as for MemoryClient: agent_id, key_file, bearer, timeout, …
        root: the namespace that all namespaces of the store are below.
        index: `fields` says which fields of an item are searched; all of it if absent. Vectors are
            made by Recollect itself, so `embed` and `dims` are refused.
        ttl: `default_ttl` in minutes and `refresh_on_read`.
        clock: seconds since 1970, by which items expire.
        """
        refused = sorted({"embed", "dims"} & set(index or {}))
        if refused:
            raise InvalidArgument(
                f"index has {' and '.join(refused)}; Recollect makes the vectors itself: leave it "
                "out, and set embedding.model of the orchestrator instead.",
                field="index",
            )
        self._items = Items(root, (index or {}).get("fields"), clock)
        self.ttl_config = ttl
        self._clients = Clients(endpoint, options)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out the reads, then the puts; of several puts of one key, the last."""
        reads, puts, count = _sorted_out(ops)
        client = self._clients.blocking()
        results: list[Result] = [None] * count
        for place, op in reads.items():
            results[place] = follow(client, self._reading(op))
        for put in puts:
            follow(client, self._putting(put))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same for asyncio; reads go out together, and so do puts."""
        reads, puts, count = _sorted_out(ops)
        client = await self._clients.awaiting()
        room = asyncio.Semaphore(CONCURRENT_MAX)

        async def carry_out(steps: Steps[Result]) -> Result:
            async with room:
                return await afollow(client, steps)

        found = await asyncio.gather(*(carry_out(self._reading(op)) for op in reads.values()))
        await asyncio.gather(*(carry_out(self._putting(put)) for put in puts))
        results: list[Result] = [None] * count
        for place, result in zip(reads, found, strict=True):
            results[place] = result
        return results

    def close(self) -> None:
        """Close the connections of threads."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the connections of threads and of the running loop."""
        await self._clients.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _reading(self, op: Op) -> Steps[Result]:
        match op:
            case GetOp():
                return self._getting(op)
            case SearchOp():
                return self._searching(op)
            case ListNamespacesOp():
                return self._listing_namespaces(op)
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _getting(self, op: GetOp) -> Steps[Result]:
        try:
            memory = (yield GetByKey(*self._items.place(op.namespace, op.key)))["memory"]
        except NotFound:
            return None
        if not is_item(memory):
            return None
        if op.refresh_ttl:
            yield from self._refreshing([memory])
        return self._items.item(memory)

    def _putting(self, op: PutOp) -> Steps[Result]:
        if op.value is not None:
            yield self._items.put(op, dict(op.value))
        else:
            with suppress(NotFound):
                yield DeleteByKey(*self._items.place(op.namespace, op.key))
        return None

    def _searching(self, op: SearchOp) -> Steps[Result]:
        filters.check(op.filter)
        last = op.offset + op.limit
        if op.limit <= 0:
            return []
        found: Found = {}
        if op.query and op.query.strip():
            yield from self._nearest(op, op.query, found, last)
        if len(found) < last:
            # Those without a vector come behind, as they do in LangGraph's own stores.
            yield from self._newest(op, found, last)
        shown = list(found.values())[op.offset : last]
        if op.refresh_ttl:
            yield from self._refreshing([memory for memory, _ in shown])
        return [self._items.search_item(memory, score) for memory, score in shown]

    def _nearest(
        self,
        op: SearchOp,
        query: str,
        found: Found,
        count: int,
    ) -> Steps[None]:
        narrow = filters.narrowed(op.filter)
        cursor = None
        for _ in range(PAGES_MAX):
            page = yield SemanticSearch(
                query,
                min(PAGE_ITEMS, count),
                {"memory_type": SEARCHED, **narrow},
                namespace=self._items.namespace(op.namespace_prefix),
                cursor=cursor,
            )
            for memory in page["results"]:
                if filters.keeps(op.filter, memory["value"]):
                    found.setdefault(memory["id"], (memory, memory["score"]))
            cursor = page["cursor"]
            if cursor is None or len(found) >= count:
                return
        raise _too_many("items")

    def _newest(self, op: SearchOp, found: Found, count: int) -> Steps[None]:
        narrow = filters.narrowed(op.filter)
        cursor = None
        for _ in range(PAGES_MAX):
            page = yield ListMemories(
                namespace=self._items.namespace(op.namespace_prefix),
                filters={"memory_type": {"in": [SEARCHED, UNSEARCHED]}, **narrow},
                limit=min(PAGE_ITEMS, count),
                cursor=cursor,
            )
            for memory in page["memories"]:
                if filters.keeps(op.filter, memory["value"]):
                    found.setdefault(memory["id"], (memory, None))
            cursor = page["cursor"]
            if cursor is None or len(found) >= count:
                return
        raise _too_many("items")

    def _listing_namespaces(self, op: ListNamespacesOp) -> Steps[Result]:
        conditions = op.match_conditions or ()
        prefix = self._items.namespace(_known_prefix(conditions))
        found: set[tuple[str, ...]] = set()
        cursor = None
        for _ in range(PAGES_MAX):
            page = yield ListNamespaces(prefix, limit=NAMESPACES_PAGE_ITEMS, cursor=cursor)
            for entry in page["namespaces"]:
                names = self._items.labels(entry["namespace"])
                if all(_matches(condition, names) for condition in conditions):
                    found.add(names if op.max_depth is None else names[: op.max_depth])
            cursor = page["cursor"]
            if cursor is None:
                return sorted(found)[op.offset : op.offset + op.limit]
        raise _too_many("namespaces")

    def _refreshing(self, memories: list[MemoryRecord]) -> Steps[None]:
        """Let items that end live on from now."""
        for memory in memories:
            change = self._items.refreshed(memory)
            if change is not None:
                with suppress(NotFound, VersionConflict):
                    yield change


def _sorted_out(ops: Iterable[Op]) -> tuple[dict[int, Op], list[PutOp], int]:
    """The reads by their places, the puts that count, and how many operations there are."""
    reads: dict[int, Op] = {}
    puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
    count = 0
    for op in ops:
        if isinstance(op, PutOp):
            puts[(op.namespace, op.key)] = op
        else:
            reads[count] = op
        count += 1
    return reads, list(puts.values()), count


def _known_prefix(conditions: Iterable[MatchCondition]) -> tuple[str, ...]:
    """The labels that all namespaces in question begin with."""
    return max((tuple(_until_wildcard(c)) for c in conditions), key=len, default=())


def _until_wildcard(condition: MatchCondition) -> Iterator[str]:
    if condition.match_type == "prefix":
        for label in condition.path:
            if label == "*":
                return
            yield label


def _matches(condition: MatchCondition, names: tuple[str, ...]) -> bool:
    path = condition.path
    if len(names) < len(path):
        return False
    if condition.match_type == "prefix":
        compared = names[: len(path)]
    elif condition.match_type == "suffix":
        compared = names[len(names) - len(path) :]
    else:
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    return all(label in ("*", name) for label, name in zip(path, compared, strict=True))


def _too_many(what: str) -> LimitExceeded:
    return LimitExceeded(
        f"There are more {what} to look through than {PAGES_MAX} pages hold; narrow the namespace "
        "or the filter.",
        limit="PAGES_MAX",
        maximum=PAGES_MAX,
    )
