"""The tree of namespaces, with how many memories each holds."""

from __future__ import annotations

from typing import Any

from nicegui import ui
from starlette.requests import Request

from recollect.health.dashboard import parts, wording
from recollect.health.dashboard.frame import frame
from recollect.health.dashboard.searching import Question
from recollect.health.dashboard.visit import Visit
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError
from recollect.protocol.own_namespaces import is_own

PAGE = 100
PAGES_MAX = 10
HEADER = """
<a class="across grow" :href="props.node.path" style="color: inherit"
   @click.stop @keydown.stop @keyup.stop>
  <span class="grow clip">{{ props.node.label }}</span>
  <span class="num muted small" :title="props.node.exact">{{ props.node.shown }}</span>
</a>
"""
KINDS = {
    "app": "what belongs to an app",
    "project": "what belongs to a project",
    "session": "what belongs to one session",
    "temp": "what is kept for a while only",
    "user": "what belongs to a person",
}


async def namespaces(visit: Visit, request: Request) -> None:
    lead = "Where memories live. One that is chosen holds all that is below it."
    with frame(visit, "Namespaces", lead):
        found = await _all(visit)
        if isinstance(found, RecollectError):
            with parts.card():
                parts.trouble(found)
            return
        counts, complete = found
        if not counts:
            with parts.card():
                parts.empty(
                    "account_tree",
                    "No namespaces yet",
                    "A namespace is there as soon as a memory is in it.",
                    'recollect add "Deploys are on Fridays" --namespace project:apollo',
                )
            return
        with parts.box("grid"):
            with parts.card("All namespaces", "c8", _summary(counts, complete)):
                tree = ui.tree(_nodes(counts), label_key="label", node_key="id")
                tree.add_slot("default-header", HEADER)
                tree.expand([name for name in KINDS])
            with parts.card("By kind", "c4"):
                total = sum(counts.values()) or 1
                for kind, meaning in KINDS.items():
                    held = sum(n for name, n in counts.items() if name.split(":")[0] == kind)
                    if held:
                        with parts.box("stack"):
                            with parts.box("across"):
                                parts.text(kind, "strong", "span")
                                parts.text(meaning, "muted small grow clip", "span")
                                parts.number(held)
                            parts.bar(held / total)


async def _all(visit: Visit) -> tuple[dict[str, int], bool] | RecollectError:
    """Namespaces with their counts, a bounded number, and whether these are all."""
    counts: dict[str, int] = {}
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = await visit.source.ask(ops.ListNamespaces(limit=PAGE, cursor=cursor))
        if isinstance(page, RecollectError):
            return page
        counts |= {
            found["namespace"]: found["memories"]
            for found in page["namespaces"]
            if not is_own(found["namespace"])
        }
        cursor = page["cursor"]
        if cursor is None:
            break
    return counts, cursor is None


def _summary(counts: dict[str, int], complete: bool) -> str:
    shown = wording.plural(len(counts), "namespace")
    return shown if complete else f"the first {shown}"


def _nodes(counts: dict[str, int]) -> list[dict[str, Any]]:
    """The tree; each node holds the sum of all that is below it."""
    nodes: dict[str, dict[str, Any]] = {}
    roots: list[dict[str, Any]] = []
    for name, held in sorted(counts.items()):
        pieces = name.split(":")
        above: list[dict[str, Any]] = roots
        for depth in range(1, len(pieces) + 1):
            path = ":".join(pieces[:depth])
            if path not in nodes:
                nodes[path] = {"id": path, "label": pieces[depth - 1], "sum": 0, "children": []}
                above.append(nodes[path])
            nodes[path]["sum"] += held
            above = nodes[path]["children"]
    for path, node in nodes.items():
        node["shown"] = wording.count(node["sum"])
        node["exact"] = f"{node['sum']:,} memories"
        node["path"] = Question(namespace=path).path() if ":" in path else "#"
    return roots
