"""The picture of memories and relationships: what is in it, and how it grows by walking."""

from __future__ import annotations

from typing import Any

from recollect.health.dashboard import theme, wording
from recollect.health.dashboard.drawing import charts
from recollect.health.dashboard.source import Source
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError

NODES_MAX = 90
NEIGHBOURS_MAX = 24
DEPTH_MAX = 3
Edge = tuple[str, str, str]


class Picture:
    """Memories and their links around one in the middle. Belongs to one page."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.memories: dict[str, dict[str, Any]] = {}
        self.edges: dict[Edge, float] = {}
        self.centre: str | None = None
        self.full = False
        """Whether something was left out because the picture is as large as may be."""

    async def begin(self, centre: str, depth: int) -> RecollectError | None:
        """A new picture around a memory."""
        self.memories.clear()
        self.edges.clear()
        self.full = False
        found = await self._source.ask(ops.History(centre, 1))
        if isinstance(found, RecollectError):
            return found
        self.memories[centre] = dict(found["versions"][0]["memory"])
        self.centre = centre
        rim = [centre]
        for _ in range(min(depth, DEPTH_MAX)):
            rim = await self._walk(rim)
        return None

    async def begin_with(self, memories: list[Any]) -> None:
        """A picture of some memories and what each is linked to."""
        for memory in memories:
            self.memories[memory["id"]] = dict(memory)
        rim = await self._walk(list(self.memories))
        linked = {end for source, _, target in self.edges for end in (source, target)}
        if linked:
            self.memories = {key: kept for key, kept in self.memories.items() if key in linked}
        await self._walk(rim)

    async def step(self, centre: str) -> None:
        """Go on to another memory of the picture, and see what lies around it."""
        if centre in self.memories:
            self.centre = centre
            await self._walk([centre])

    async def _walk(self, rim: list[str]) -> list[str]:
        asked = [ops.GetRelatedMemories(memory_id, limit=NEIGHBOURS_MAX) for memory_id in rim]
        answers = await self._source.ask_all(asked)
        new: list[str] = []
        for here, found in zip(rim, answers, strict=True):
            if isinstance(found, RecollectError):
                continue
            for link in found["related"]:
                there = link["memory"]["id"]
                if there not in self.memories:
                    if len(self.memories) >= NODES_MAX:
                        self.full = True
                        continue
                    self.memories[there] = dict(link["memory"])
                    new.append(there)
                ends = (here, there) if link["direction"] == "out" else (there, here)
                self.edges[(ends[0], link["relationship_type"], ends[1])] = link["strength"]
        return new

    def colours(self) -> dict[str, str]:
        """A colour for each kind of link."""
        kinds = sorted({kind for _, kind, _ in self.edges})
        return {kind: theme.SERIES[n % len(theme.SERIES)] for n, kind in enumerate(kinds)}

    def options(self) -> charts.Options:
        """The picture as a chart. Names and ids stand in values only."""
        colours = self.colours()
        degree: dict[str, int] = {}
        for source, _, target in self.edges:
            degree[source] = degree.get(source, 0) + 1
            degree[target] = degree.get(target, 0) + 1
        return {
            "animationDurationUpdate": 300,
            "tooltip": {"show": False},
            "series": [
                {
                    "type": "graph",
                    "layout": "force",
                    "roam": True,
                    "zoom": 1.2 if len(self.memories) < 12 else 1.0,
                    "draggable": True,
                    "scaleLimit": {"min": 0.4, "max": 4},
                    "force": {
                        "repulsion": 160 + 4000 / (10 + len(self.memories)),
                        "edgeLength": [60, 150],
                        "gravity": 0.07,
                    },
                    "edgeSymbol": ["none", "arrow"],
                    "edgeSymbolSize": 6,
                    "labelLayout": {"hideOverlap": True},
                    "emphasis": {"focus": "adjacency", "lineStyle": {"width": 2.5}},
                    "data": [
                        self._node(memory, degree.get(key, 0))
                        for key, memory in self.memories.items()
                    ],
                    "links": [
                        _link(edge, strength, colours[edge[1]])
                        for edge, strength in self.edges.items()
                        if edge[0] in self.memories and edge[2] in self.memories
                    ],
                }
            ],
        }

    def _node(self, memory: dict[str, Any], degree: int) -> charts.Options:
        centre = memory["id"] == self.centre
        return {
            "id": memory["id"],
            "name": wording.shortened(memory["content"], 32),
            "symbolSize": 30 if centre else 12 + min(14, 2 * degree),
            "itemStyle": {
                "color": theme.TIERS.get(memory["memory_tier"], theme.MUTED),
                "borderColor": theme.ACCENT if centre else "transparent",
                "borderWidth": 4 if centre else 0,
            },
            "label": {
                "show": True,
                "position": "bottom",
                "color": theme.MUTED,
                "fontSize": 11,
                "fontFamily": theme.FONT,
                "fontWeight": "bold" if centre else "normal",
            },
        }


def _link(edge: Edge, strength: float, colour: str) -> charts.Options:
    source, _, target = edge
    return {
        "source": source,
        "target": target,
        "lineStyle": {
            "color": colour,
            "width": 1 + strength,
            "opacity": 0.6,
            "curveness": 0.08,
        },
    }
