"""The sessions of OpenAI's Agents SDK on Recollect.

    session = RecollectSession("conversation-123")     # instead of SQLiteSession(…)
    await Runner.run(agent, "Hello", session=session)

What is added at once is one event of a session, so that it stands together whoever adds at the same
time. Events are only ever appended: an item that is popped is named by a later event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

try:
    from agents.memory import SessionSettings
except ImportError as missing:  # pragma: no cover - depends on what is installed
    raise ImportError(
        "recollect.integrations.openai_agents needs the Agents SDK: "
        "pip install 'recollect[openai-agents]'"
    ) from missing

from recollect.client import AsyncMemoryClient
from recollect.integrations import named_sessions
from recollect.integrations.clients import Clients, check_given
from recollect.integrations.events import all_events, packed, unpacked
from recollect.integrations.named_sessions import Owner
from recollect.integrations.steps import Steps, afollow
from recollect.protocol.errors import NotFound, Overloaded, VersionConflict
from recollect.protocol.operations import AppendEvent, GetSession
from recollect.protocol.records import SessionEvent

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

R = TypeVar("R")
APP = "openai-agents"
TAIL_EVENTS = 100
PORTION_BYTES = 131_072
"""Half of what an event may have by default, for JSON within a text is longer."""
TRIES_MAX = 100
"""How often a pop begins anew because others changed the session in between."""

Place = tuple[int, int]
"""An item: the position of its event, and its number there."""


class RecollectSession:
    """A conversation that is kept for all processes and outlives them."""

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        *,
        memory: AsyncMemoryClient | None = None,
        endpoint: str | None = None,
        user_id: str = "openai-agents",
        session_settings: SessionSettings | None = None,
        **options: Any,
    ) -> None:
        """Take up a conversation, or begin one with the first item.

        session_id: the name of the conversation, unique among those of the user.
        memory: a client to use, in its own loop; else one is made for each loop from `endpoint`
            and the options, which are those of AsyncMemoryClient.
        user_id: whose conversation it is; it lives in the namespace of that user.
        session_settings: `limit` says how many items are got if nothing else is said.
        """
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._owner = Owner(user_id, APP, APP)
        if memory is not None:
            check_given(memory)
        self._memory = memory
        self._clients = Clients(endpoint, options)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in their order: all of them, or the last so many."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await self._follow(self._getting(limit))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, together and in their order."""
        if items:
            await self._follow(self._adding([dict(item) for item in items]))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the last item and return it; None if there is none. No two callers get the
        same."""
        return await self._follow(self._popping())

    async def clear_session(self) -> None:
        """Delete the conversation with all its items for good."""
        await self._follow(named_sessions.delete(self._owner, self.session_id))

    async def aclose(self) -> None:
        """Close the connection, unless it was given."""
        await self._clients.aclose()

    async def _follow(self, steps: Steps[R]) -> R:
        return await afollow(self._memory or await self._clients.awaiting(), steps)

    def _adding(self, items: list[dict[str, Any]]) -> Steps[None]:
        for together in _portions(items):
            yield from self._appending(together)

    def _appending(self, items: list[dict[str, Any]]) -> Steps[None]:
        for _ in range(TRIES_MAX):
            found = yield from named_sessions.find_or_create(self._owner, self.session_id)
            try:
                yield AppendEvent(found, {"items": packed(items)})
                return
            except NotFound:
                # It was cleared in between, or deleted; what is added begins a new one.
                yield from named_sessions.release(self._owner, self.session_id, found)
        raise _too_busy()

    def _getting(self, limit: int | None) -> Steps[list[TResponseInputItem]]:
        found = yield from named_sessions.find(self._owner, self.session_id)
        if found is None or (limit is not None and limit <= 0):
            return []
        try:
            _, items = yield from self._last_items(found, limit)
        except NotFound:
            return []
        return [cast("TResponseInputItem", item) for _, item in items]

    def _popping(self) -> Steps[TResponseInputItem | None]:
        for _ in range(TRIES_MAX):
            found = yield from named_sessions.find(self._owner, self.session_id)
            if found is None:
                return None
            try:
                version, items = yield from self._last_items(found, 1)
                if not items:
                    return None
                [(place, item)] = items
                # Only if nothing has changed since it was seen to be the last.
                yield AppendEvent(found, {"popped": list(place)}, expected_version=version)
                return cast("TResponseInputItem", item)
            except VersionConflict:
                continue
            except NotFound:
                yield from named_sessions.release(self._owner, self.session_id, found)
        raise _too_busy()

    def _last_items(
        self, session_id: str, limit: int | None
    ) -> Steps[tuple[int, list[tuple[Place, Any]]]]:
        """The version of a session and its last items; all of them without a limit."""
        seen = yield GetSession(session_id, events=TAIL_EVENTS)
        events: list[SessionEvent] = seen["events"]
        items = _items_of(events)
        begins_at = events[0]["position"] if events else 1
        if begins_at > 1 and (limit is None or len(items) < limit):
            earlier = yield from all_events(session_id, before=begins_at)
            items = _items_of([*earlier, *events])
        return seen["session"]["version"], items if limit is None else items[-limit:]


def _portions(items: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Items as they fit into one event; nearly always all of them."""
    portion: list[dict[str, Any]] = []
    size = 0
    for item in items:
        item_size = len(json.dumps(item))
        if portion and size + item_size > PORTION_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(item)
        size += item_size
    if portion:
        yield portion


def _items_of(events: Iterable[SessionEvent]) -> list[tuple[Place, Any]]:
    """The items of some last events, without those that were popped: later events name them."""
    items: dict[Place, Any] = {}
    for event in events:
        kept = event["event"]
        for number, item in enumerate(unpacked(kept.get("items", []))):
            items[event["position"], number] = item
        if "popped" in kept:
            position, number = kept["popped"]
            items.pop((position, number), None)
    return list(items.items())


def _too_busy() -> Overloaded:
    return Overloaded(
        f"Others changed the session {TRIES_MAX} times in between; try again.", retry_after_ms=100
    )
