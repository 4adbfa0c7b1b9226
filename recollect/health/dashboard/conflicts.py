"""Memories of a namespace that say the same twice, or contradict one another; on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicegui import ui

from recollect.health.dashboard import parts, wording
from recollect.health.dashboard.visit import Visit
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError

SHOWN_MAX = 20
WITHIN_S = 20.0
NAMESPACES_OFFERED = 100


def conflicts(visit: Visit) -> None:
    """A card with a field for the namespace; comparing takes a while, so it waits to be asked."""
    with parts.card("Duplicates and contradictions", note="compared when you ask for it"):
        with parts.box("form"):
            field = (
                ui.input("Namespace", placeholder="project:apollo")
                .props("outlined dense clearable")
                .style("grid-column: span 9")
            )

            async def look() -> None:
                namespace = str(field.value or "").strip()
                if not namespace:
                    return
                button.props("loading")
                found = await visit.source.ask(ops.FindConflicts(namespace, SHOWN_MAX), WITHIN_S)
                button.props(remove="loading")
                results.clear()
                with results:
                    _found(found)

            button = parts.button("Look", look, "main").style("grid-column: span 3; height: 40px")
            field.on("keydown.enter", look)
        results = parts.box("lines")
        ui.timer(0.1, lambda: _offer(visit, field), once=True)


async def _offer(visit: Visit, field: ui.input) -> None:
    """Suggest the namespaces that there are."""
    listed = await visit.source.ask(ops.ListNamespaces(limit=NAMESPACES_OFFERED))
    if not isinstance(listed, RecollectError):
        field.set_autocomplete([found["namespace"] for found in listed["namespaces"]])


def _found(found: Any) -> None:
    if isinstance(found, RecollectError):
        parts.trouble(found)
        return
    examined = wording.plural(found["examined"], "memory", "memories")
    if not found["conflicts"]:
        parts.empty("task_alt", "Nothing found", f"{examined} were compared.")
        return
    for conflict in found["conflicts"]:
        _conflict(conflict)
    if not found["complete"]:
        parts.text(f"Only {examined} were compared.", "muted small")


def _conflict(conflict: Mapping[str, Any]) -> None:
    with parts.box("line"), parts.box("grow stack"):
        with parts.box("across wrap"):
            tone = "bad" if conflict["kind"] == "contradiction" else "warn"
            parts.chip(conflict["kind"], tone)
            parts.text(conflict["reason"], "muted small any", "span")
            parts.text(f"{conflict['similarity']:.0%} alike", "muted small num", "span")
        for side in conflict["memories"]:
            with parts.box("across top"):
                parts.link(
                    wording.shortened(side["content"], 200),
                    parts.memory_path(side["memory_id"]),
                    "grow any",
                )
                parts.when(side["updated_at"], "muted num small")
