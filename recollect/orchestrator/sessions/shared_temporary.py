"""The `temp:` state of sessions where several orchestrators serve them: shared through Redis.

Each holds a copy, and Redis one as well, in a hash for each session. A change is in Redis before it
is answered, and a read asks Redis first: whoever was told of a change finds it through any of them.
None of the copies is the truth. Where one lacks something that another has, because Redis was away
or has lost all, it is given to it when they next meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from recollect.orchestrator.redis.line import Line, Script
from recollect.orchestrator.sessions.temporary import (
    REMOVED_MAX,
    Entry,
    TemporaryState,
    Values,
)

KIND = "temp"
FLOOR = ""
"""No key has this name."""
HOUR_MS = 3_600_000

# As `Held` does it: the later version is right, and of removed keys only the last are known. The
# answer is one piece, which is unpacked at once.
EXCHANGE = Script("""
local home, removed_max = KEYS[1], tonumber(ARGV[2])
local floor = tonumber(redis.call('HGET', home, '') or '0')
for at = 3, #ARGV, 3 do
    local known = redis.call('HGET', home, ARGV[at])
    local version = known and tonumber(string.match(known, '^%d+')) or floor
    if tonumber(ARGV[at + 1]) > version then
        redis.call('HSET', home, ARGV[at], ARGV[at + 1] .. ' ' .. ARGV[at + 2])
    end
end
local all, removed = redis.call('HGETALL', home), {}
for at = 1, #all, 2 do
    local version = string.match(all[at + 1], '^(%d+) $')
    if version then removed[#removed + 1] = {tonumber(version), all[at]} end
end
if #removed > removed_max then
    table.sort(removed, function(one, other) return one[1] < other[1] end)
    for at = 1, #removed - math.floor(removed_max / 2) do
        redis.call('HDEL', home, removed[at][2])
        redis.call('HSET', home, '', removed[at][1])
    end
    all = redis.call('HGETALL', home)
end
if #all > 0 then redis.call('PEXPIRE', home, ARGV[1]) end
return cmsgpack.pack(all)
""")
END = Script("return redis.call('UNLINK', KEYS[1])")

_known_in = msgspec.msgpack.Decoder(list[str]).decode


class SharedTemporary(TemporaryState):
    """A copy that keeps up with the others."""

    shared = True

    def __init__(self, sessions_max: int, bytes_max: int, kept_hours: float, line: Line) -> None:
        super().__init__(sessions_max, bytes_max)
        self._kept_ms = max(1, int(kept_hours * HOUR_MS))
        self._line = line

    async def refresh(self, session_id: str) -> None:
        await self._exchange(session_id, {})

    async def give(self, session_id: str, version: int, changes: Values) -> None:
        # Done already by the commit, unless this is the answer to a retry: then whoever committed
        # it may not have come so far.
        self.change(session_id, version, changes)
        await self._exchange(session_id, {key: (version, changes[key]) for key in changes})

    async def end(self, session_id: str) -> None:
        self.forget(session_id)
        await self._line.ask(END, [self._line.key(KIND, session_id)], [])

    async def _exchange(self, session_id: str, entries: Mapping[str, Entry]) -> None:
        """Give some, take what there is, and give what is then found to be missing there."""
        known = await self._ask(session_id, entries)
        if known is None:
            return
        held = self._merge(session_id, known.pop(FLOOR, (0, None))[0], known)
        missing = {key: entry for key, entry in held.entries.items() if known.get(key) != entry}
        if missing:
            await self._ask(session_id, missing)

    async def _ask(self, session_id: str, entries: Mapping[str, Entry]) -> dict[str, Entry] | None:
        given: list[Any] = [self._kept_ms, REMOVED_MAX]
        for key, (version, value) in entries.items():
            given += (key, version, value or "")
        answer = await self._line.ask(EXCHANGE, [self._line.key(KIND, session_id)], given)
        if answer is None:
            return None
        try:
            texts = _known_in(answer)
            return {key: _entry(text) for key, text in zip(texts[::2], texts[1::2], strict=True)}
        except ValueError:
            # Another version may have written it.
            return None


def _entry(text: str) -> Entry:
    version, _, value = text.partition(" ")
    return int(version), value or None
