"""Live counters: what each orchestrator has done so far, in one hash that any of them can sum up.

Each writes its own field once a second and is told those of all; who has not written for some
seconds is not among the living, and is taken out by whoever comes next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

LIVING_S = 5
"""Who was not heard of for longer is gone."""

WRITE = """
local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', KEYS[1], ARGV[1], now .. ' ' .. ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
local all, living = redis.call('HGETALL', KEYS[1]), {}
for at = 1, #all, 2 do
    local noted, counters = string.match(all[at + 1], '^(%d+) (.*)$')
    if noted and now - tonumber(noted) <= tonumber(ARGV[3]) then
        living[#living + 1] = counters
    else
        redis.call('HDEL', KEYS[1], all[at])
    end
end
return living
"""


class Counters(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an orchestrator has done since it started, and what it is at."""

    served: int = 0
    failed: dict[str, int] = {}
    """By the code of the error."""
    in_flight: int = 0
    memories_added: int = 0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Counters).decode


class LiveCounters:
    """The hash of one store, as one orchestrator uses it. Raises what the client raises."""

    def __init__(self, client: Any, store_id: str, own_id: str) -> None:
        self._client = client
        self._key = f"recollect:{{{store_id}}}:live"
        self._own_id = own_id
        self._script = client.register_script(WRITE)

    async def write(self, counters: Counters) -> list[Counters]:
        """Write its own and get those of all that live, its own among them."""
        given = [self._own_id, _encode(counters), LIVING_S]
        found: Sequence[bytes] = await self._script(keys=[self._key], args=given)
        return [_decode(one) for one in found]

    async def leave(self) -> None:
        """Be counted no more."""
        await self._client.hdel(self._key, self._own_id)


def summed(all_of_them: Sequence[Counters]) -> dict[str, Any]:
    """What they have done together."""
    failed: dict[str, int] = {}
    for one in all_of_them:
        for code, count in one.failed.items():
            failed[code] = failed.get(code, 0) + count
    return {
        "served": sum(one.served for one in all_of_them),
        "failed": sum(failed.values()),
        "failed_by_code": failed,
        "in_flight": sum(one.in_flight for one in all_of_them),
        "memories_added": sum(one.memories_added for one in all_of_them),
    }
