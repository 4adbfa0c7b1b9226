"""What orchestrators share in Redis, and the one script by which each gives and takes.

Events lie in a stream. The latest metrics and the active tasks lie in hashes, each with an order by
which the one set longest ago makes room; every change of them goes into a second stream as well, so
that whoever follows both streams need not read the hashes again. Changes are numbered: a gap tells
that the stream was trimmed before it was read. The epoch is a name that the first to come gives to
an empty Redis: another one tells that all was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec
import structlog

from recollect.config.settings import OperationalSettings
from recollect.orchestrator.operational.interface import Event

log = structlog.get_logger()

NAMES = (
    "epoch",
    "events",
    "changes",
    "number",
    "metrics",
    "metrics:order",
    "tasks",
    "tasks:order",
    "tasks:bytes",
)
CHANGES_KEPT_MAX = 10_000
SCAN_AT_ONCE = 500
START = "0-0"
GONE = ""
ERASED: Final = "x"
"""The kind of a change that takes an event out."""

# First what others gave since the position, then what is given: as nothing comes between, the
# position after that is the last entry given. The answer is one piece, which is unpacked at once: a
# client that reads it value by value would hold up the event loop.
EXCHANGE = """
local epoch, events, changes, number = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local homes = {m = {KEYS[5], KEYS[6], tonumber(ARGV[6])},
               t = {KEYS[7], KEYS[8], tonumber(ARGV[7]), KEYS[9], tonumber(ARGV[10])}}
local function drop(home, field)
    if home[4] then redis.call('DECRBY', home[4], redis.call('HSTRLEN', home[1], field)) end
    redis.call('HDEL', home[1], field)
    redis.call('ZREM', home[2], field)
end
local function full(home)
    return redis.call('ZCARD', home[2]) > home[3]
        or home[4] and tonumber(redis.call('GET', home[4])) > home[5]
end
local fresh = redis.call('SET', epoch, ARGV[1], 'NX')
local seen = redis.call('XREAD', 'COUNT', ARGV[4], 'STREAMS', events, changes, ARGV[2], ARGV[3])
local before = redis.call('GET', number)
local last_event, last_change = '', ''
local at = 11
for _ = 1, tonumber(ARGV[9]) do
    last_event = redis.call('XADD', events, 'MAXLEN', '~', ARGV[5], '*',
                            'i', ARGV[at], 'e', ARGV[at + 1])
    at = at + 2
end
local erased, any_erased = {}, false
while at <= #ARGV do
    local kind, field, value, only_new = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    at = at + 4
    local home = homes[kind]
    if not (home and only_new == '1' and redis.call('HEXISTS', home[1], field) == 1) then
        local n = redis.call('INCR', number)
        last_change = redis.call('XADD', changes, 'MAXLEN', '~', ARGV[8], '*',
                                 'n', n, 'k', kind, 'f', field, 'v', value)
        if not home then
            erased[field] = true
            any_erased = true
        elseif value == '' then
            drop(home, field)
        else
            drop(home, field)
            redis.call('HSET', home[1], field, value)
            redis.call('ZADD', home[2], n, field)
            if home[4] then redis.call('INCRBY', home[4], #value) end
            while full(home) do
                drop(home, redis.call('ZRANGE', home[2], 0, 0)[1])
            end
        end
    end
end
if any_erased then
    local place = '0-0'
    while true do
        local some = redis.call('XREAD', 'COUNT', 100, 'STREAMS', events, place)
        if not some then break end
        for _, entry in ipairs(some[1][2]) do
            place = entry[1]
            if erased[entry[2][2]] then redis.call('XDEL', events, place) end
        end
    end
end
return cmsgpack.pack({fresh and true or false, redis.call('GET', epoch), seen or {},
                      tonumber(before or '0'), tonumber(redis.call('GET', number) or '0'),
                      last_event, last_change})
"""
# Where the changes end, for who reads the hashes next and the changes after that.
END_OF_CHANGES = """
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
return cmsgpack.pack({last[1] and last[1][1] or '0-0',
                      tonumber(redis.call('GET', KEYS[2]) or '0')})
"""

Kind = Literal["m", "t", "x"]
"""A metric, an active task, or an event that is erased."""

Entry = tuple[str, tuple[str, ...]]
"""An entry of a stream: its id, and its names and values in turn."""


class _Reply(msgspec.Struct, frozen=True, array_like=True):
    """What the script answers."""

    first: bool
    epoch: str
    seen: list[tuple[str, list[Entry]]]
    before: int
    after: int
    last_event: str
    last_change: str


_reply_in = msgspec.msgpack.Decoder(_Reply).decode
_end_in = msgspec.msgpack.Decoder(tuple[str, int]).decode
_event_in = msgspec.json.Decoder(Event).decode
_encode = msgspec.json.Encoder().encode


class Change(NamedTuple):
    """A metric or an active task as it is now; without a value it is gone, as erased events are."""

    kind: Kind
    field: str
    value: str
    only_new: bool = False
    """Whether it is given only in case that Redis has lost it."""


class Position(msgspec.Struct, frozen=True):
    """Up to where an orchestrator knows what is shared."""

    epoch: str = ""
    event: str = START
    change: str = START
    number: int = 0
    """Of that change."""


class Taken(msgspec.Struct, frozen=True):
    """What others gave."""

    position: Position
    events: list[Event]
    changes: list[Change]
    more: bool
    """Whether there is more to take at once."""
    first: bool
    """Whether Redis was empty."""
    gap: bool
    """Whether changes are missing before these."""


class SharedLog:
    """The streams and hashes of one store. Raises what the client raises."""

    def __init__(
        self,
        client: Any,
        store_id: str,
        new_epoch: Callable[[], str],
        settings: OperationalSettings,
    ) -> None:
        """`client` is a redis-py client for asyncio; `new_epoch` names the one to begin if there is
        none, each time otherwise: who was the first once may be so again.

        The client is untyped because its types differ from version to version.
        """
        self._client = client
        self._new_epoch = new_epoch
        self._settings = settings
        self._script = client.register_script(EXCHANGE)
        self._end_script = client.register_script(END_OF_CHANGES)
        # The braces put all keys of a store into one slot, as a script needs them.
        self._keys = [f"recollect:{{{store_id}}}:{name}" for name in NAMES]

    async def exchange(
        self,
        position: Position,
        events: Sequence[Event],
        changes: Sequence[Change],
        *,
        read_max: int,
        events_max: int,
    ) -> Taken:
        """Give some and take what others gave since a position, in one step."""
        settings = self._settings
        given: list[Any] = [self._new_epoch(), position.event, position.change]
        given += [read_max, events_max]
        # A state that lies as text in JSON may have twice its bytes.
        bytes_max = 2 * settings.bytes_max
        largest = max((len(change.value) for change in changes), default=0)
        kept_max = min(CHANGES_KEPT_MAX, bytes_max // max(1, largest))
        given += [settings.metrics_max, settings.active_tasks_max, kept_max, len(events), bytes_max]
        for event in events:
            given += (event.id, _encode(event))
        for change in changes:
            given += (change.kind, change.field, change.value, int(change.only_new))
        reply = _reply_in(await self._script(keys=self._keys, args=given))
        streams = dict(reply.seen)
        new_events, new_changes = streams.get(self._keys[1], []), streams.get(self._keys[2], [])
        numbered = [_change_in(entry) for entry in new_changes]
        events_cut, changes_cut = len(new_events) == read_max, len(new_changes) == read_max
        read_to = numbered[-1][0] if numbered and changes_cut else reply.before
        return Taken(
            position=Position(
                epoch=reply.epoch,
                event=_reached(position.event, new_events, events_cut, reply.last_event),
                change=_reached(position.change, new_changes, changes_cut, reply.last_change),
                number=read_to if changes_cut else reply.after,
            ),
            events=_events_in(new_events),
            changes=[change for _, change in numbered],
            more=events_cut or changes_cut,
            first=reply.first,
            gap=read_to != position.number + len(numbered),
        )

    async def end_of_changes(self, position: Position) -> Position:
        """The same position, but behind all changes."""
        last, number = _end_in(await self._end_script(keys=self._keys[2:4]))
        return msgspec.structs.replace(position, change=last, number=number)

    async def state(self) -> list[Change]:
        """All metrics and active tasks that are shared now, of each the one set longest ago first.

        They are read piece by piece. What is set meanwhile comes among the changes as well.
        """
        state: list[Change] = []
        metrics, metrics_order, tasks, tasks_order = self._keys[4:8]
        homes: tuple[tuple[Kind, str, str], ...]
        homes = (("m", metrics, metrics_order), ("t", tasks, tasks_order))
        for kind, home, order in homes:
            values: dict[bytes, bytes] = {}
            cursor = 0
            while True:
                cursor, found = await self._client.hscan(home, cursor, count=SCAN_AT_ONCE)
                values |= found
                if not int(cursor):
                    break
            for field in await self._client.zrange(order, 0, -1):
                value = values.get(field)
                if value is not None:
                    state.append(Change(kind, field.decode(), value.decode()))
        return state

    async def close(self) -> None:
        await self._client.aclose()


def _reached(known: str, seen: Sequence[Entry], cut: bool, given: str) -> str:
    """Behind what was given, unless something before that was not taken yet."""
    if given and not cut:
        return given
    return seen[-1][0] if seen else known


def _events_in(entries: Sequence[Entry]) -> list[Event]:
    found = []
    for _, (_, _, _, encoded) in entries:
        try:
            found.append(_event_in(encoded))
        except msgspec.DecodeError as error:
            # Another version may have given it.
            log.warning("A shared event is not readable.", action="redis", reason=str(error))
    return found


def _change_in(entry: Entry) -> tuple[int, Change]:
    _, (_, number, _, kind, _, field, _, value) = entry
    return int(number), Change(kind, field, value)  # type: ignore[arg-type]
