"""Bringing what other programs have remembered, by the operations that everybody uses.

Each item has a key in the namespace that it is brought into. What is there under that key is not
added again, now or in a year.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from recollect.client import MemoryClient
from recollect.exchange.brought import Brought
from recollect.exchange.conversations import Conversations
from recollect.exchange.items import Conversation, Fact, Item, Link
from recollect.exchange.known import Known
from recollect.protocol.errors import NotFound, RecollectError, TransportError, Unavailable

BATCH_FACTS = 200
BATCH_S = 120.0
LINKS_LOOKED_AT = 1000
MEMORIES, LINKS = "memories", "links"


def bring(
    client: MemoryClient,
    items: Iterable[Item],
    source: str,
    namespace: str,
    *,
    user: str,
    dry_run: bool = False,
    progress: Callable[[int], object] = lambda done: None,
) -> Brought:
    """Bring all items into a namespace; conversations become sessions of a user."""
    told = Brought(source, namespace, dry_run)
    bringing = _Bringing(client, told, user)
    for item in items:
        bringing.take(item)
        progress(told.items)
    bringing.flush()
    progress(told.items)
    return told


class _Bringing:
    """Items on their way; facts are gathered and sent together."""

    def __init__(self, client: MemoryClient, told: Brought, user: str) -> None:
        self._client = client
        self._told = told
        self._known = Known(client)
        self._conversations = Conversations(client, told, self._known, user)
        self._facts: dict[tuple[str, str], Fact] = {}

    def take(self, item: Item) -> None:
        if isinstance(item, Fact):
            place = (self._home(item), item.key)
            if place in self._facts:
                self._told.present[MEMORIES] += 1
                return
            self._facts[place] = item
            if len(self._facts) >= BATCH_FACTS:
                self.flush()
            return
        # What follows may be about them.
        self.flush()
        try:
            if isinstance(item, Link):
                self._link(item)
            else:
                assert isinstance(item, Conversation)
                self._conversations.bring(item)
        except (TransportError, Unavailable):
            raise
        except RecollectError as error:
            self._told.trouble(item.where, error.message)

    def flush(self) -> None:
        """Store the facts that were gathered."""
        facts, self._facts = self._facts, {}
        if facts and self._told.dry_run:
            for (namespace, key), fact in facts.items():
                self._compare(fact, self._known.content(namespace, key))
        elif facts:
            self._store(facts)

    def _store(self, facts: dict[tuple[str, str], Fact]) -> None:
        sent: list[tuple[tuple[str, str], Fact]] = []
        for place, fact in facts.items():
            parent = None
            if fact.parent_key is not None:
                parent = self._known.id(self._told.namespace, fact.parent_key)
                if parent is None and (self._told.namespace, fact.parent_key) in facts:
                    # It is in the same batch: that one first.
                    self._store(dict(sent))
                    sent = []
                    parent = self._known.id(self._told.namespace, fact.parent_key)
            sent.append((place, fact if parent is None else _below(fact, parent)))
        if not sent:
            return
        items = [self._item(place, fact) for place, fact in sent]
        answer = self._client.batch_add_memories(items, timeout=BATCH_S)
        there: dict[str, Fact] = {}
        for (place, fact), result in zip(sent, answer["results"], strict=True):
            if "error" not in result:
                self._told.added[MEMORIES] += 1
                self._known.note(*place, result["memory_id"])
            elif result["error"]["code"] == "already_exists":
                there[result["error"]["details"].get("memory_id", "")] = fact
            else:
                self._told.trouble(fact.where, result["error"]["message"])
        if there:
            self._compare_all(there)

    def _compare_all(self, there: dict[str, Fact]) -> None:
        found = self._client.batch_get_memories([*there])["memories"]
        contents = {memory["id"]: memory["content"] for memory in found}
        for memory_id, fact in there.items():
            # Who may not read what has the key cannot know it for the same.
            self._compare(fact, contents.get(memory_id, ""))

    def _compare(self, fact: Fact, content: str | None) -> None:
        if content is None:
            self._told.added[MEMORIES] += 1
        elif content == fact.content:
            self._told.present[MEMORIES] += 1
        else:
            message = f"{fact.key} is here already and says something else; it was left alone."
            self._told.trouble(fact.where, message, conflict=True)

    def _link(self, link: Link) -> None:
        ends = [self._known.id(self._told.namespace, k) for k in (link.source_key, link.target_key)]
        source, target = ends
        if source is None or target is None:
            if self._told.dry_run:
                self._told.added[LINKS] += 1
            else:
                self._told.trouble(link.where, "One of its ends is not there.")
            return
        if source == target:
            self._told.trouble(link.where, "It leads from something to itself.")
            return
        if self._is_linked(source, target, link.relationship_type):
            self._told.present[LINKS] += 1
            return
        if not self._told.dry_run:
            self._client.add_relationship(source, target, link.relationship_type)
        self._told.added[LINKS] += 1

    def _is_linked(self, source: str, target: str, kind: str) -> bool:
        try:
            found = self._client.get_related_memories(
                source, kind, direction="out", limit=LINKS_LOOKED_AT
            )
        except NotFound:
            return False
        return any(related["memory"]["id"] == target for related in found["related"])

    def _home(self, fact: Fact) -> str:
        return ":".join((self._told.namespace, *fact.below))

    def _item(self, place: tuple[str, str], fact: Fact) -> dict[str, Any]:
        namespace, key = place
        item: dict[str, Any] = {
            "content": fact.content,
            "namespace": namespace,
            "key": key,
            "memory_type": fact.memory_type,
            "source": f"import:{self._told.source}",
        }
        for name in ("value", "metadata", "valid_from", "expires_at"):
            if getattr(fact, name):
                item[name] = getattr(fact, name)
        if fact.tags:
            item["tags"] = list(fact.tags)
        if isinstance(fact, _Child):
            item["parent_id"] = fact.parent_id
        return item


class _Child(Fact, frozen=True, kw_only=True):
    """A fact whose parent is known."""

    parent_id: str


def _below(fact: Fact, parent_id: str) -> _Child:
    told = {name: getattr(fact, name) for name in Fact.__struct_fields__}
    return _Child(**told, parent_id=parent_id)
