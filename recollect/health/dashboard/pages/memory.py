"""One memory: what it says, how it came to be so, how it fades, and what it is linked to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from nicegui import ui
from starlette.requests import Request

from recollect.health.dashboard import parts, wording
from recollect.health.dashboard.diffing import content_lines, field_changes
from recollect.health.dashboard.drawing.strength import strength_curve
from recollect.health.dashboard.frame import frame
from recollect.health.dashboard.visit import Visit
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError

VERSIONS_SHOWN = 20
RELATED_SHOWN = 20
AUDIT_SHOWN = 15


async def memory(visit: Visit, request: Request) -> None:
    memory_id = request.path_params["memory_id"]
    # The history rather than the memory: looking at it here is no use of it, and must not
    # strengthen it. A deleted one is found as well.
    of_versions = visit.source.ask(ops.History(memory_id, VERSIONS_SHOWN))
    of_links = visit.source.ask(ops.GetRelatedMemories(memory_id, limit=RELATED_SHOWN))
    of_audit = visit.source.ask(ops.AuditLog(subject=memory_id, limit=AUDIT_SHOWN))
    history, related, audit = await asyncio.gather(of_versions, of_links, of_audit)
    if isinstance(history, RecollectError):
        with frame(visit, "Memory"), parts.card():
            parts.trouble(history)
        return
    versions = history["versions"]
    found = versions[0]["memory"]
    with frame(visit, "Memory", f"{found['namespace']} · {found['memory_type']}") as actions:
        with actions:
            parts.link("Show in graph", f"/graph?id={quote(memory_id, safe='')}")
        with parts.box("grid"):
            with parts.box("stack wide c8"):
                _content(found)
                _versions(versions)
                _audit(audit)
            with parts.box("stack wide c4"):
                _strength(visit, found)
                _facts(found)
                _related(related)


def _content(memory: Mapping[str, Any]) -> None:
    with parts.card("Content"):
        gone = [name for name in ("deleted", "archived") if memory[f"{name}_at"]]
        if gone:
            with parts.box("across"):
                for name in gone:
                    parts.chip(f"{name} {wording.age(memory[f'{name}_at'])}", "warn")
        parts.text(wording.cut(memory["content"]), "content")
        if memory["tags"]:
            with parts.box("across wrap"):
                for tag in memory["tags"]:
                    parts.chip(tag, icon="sell")
        for name in ("value", "metadata"):
            if memory[name]:
                parts.text(wording.spoken(name), "muted small")
                parts.code(wording.as_json(memory[name]))


def _facts(memory: Mapping[str, Any]) -> None:
    def moment(name: str) -> Any:
        return (lambda: parts.when(memory[name])) if memory[name] else None

    def leads(name: str, base: str) -> Any:
        target = memory[name]
        path = f"{base}/{quote(str(target), safe='')}"
        return (lambda: parts.link(target, path, "any")) if target else None

    with parts.card("About it"):
        parts.facts(
            {
                "Tier": lambda: parts.tier_chip(memory["memory_tier"]),
                "Type": memory["memory_type"],
                "Collection": memory["collection"],
                "Key": memory["key"],
                "Version": memory["version"],
                "Importance": f"{memory['importance']:.2f}",
                "Trust": f"{memory['trust']:.2f}",
                "Used": wording.plural(memory["access_count"], "time"),
                "Last used": moment("last_accessed_at"),
                "Created": moment("created_at"),
                "By": memory["created_by"],
                "Source": memory["source"],
                "Session": leads("session_id", "/sessions"),
                "Part of": leads("parent_id", "/memories"),
                "Valid from": moment("valid_from"),
                "Valid to": moment("valid_to"),
                "Expires": moment("expires_at"),
                "Id": lambda: parts.text(memory["id"], "mono any", "span"),
            }
        )


def _strength(visit: Visit, memory: Mapping[str, Any]) -> None:
    with parts.card("Strength", note=f"{memory['strength']:.0%} now"):
        ui.echart(strength_curve(memory, visit.fade_threshold)).classes("chart low")
        fades = wording.age(memory["fades_at"])
        parts.text(
            f"Fades {fades} unless it is used.", "muted small", hint=wording.at(memory["fades_at"])
        )


def _versions(versions: Sequence[Mapping[str, Any]]) -> None:
    count = wording.plural(len(versions), "version")
    with parts.card("Versions", "flush", count), parts.box("lines"):
        for place, version in enumerate(versions):
            with parts.box("line"), parts.box("grow stack"):
                with parts.box("across wrap"):
                    parts.chip(f"v{version['version']}", "accent" if place == 0 else "")
                    parts.text(wording.spoken(version["operation"]), "strong", "span")
                    if version["changed_by"]:
                        parts.text(f"by {version['changed_by']}", "muted clip", "span")
                    parts.when(version["changed_at"], "muted num")
                if place + 1 < len(versions):
                    _difference(versions[place + 1]["memory"], version["memory"])


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    lines = content_lines(before["content"], after["content"])
    if lines:
        with parts.box("diff"):
            for line in lines:
                parts.text(line.text or " ", line.kind)
    for name, was, is_now in field_changes(before, after):
        with parts.box("across wrap small"):
            parts.text(name, "muted", "span")
            parts.text(was, "any", "span")
            ui.icon("arrow_forward").classes("muted")
            parts.text(is_now, "any", "span")


def _related(related: Any) -> None:
    with parts.card("Relationships", "flush"):
        if isinstance(related, RecollectError):
            parts.trouble(related)
        elif not related["related"]:
            parts.empty("link_off", "Linked to nothing", "Agents link with add_relationship.")
        else:
            with parts.box("lines"):
                for link in related["related"]:
                    with parts.box("line", "a") as line:
                        line.props["href"] = parts.memory_path(link["memory"]["id"])
                        with parts.box("grow"):
                            parts.text(wording.shortened(link["memory"]["content"], 160), "text")
                            with parts.box("meta"):
                                outward = link["direction"] == "out"
                                icon = "arrow_forward" if outward else "arrow_back"
                                parts.chip(link["relationship_type"], "accent", icon=icon)
                                parts.text(f"strength {link['strength']:.2f}", "num", "span")


def _audit(audit: Any) -> None:
    with parts.card("Audit", "flush", "who did what to it"):
        if isinstance(audit, RecollectError):
            parts.trouble(audit)
        elif not audit["entries"]:
            parts.empty("history", "No entries", "The log may have been trimmed.")
        else:
            with parts.box("lines"):
                for entry in audit["entries"]:
                    with parts.box("line"):
                        with parts.box("grow"):
                            with parts.box("across wrap"):
                                parts.text(entry["operation"], "strong mono", "span")
                                if entry["outcome"] != "done":
                                    parts.state_chip(entry["outcome"])
                            with parts.box("meta"):
                                parts.text(entry["agent"] or entry["identity"], "clip", "span")
                                if entry["detail"]:
                                    parts.text(entry["detail"], "any", "span")
                        parts.text(f"#{entry['seq']}", "muted num small", "span")
                        parts.when(entry["at"], "muted num small")
