"""How far Recollect should be ahead of the other servers, in calls a second of eight clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.peers.environments import OURS, PEERS
from benchmarks.peers.tables import sizes
from benchmarks.table import Row, at_least

AHEAD = 1.0
CHROMA = {"add": 25.0, "search": 10.0, "filtered": 25.0}
# A bare store makes nothing searchable: what it does is shown, and no goal.
SHOWN_ONLY = ("Redis (bare store)",)
NAMES = {"add": "adds", "search": "searches", "filtered": "filtered searches"}


def rows(found: Sequence[dict[str, Any]]) -> list[Row]:
    """A row for each rate beside each server that has it."""
    servers = {peer.name for peer in PEERS if peer.server} - {OURS.name}
    made: list[Row] = []
    for size in sizes(found):
        stores = {store["peer"]: store for store in found if store["size"] == size}
        ours = stores.get(OURS.name)
        if ours is None or "failed" in ours:
            continue
        for name, store in stores.items():
            if name not in servers or "failed" in store:
                continue
            for kind, called in NAMES.items():
                if store[kind] is None:
                    continue
                factor = CHROMA[kind] if name.startswith("Chroma") else AHEAD
                factor = 0.0 if name in SHOWN_ONLY else factor
                title = f"{size:,}: {called}, 8 clients"
                measured, beside = ours[kind]["per_s"], store[kind]["per_s"]
                made.append(at_least(title, measured, beside, factor, "/s", name))
    return made
