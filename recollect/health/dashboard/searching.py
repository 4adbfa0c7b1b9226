"""A question as it stands in the address of a page, so that it can be shared and gone back to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from recollect.protocol import operations as ops
from recollect.protocol.errors import InvalidArgument, RecollectError
from recollect.protocol.operation import Operation
from recollect.protocol.own_namespaces import HEALTH_NAMESPACE

WAYS = {"recall": "Recall", "words": "By words", "meaning": "By meaning"}
SHOWN_MAX = 20
NOT_OUR_OWN: dict[str, Any] = {
    "AND": [
        {"namespace": {"ne": HEALTH_NAMESPACE}},
        {"NOT": {"namespace": {"contains": f"{HEALTH_NAMESPACE}:"}}},
    ]
}
"""A canary lives for a moment, and is nobody's memory."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, and where."""

    query: str = ""
    way: str = "recall"
    namespace: str = ""
    memory_type: str = ""
    filters: str = ""
    cursor: str = ""

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Question:
        """The question of an address; what does not belong there is left out."""
        given = {name: params.get(name, "").strip() for name in cls.__struct_fields__}
        if given["way"] not in WAYS:
            given["way"] = "recall"
        return cls(**given)

    def path(self, base: str = "/memories") -> str:
        """The address of the page that answers it."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        kept = {name: value for name, value in given.items() if value}
        if kept.get("way") == "recall":
            del kept["way"]
        return f"{base}?{urlencode(kept)}" if kept else base

    def operation(self) -> Operation[Any] | RecollectError:
        """What to ask the orchestrator; without a query, for the newest."""
        filters = self._filters()
        if isinstance(filters, RecollectError):
            return filters
        within: dict[str, Any] = {
            "namespace": self.namespace or None,
            "cursor": self.cursor or None,
        }
        kind = self.memory_type or None
        if not self.query:
            if not self.namespace:
                filters = {"AND": [NOT_OUR_OWN, *([filters] if filters else [])]}
            return ops.ListMemories(memory_type=kind, filters=filters, limit=SHOWN_MAX, **within)
        if self.way == "words":
            return ops.SearchMemory(
                self.query, kind, SHOWN_MAX, filters=filters, explain=True, **within
            )
        if self.way == "meaning":
            if kind:
                filters = {"AND": [{"memory_type": kind}, *([filters] if filters else [])]}
            return ops.SemanticSearch(self.query, SHOWN_MAX, filters, explain=True, **within)
        return ops.Recall(self.query, SHOWN_MAX, filters, memory_type=kind, explain=True, **within)

    def _filters(self) -> dict[str, Any] | RecollectError | None:
        if not self.filters:
            return None
        try:
            given = json.loads(self.filters)
        except ValueError as error:
            return InvalidArgument(f"The filters are not JSON: {error}.")
        if not isinstance(given, dict):
            return InvalidArgument('The filters are an object: {"importance": {"gte": 0.5}}.')
        return given
