"""Echoes where several orchestrators serve an agent: what one served, the others are told.

In Redis lies a set for each thing that an agent was told, by a hash of who was told what, with the
ids of the memories that say it. It expires with the time that counts as just served. An answer goes
out when that is noted, so that a write through another orchestrator, however soon, finds it; when
Redis does not answer, each knows what it served itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from recollect.config.settings import TrustSettings
from recollect.orchestrator.calls import Call
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.redis.line import Line, Script
from recollect.orchestrator.trust.echoes import LIKELY_MAX, Echoes, said_in_full, shown_in

KIND = "served"
DIGEST_BYTES = 12
FORGET_STEPS_MAX = 10_000
DRAFTS_AT_ONCE = 250
"""Looked up in one step: others have their turn in between."""

NOTE = Script("""
for at, home in ipairs(KEYS) do
    redis.call('SADD', home, ARGV[at + 2])
    if redis.call('SCARD', home) > tonumber(ARGV[2]) then redis.call('SPOP', home) end
    redis.call('PEXPIRE', home, ARGV[1])
end
return 1
""")
LOOK_UP = Script("""
local found = {}
for at, home in ipairs(KEYS) do found[at] = redis.call('SMEMBERS', home) end
return cmsgpack.pack(found)
""")
FORGET = Script("""
local some = redis.call('SCAN', ARGV[1], 'MATCH', KEYS[1], 'COUNT', 1000)
if #some[2] > 0 then redis.call('UNLINK', unpack(some[2])) end
return some[1]
""")

_found_in = msgspec.msgpack.Decoder(list[list[str]]).decode


class SharedEchoes(Echoes):
    """What agents were served lately, by any of the orchestrators."""

    shared = True

    def __init__(self, settings: TrustSettings, line: Line) -> None:
        super().__init__(settings, None)
        self._line = line
        self._window_ms = max(1, int(settings.echo_window_s * 1000))

    async def share(self, call: Call, answer: Mapping[str, Any]) -> None:
        if call.agent is None or not self._line.usable():
            return
        shown = {
            self._key(call, memory["content"]): memory["id"]
            for memory in shown_in(answer)[: self._kept_max]
            if "content" in memory
        }
        if shown:
            given = [self._window_ms, LIKELY_MAX, *shown.values()]
            await self._line.ask(NOTE, list(shown), given)

    async def elsewhere(self, call: Call, drafts: Sequence[MemoryRow]) -> list[tuple[str, ...]]:
        nothing: list[tuple[str, ...]] = [()] * len(drafts)
        if call.agent is None or not self._line.usable():
            return nothing
        found: list[tuple[str, ...]] = []
        for start in range(0, len(drafts), DRAFTS_AT_ONCE):
            some = await self._look_up(call, drafts[start : start + DRAFTS_AT_ONCE])
            if some is None:
                break
            found += some
        return found + nothing[len(found) :]

    async def _look_up(
        self, call: Call, drafts: Sequence[MemoryRow]
    ) -> list[tuple[str, ...]] | None:
        keys = [
            () if draft.key is not None else self._keys(call, draft.content) for draft in drafts
        ]
        wanted = list({key for some in keys for key in some})
        if not wanted:
            return [()] * len(drafts)
        answer = await self._line.ask(LOOK_UP, wanted, [])
        if answer is None:
            return None
        known = dict(zip(wanted, _found_in(answer), strict=True))
        return [tuple(id_ for key in some for id_ in known[key]) for some in keys]

    async def forget(self) -> None:
        """Something was purged: no hash of any text is left, unless Redis is away; then all of them
        expire."""
        cursor: Any = "0"
        for _ in range(FORGET_STEPS_MAX):
            cursor = await self._line.ask(FORGET, [self._line.key(KIND, "*")], [cursor])
            if cursor is None or int(cursor) == 0:
                return

    def _keys(self, call: Call, text: str) -> tuple[str, ...]:
        return tuple({self._key(call, text), self._key(call, text, plain=False)})

    def _key(self, call: Call, text: str, *, plain: bool = True) -> str:
        told = f"{call.identity}\x00{call.agent}\x00{said_in_full(text, plain=plain)}"
        digest = hashlib.blake2b(told.encode(), digest_size=DIGEST_BYTES).hexdigest()
        return self._line.key(KIND, digest)
