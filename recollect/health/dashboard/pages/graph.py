"""Memories and relationships as a picture to walk through."""

from __future__ import annotations

from urllib.parse import quote

from nicegui import ui
from nicegui.events import GenericEventArguments
from starlette.requests import Request

from recollect.health.dashboard import parts, theme, wording
from recollect.health.dashboard.drawing.walking import DEPTH_MAX, Picture
from recollect.health.dashboard.frame import frame
from recollect.health.dashboard.visit import Visit
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError

STARTING_WITH = 60


async def graph(visit: Visit, request: Request) -> None:
    picture = Picture(visit.source)
    start = request.query_params.get("id", "")
    query = request.query_params.get("query", "").strip()
    asked = request.query_params.get("depth", "")
    depth = min(DEPTH_MAX, max(1, int(asked))) if asked.isdecimal() else 2
    with frame(visit, "Graph", "Walk from memory to memory: click one to see what lies around it."):
        _form(query, depth)
        error = await _begin(visit, picture, start, query, depth)
        if error is not None:
            with parts.card():
                parts.trouble(error)
        elif not picture.memories:
            with parts.card():
                parts.empty(
                    "hub",
                    "Nothing to draw yet" if not query else "Nothing found",
                    "Memories appear here as soon as there are some; links between them are made "
                    "with add_relationship."
                    if not query
                    else "Try other words to start from.",
                    'recollect add "The build is green since Tuesday."' if not query else None,
                )
        else:
            _walk(picture)


async def _begin(
    visit: Visit, picture: Picture, start: str, query: str, depth: int
) -> RecollectError | None:
    """Around a memory, around the best answer to a question, or the newest that are linked."""
    if query and not start:
        found = await visit.source.ask(ops.Recall(query, 1))
        if isinstance(found, RecollectError):
            return found
        if not found["results"]:
            return None
        start = found["results"][0]["id"]
    if start:
        return await picture.begin(start, depth)
    newest = await visit.source.ask(ops.ListMemories(limit=STARTING_WITH))
    if isinstance(newest, RecollectError):
        return newest
    await picture.begin_with(list(newest["memories"]))
    return None


def _form(query: str, depth: int) -> None:
    def go() -> None:
        words = str(field.value or "").strip()
        ui.navigate.to(f"/graph?query={quote(words)}&depth={far.value}" if words else "/graph")

    with parts.card(), parts.box("form"):
        field = (
            ui.input("Start from", value=query, placeholder="What is it about?")
            .props("outlined dense clearable")
            .style("grid-column: span 7")
            .on("keydown.enter", go)
        )
        far = (
            ui.select({1: "1 step", 2: "2 steps", 3: "3 steps"}, label="How far", value=depth)
            .props("outlined dense options-dense")
            .style("grid-column: span 3")
        )
        parts.button("Draw", go, "main").style("grid-column: span 2; height: 40px")


def _walk(picture: Picture) -> None:
    with parts.box("grid"):
        with parts.card(None, "c8 flush"):
            chart = ui.echart(picture.options()).classes("chart graph")
        with parts.box("stack wide c4"):

            @ui.refreshable
            def beside() -> None:
                _chosen(picture)
                _legend(picture)

            beside()

    async def chosen(event: GenericEventArguments) -> None:
        memory_id = (event.args.get("data") or {}).get("id")
        if event.args.get("dataType") == "node" and isinstance(memory_id, str):
            await picture.step(memory_id)
            chart.options.clear()
            chart.options.update(picture.options())
            chart.update()
            beside.refresh()

    # Nodes have no value, which the toolkit's own way to hear of clicks takes for granted.
    chart.on("componentClick", chosen, ["dataType", "data"])


def _chosen(picture: Picture) -> None:
    if picture.centre is None:
        with parts.card("Where to begin"):
            parts.text("Click a memory, or say above what it is about.", "muted")
        return
    memory = picture.memories[picture.centre]
    with parts.card("In the middle"):
        parts.text(wording.shortened(memory["content"], 400), "any")
        with parts.box("meta"):
            parts.tier_chip(memory["memory_tier"])
            parts.chip(memory["memory_type"])
            parts.text(memory["namespace"], "clip", "span")
        links = [
            (edge[1], edge[0] == picture.centre, edge[2] if edge[0] == picture.centre else edge[0])
            for edge in picture.edges
            if picture.centre in (edge[0], edge[2])
        ]
        colours = picture.colours()
        with parts.box("stack"):
            for kind, outward, other in links[:8]:
                with parts.box("across small"):
                    ui.icon("arrow_forward" if outward else "arrow_back").classes("muted")
                    parts.chip(kind, colour=colours[kind])
                    words = wording.shortened(picture.memories[other]["content"], 60)
                    parts.link(words, parts.memory_path(other), "clip grow")
        parts.link("Open this memory", parts.memory_path(picture.centre))


def _legend(picture: Picture) -> None:
    with parts.card("In the picture"):
        parts.text(
            f"{wording.plural(len(picture.memories), 'memory', 'memories')}, "
            f"{wording.plural(len(picture.edges), 'link')}"
            + (" (more would not fit)" if picture.full else ""),
            "muted small",
        )
        with parts.box("across wrap"):
            for tier, colour in theme.TIERS.items():
                parts.chip(tier, colour=colour)
        with parts.box("across wrap"):
            for kind, colour in list(picture.colours().items())[:12]:
                parts.chip(kind, colour=colour)
